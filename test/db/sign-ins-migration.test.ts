import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { connectPostgres } from '../../db/connection.ts'
import { listAuthSessions } from '../../db/identity/auth-sessions.ts'
import { migrate, readMigrations } from '../../db/migrations.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'

test('existing sign-ins and audit entries get their kind from the name that only browsers had', async () => {
  const database = await createEmptyDatabase()
  atEnd(() => database.drop())
  const sql = connectPostgres(database.url, 1)
  for (const { name, text } of await readMigrations()) if (name < '0007') await sql.unsafe(text)
  const [user] = await sql<{ id: string }[]>`
    insert into users (email, stream_token) values ('someone@example.com', ${randomBytes(4).toString('hex')}) returning id`
  const userId = user?.id ?? ''
  for (const client of ['web', 'Browser']) {
    await sql`
      with session as (insert into auth_sessions (user_id, client, ip) values (${userId}, ${client}, '192.0.2.1') returning id)
      insert into refresh_tokens (token_hash, auth_session_id, expires_at)
      select ${randomBytes(32)}, id, now() + interval '30 days' from session`
    await sql`insert into audit_entries (actor, action, user_id, client) values ('user', 'signed_in', ${userId}, ${client})`
  }
  await migrate(sql)
  const kinds = (await listAuthSessions(sql, userId)).map(({ client }) => [client.name, client.kind])
  expect(Object.fromEntries(kinds)).toEqual({ web: 'web', Browser: 'plugin' })
  expect(await sql`select client, client_kind from audit_entries order by id`).toEqual([
    { client: 'web', clientKind: 'web' },
    { client: 'Browser', clientKind: 'plugin' },
  ])
  // A sign-in that a process of the previous version adds is not a browser's.
  await sql`insert into auth_sessions (user_id, client, ip) values (${userId}, 'Browser', '192.0.2.1')`
  expect(await sql`select from auth_sessions where kind = 'web'`).toHaveLength(1)
  await sql.end()
})
