import { expect, test } from 'vitest'
import { connectPostgres } from '../../db/connection.ts'
import { readMigrations } from '../../db/migrations.ts'
import { claimUntoldAccounts } from '../../db/notifications/plan-notices.ts'
import { findRecipients } from '../../db/notifications/settings.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'

test('existing accounts get mails about payments, keep what they enabled, and an announcement later; new ones do not', async () => {
  const database = await createEmptyDatabase()
  atEnd(() => database.drop())
  const sql = connectPostgres(database.url, 1)
  const migrations = await readMigrations()
  for (const { name, text } of migrations) if (name < '0039') await sql.unsafe(text)
  const insertUser = async (email: string, token: string) => {
    const [user] = await sql<{ id: string }[]>`
      insert into users (email, stream_token, email_verified_at) values (${email}, ${token}, now()) returning id`
    return user?.id ?? ''
  }
  /** As a program of the version before the migration enables a kind. */
  const enable = (userId: string, kind: string) =>
    sql`insert into notification_settings (user_id, kind, channel) values (${userId}, ${kind}, 'email')`
  const existing = await insertUser('existing@example.com', 'aaaaaaaa')
  await enable(existing, 'usage_80')

  for (const { name, text } of migrations) if (name >= '0039') await sql.unsafe(text)

  const added = await insertUser('added@example.com', 'bbbbbbbb')
  await enable(added, 'usage_95')
  const emailFor = async (userId: string, kind: Parameters<typeof findRecipients>[2]) =>
    (await findRecipients(sql, userId, kind))?.email
  expect(await emailFor(existing, 'payment_failed')).toBe('existing@example.com')
  expect(await emailFor(existing, 'usage_80')).toBe('existing@example.com')
  expect(await emailFor(existing, 'usage_95')).toBeNull()
  expect(await emailFor(added, 'payment_failed')).toBe('added@example.com')
  expect(await emailFor(added, 'usage_95')).toBe('added@example.com')
  expect(await claimUntoldAccounts(sql, 10)).toEqual([{ userId: existing, email: 'existing@example.com' }])
  await sql.end()
})
