/** The job that records notices when an account has used a share of its included relay time. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { usageJobs, watchUsage } from '../../../activities/billing/usage-jobs.ts'
import { createNotify } from '../../../activities/notifications/notifier.ts'
import { type GivenUser, startApi } from '../../support/api.ts'

const api = await startApi({ SVC_TIME_BANK_HOURS_PER_RELAY: '1' })
const { sql } = api
const { config, log, sealing } = api.services
const notify = createNotify({ sealing, siteUrl: config.siteUrl })
const round = () => watchUsage({ config, sql, log, notify })

/** An account in the middle of a billing period of 60 days, with one included hour. */
async function paidUser(): Promise<GivenUser> {
  const user = await api.given.user()
  await sql`
    update users set plan_tier = 'paid', plan_status = 'active',
      period_start = now() - interval '30 days', period_end = now() + interval '30 days'
    where id = ${user.userId}`
  return user
}

/** Adds relay time that ended this many seconds ago, or that still runs by default. */
async function use({ userId }: GivenUser, seconds: number, endedAgo?: number): Promise<void> {
  const [session] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    values (${userId}, ${randomUUID()}, 'local', 'user') returning id`
  const until = sql`now() - make_interval(secs => ${endedAgo ?? 0})`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    values (${session?.id ?? ''}, ${userId}, ${until} - make_interval(secs => ${seconds}), ${endedAgo === undefined ? null : until})`
}

/** The percentages of the account's usage notices in the audit, in order. */
const toldTo = async ({ userId }: GivenUser) =>
  (
    await sql<{ initiator: string; detail: { percent: number } }[]>`
      select initiator, detail from audit_entries where user_id = ${userId} and action = 'usage_notice' order by id`
  ).map(({ initiator, detail }) => `${detail.percent} by ${initiator}`)
const keptFor = async ({ userId }: GivenUser) =>
  (await sql<{ percent: number }[]>`select percent from usage_notices where user_id = ${userId} order by percent`).map(
    (row) => row.percent,
  )

test('each threshold of relay time is recorded once, however often the job runs', async () => {
  const user = await paidUser()
  await use(user, 2879, 60)
  await round()
  expect(await toldTo(user)).toEqual([])
  await use(user, 1, 50)
  await round()
  await round()
  expect(await toldTo(user)).toEqual(['80 by system'])
  await use(user, 540, 40)
  await round()
  expect(await toldTo(user)).toEqual(['80 by system', '95 by system'])
  await use(user, 5000, 30)
  await round()
  await round()
  expect(await toldTo(user)).toEqual(['80 by system', '95 by system', '100 by system'])
  expect(await keptFor(user)).toEqual([80, 95, 100])
})

test('thresholds that are passed together are recorded together, and once by concurrent runs', async () => {
  const [most, all] = [await paidUser(), await paidUser()]
  await use(most, 3500)
  await use(all, 4000)
  await Promise.all([round(), round(), round()])
  expect((await toldTo(most)).toSorted()).toEqual(['80 by system', '95 by system'])
  expect((await toldTo(all)).toSorted()).toEqual(['100 by system', '80 by system', '95 by system'])
})

test('the thresholds are recorded again in the next cycle', async () => {
  const user = await paidUser()
  await use(user, 3000, 60)
  await round()
  await sql`update users set period_start = now() - interval '2 minutes' where id = ${user.userId}`
  await round()
  expect(await keptFor(user)).toEqual([80])
  await sql`update users set period_start = now() - interval '1 day' where id = ${user.userId}`
  await round()
  expect(await keptFor(user)).toEqual([80, 80])
  expect(await toldTo(user)).toHaveLength(2)
})

test('the included time applies to all relays of the plan together', async () => {
  const user = await paidUser()
  await sql`update users set addons = 3 where id = ${user.userId}`
  await use(user, 11_000, 60)
  await round()
  expect(await keptFor(user)).toEqual([])
  await use(user, 1000)
  await round()
  expect(await keptFor(user)).toEqual([80])
})

test('an account without included time gets no notices', async () => {
  const user = await paidUser()
  await sql`update users set plan_tier = 'free', plan_status = 'none' where id = ${user.userId}`
  await use(user, 5000)
  await round()
  expect(await keptFor(user)).toEqual([])
})

test('an account without recent relay time is not checked', async () => {
  const [lately, longAgo] = [await paidUser(), await paidUser()]
  await use(lately, 3000, 14 * 60)
  await use(longAgo, 3000, 16 * 60)
  await round()
  expect([await keptFor(lately), await keptFor(longAgo)]).toEqual([[80], []])
})

test('a notice that could not be stored writes no audit entry, and is recorded in the next run', async () => {
  const user = await paidUser()
  await use(user, 3000, 60)
  await sql`alter table audit_entries add constraint no_notice check (action <> 'usage_notice') not valid`
  try {
    await expect(round()).rejects.toThrow(/no_notice/)
    expect([await keptFor(user), await toldTo(user)]).toEqual([[], []])
  } finally {
    await sql`alter table audit_entries drop constraint no_notice`
  }
  await round()
  expect([await keptFor(user), await toldTo(user)]).toEqual([[80], ['80 by system']])
})

test('more accounts than one batch are all processed', async () => {
  const users = await sql<{ id: string }[]>`
    insert into users (email, stream_token_sealed, stream_token_hash, plan_tier, plan_status)
    select gen_random_uuid() || '@example.com', 'sealed', sha256(i::text::bytea), 'paid', 'active'
    from generate_series(1, 1100) i
    returning id`
  const ids = users.map((user) => user.id)
  await sql`update users set period_start = now() - interval '30 days', period_end = now() + interval '30 days' where id = any(${ids})`
  await sql`
    with session as (
      insert into relay_sessions (user_id, connection_id, region, command_initiator)
      select id, 'default', 'local', 'user' from unnest(${ids}::uuid[]) as u (id) returning id, user_id
    )
    insert into usage_intervals (session_id, user_id, started_at) select id, user_id, now() - interval '50 minutes' from session`
  await round()
  const [count] = await sql`select count(*)::int as notices from usage_notices where user_id = any(${ids})`
  expect(count?.notices).toBe(1100)
})

test('usage is checked by one job', () => {
  expect(usageJobs({ config, sql, log, notify })).toMatchObject([{ name: 'watch_usage', everySeconds: 60 }])
})
