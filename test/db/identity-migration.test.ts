/** What is known of identities that were linked before it was recorded whether their provider vouches for the address. */
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { connectPostgres } from '../../db/connection.ts'
import { migrate, readMigrations } from '../../db/migrations.ts'
import { createEmptyDatabase } from '../support/api.ts'

const migration = '0008'

async function databaseBefore() {
  const database = await createEmptyDatabase()
  const sql = connectPostgres(database.url, 1)
  onTestFinished(async () => {
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  for (const { name, text } of await readMigrations()) if (name < migration) await sql.unsafe(text)
  return sql
}

test('identities whose linking verified the address, and those of merges, count as vouched for, and no others', async () => {
  const sql = await databaseBefore()
  const linkedAt = new Date('2026-10-01T12:00:00.123Z')
  const later = new Date('2026-10-02T12:00:00Z')
  const account = async (email: string | null, verifiedAt: Date | null) => {
    const [row] = await sql<{ id: string }[]>`
      insert into users (email, email_verified_at, stream_token)
      values (${email}, ${verifiedAt}, ${randomBytes(4).toString('hex')}) returning id`
    await sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id, linked_at)
      values (${row?.id ?? ''}, 'twitch', ${row?.id ?? ''}, ${linkedAt})`
    return row?.id ?? ''
  }
  await account('verified-by-the-link@example.com', linkedAt)
  await account('verified-by-mail@example.com', later)
  await account('unverified@example.com', null)
  await account(null, null)
  const merged = await account('merged@example.com', later)
  const mergedOther = await account('merged-another-provider@example.com', later)
  for (const [id, provider] of [
    [merged, 'twitch'],
    [mergedOther, 'google'],
  ] as const)
    await sql`
      insert into audit_entries (at, actor, action, user_id, detail)
      values (${linkedAt}, 'user', 'merge_confirmed', ${id}, ${sql.json({ provider, method: 'password' })})`

  await migrate(sql)

  const vouched = await sql`select vouched_email from user_oauth_accounts where vouched_email is not null order by 1`
  expect(vouched.map((row) => row.vouched_email)).toEqual(['merged@example.com', 'verified-by-the-link@example.com'])
})
