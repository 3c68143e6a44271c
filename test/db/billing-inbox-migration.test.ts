import { expect, test } from 'vitest'
import { claimInboxWakes } from '../../db/billing/subscription-wakes.ts'
import { connectPostgres } from '../../db/connection.ts'
import { migrate, readMigrations } from '../../db/migrations.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { newAccount } from '../support/billing-database.ts'

const database = await createEmptyDatabase()
const sql = connectPostgres(database.url, 2)
atEnd(async () => {
  await sql.end({ timeout: 5 })
  await database.drop()
})

test('a subscription of two accounts is assigned to the account that its latest event names, and both are evaluated again', async () => {
  await sql`create table schema_migrations (
    name text primary key, checksum text not null, applied_at timestamptz not null default now())`
  for (const { name, text, checksum } of (await readMigrations()).filter(({ name }) => name < '0009')) {
    await sql.unsafe(text)
    await sql`insert into schema_migrations (name, checksum) values (${name}, ${checksum})`
  }
  const [first, second, other] = [await newAccount(sql), await newAccount(sql), await newAccount(sql)]
  const keep = (key: string, type: string, userId: string, subscriptionId: string, at: string) => sql`
    insert into billing_events (provider, event_key, type, action, user_ref, subscription_id, user_id, fact, body, status,
      occurred_at, applied_at)
    values ('stripe', ${key}, ${type}, 'activate', ${userId}, ${subscriptionId}, ${userId}, ${sql.json({ key })}, '{}',
      'applied', ${at}, now() - interval '5 days')`
  await keep('evt_3', 'customer.subscription.deleted', second, 'sub_1', '2026-03-03T00:00:00Z')
  await keep('evt_1', 'customer.subscription.created', first, 'sub_1', '2026-03-01T00:00:00Z')
  await keep('evt_4', 'invoice.paid', first, 'sub_1', '2026-03-04T00:00:00Z')
  await keep('evt_5', 'customer.subscription.created', other, 'sub_2', '2026-03-01T00:00:00Z')
  for (const userId of [first, second])
    await sql`
      insert into subscriptions (provider, subscription_id, kind, user_id, status)
      values ('stripe', 'sub_1', 'plan', ${userId}, 'active')`

  await migrate(sql)
  const events = await sql`
    select event_key as key, user_id, status, user_ref_source as source, settled_at < now() - interval '4 days' as settled
    from billing_events order by event_key`
  const moved = { userId: second, status: 'pending', settled: true }
  expect(events).toEqual([
    { key: 'evt_1', source: 'subscription', ...moved },
    { key: 'evt_3', source: 'subscription', ...moved, status: 'applied' },
    { key: 'evt_4', source: 'invoice', ...moved },
    { key: 'evt_5', source: 'subscription', userId: other, status: 'applied', settled: true },
  ])
  expect(await sql`select subscription_id from subscriptions`).toHaveLength(1)
  expect((await claimInboxWakes(sql, -1, 10)).toSorted()).toEqual([first, second].toSorted())
})
