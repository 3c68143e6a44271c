/** Relay time of a cycle, in any time zone of the connection. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { presentUsage } from '../../../api/routes/billing/usage.ts'
import { findEntitlement, findEntitlementsWithUsage } from '../../../db/billing/entitlements.ts'
import type { Sql } from '../../../db/connection.ts'
import { usageCycleAt } from '../../../domain/billing/usage-cycle.ts'
import { type GivenUser, startApi } from '../../support/api.ts'

const api = await startApi()
const { sql } = api

// Functions are resolved along the search path: a `now` in an earlier schema replaces Postgres's clock.
await sql`create schema clock`
await sql`
  create function clock.now() returns timestamptz stable language sql as
  'select to_timestamp(current_setting(''clock.millis'')::float8 / 1000)'`

/** Runs the query at another time of the database clock, in milliseconds since 1970. */
const at = <Answer>(millis: number, ask: (tx: Sql) => Promise<Answer>): Promise<Answer> =>
  sql.begin(async (tx) => {
    await tx`select set_config('clock.millis', ${String(millis)}, true), set_config('search_path', 'clock,pg_catalog,public', true)`
    return ask(tx)
  }) as Promise<Answer>

/** Start and end in milliseconds since 1970; null while it runs. */
interface Interval {
  readonly from: number
  readonly to: number | null
}
/** In milliseconds since 1970; null if the billing provider did not state it. */
interface Plan {
  readonly paid: boolean
  readonly start: number | null
  readonly end: number | null
}

const [second, hour, day] = [1000, 3_600_000, 86_400_000]
const date = (millis: number | null) => (millis === null ? null : new Date(millis))

const setPlan = ({ userId }: GivenUser, { paid, start, end }: Plan, addons = 0) => sql`
  update users set plan_tier = ${paid ? 'paid' : 'free'}, plan_status = ${paid ? 'active' : 'none'}, addons = ${addons},
    period_start = ${date(start)}, period_end = ${date(end)}
  where id = ${userId}`

let sessions = 0

async function insertSession({ userId }: GivenUser): Promise<string> {
  const [row] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    values (${userId}, ${`c${sessions++}`}, 'here', 'user') returning id`
  return row?.id ?? ''
}

/** Replaces the intervals. Each running interval has its own session. */
async function replaceIntervals(user: GivenUser, intervals: readonly Interval[], sessionIds: readonly string[]) {
  await sql`delete from usage_intervals where user_id = ${user.userId}`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    select session_id, ${user.userId}, started_at, ended_at from unnest(
      ${intervals.map((_, place) => sessionIds[place % sessionIds.length] ?? '')}::uuid[],
      ${intervals.map(({ from }) => new Date(from).toISOString())}::timestamptz[],
      ${intervals.map(({ to }) => date(to)?.toISOString() ?? null)}::timestamptz[]) as i (session_id, started_at, ended_at)`
}

/** An account with these intervals. */
async function userOf(...intervals: Interval[]): Promise<GivenUser> {
  const user = await api.given.user()
  const running = Math.max(1, intervals.filter(({ to }) => to === null).length)
  const sessionIds = await Promise.all(Array.from({ length: running }, () => insertSession(user)))
  await replaceIntervals(user, intervals, sessionIds)
  return user
}

const timeBank = { hoursPerRelay: 0, enforcement: 'report', trialSeconds: 0 } as const

async function measure(tx: Sql, { userId }: GivenUser, { hoursPerRelay = 0 } = {}) {
  const measured = (await findEntitlementsWithUsage(tx, [userId], { ...timeBank, hoursPerRelay })).get(userId)
  if (!measured) throw new Error('the account does not exist')
  return measured
}

const usageAt = async (now: number, user: GivenUser) => (await at(now, (tx) => measure(tx, user))).usage

test('the cycle is in UTC, with any time zone of the connection', async () => {
  const user = await api.given.user()
  const now = Date.parse('2027-05-10T08:29:59.999Z')
  for (const [start, end] of [
    [Date.parse('2027-04-10T08:30Z'), Date.parse('2027-05-10T08:30Z')],
    [null, null],
  ] as const) {
    await setPlan(user, { paid: true, start, end })
    for (const zone of ['UTC', 'America/St_Johns', 'Pacific/Kiritimati']) {
      const { usage } = await at(now, async (tx) => {
        await tx`select set_config('timezone', ${zone}, true)`
        return measure(tx, user)
      })
      const cycle = { start: start ?? Date.UTC(2027, 4, 1), end: end ?? Date.UTC(2027, 5, 1) }
      expect([usage.cycleStart, usage.cycleEnd]).toEqual([new Date(cycle.start), new Date(cycle.end)])
    }
  }
})

describe('the used relay time', () => {
  const noon = Date.UTC(2027, 4, 17, 12)

  test('is zero without any use', async () => {
    const user = await api.given.user()
    expect((await measure(sql, user)).usage).toMatchObject({ consumedSeconds: 0, activeSessions: 0 })
  })

  test('of sixty relays with 0.9 seconds each is 54 seconds', async () => {
    const starts = Array.from({ length: 60 }, (_, place) => noon - hour + place * second)
    const user = await userOf(...starts.map((from) => ({ from, to: from + 900 })))
    expect((await usageAt(noon, user)).consumedSeconds).toBe(54)
  })

  test('is in whole seconds', async () => {
    const user = await userOf({ from: noon - second, to: noon - 1 })
    expect((await usageAt(noon, user)).consumedSeconds).toBe(0)
  })

  const turn = Date.UTC(2027, 4, 17, 9, 30, 0, 250)
  test.each([
    ['of the calendar', Date.UTC(2027, 4, 1), { paid: false, start: null, end: null }],
    ['that is paid', turn, { paid: true, start: Date.UTC(2027, 3, 17, 9, 30, 0, 250), end: turn }],
  ])('across the end of a cycle %s is split there and counts once', async (_, end, plan) => {
    const inCycles = async (...intervals: Interval[]) => {
      const user = await userOf(...intervals)
      await setPlan(user, plan)
      const moments = [end - 1, end, end + day]
      return Promise.all(moments.map((now) => usageAt(now, user).then((usage) => usage.consumedSeconds)))
    }
    expect(await inCycles({ from: end - 90 * second, to: end + 40 * second })).toEqual([90, 40, 40])
    expect(await inCycles({ from: end - 90 * second, to: end })).toEqual([90, 0, 0])
    expect(await inCycles({ from: end, to: end + 40 * second })).toEqual([0, 40, 40])
    expect(await inCycles({ from: end - 1500, to: null })).toEqual([1, 0, day / second])
  })

  test('of concurrent relays adds up, and a running one counts until now', async () => {
    const user = await userOf(
      { from: noon - 20_000, to: noon - 10_000 },
      { from: noon - 15_000, to: noon - 5000 },
      { from: noon - 30_000, to: null },
      { from: noon - 7000, to: null },
    )
    const usage = await usageAt(noon, user)
    expect(usage).toMatchObject({ consumedSeconds: 57, activeSessions: 2, asOf: new Date(noon) })
  })

  test('is not reduced by a relay that starts in the future', async () => {
    const user = await userOf({ from: noon - 10_000, to: noon - 5000 }, { from: noon + hour, to: null })
    const usage = await usageAt(noon, user)
    expect(usage).toMatchObject({ consumedSeconds: 5, activeSessions: 1 })
  })

  test('is separate for each account, even if one is requested several times', async () => {
    const account = await userOf({ from: noon - 3000, to: noon })
    const other = await userOf({ from: noon - 5000, to: null })
    await setPlan(other, { paid: true, start: noon - 2000, end: noon + day })
    const usages = await at(noon, (tx) =>
      findEntitlementsWithUsage(tx, [account.userId, other.userId, account.userId], timeBank),
    )
    expect([...usages].map(([userId, { usage }]) => [userId, usage.consumedSeconds])).toEqual(
      expect.arrayContaining([
        [account.userId, 3],
        [other.userId, 2],
      ]),
    )
    expect(usages.size).toBe(2)
  })

  test('has at most one running interval per session, and no negative interval', async () => {
    const now = Date.now()
    const user = await api.given.user()
    const session = [await insertSession(user)]
    const running = { from: now, to: null }
    await expect(replaceIntervals(user, [running, running], session)).rejects.toThrow(/usage_intervals_open/)
    await expect(replaceIntervals(user, [{ from: now, to: now - 1 }], session)).rejects.toThrow(/check/)
  })
})

test('the numbers are exact and consistent for any intervals at any time', async () => {
  const user = await api.given.user()
  const sessionIds = await Promise.all(Array.from({ length: 4 }, () => insertSession(user)))
  const [from, to] = [Date.UTC(2027, 0, 1), Date.UTC(2029, 0, 1)]
  const anyTime = fc.integer({ min: from, max: to })
  const anyPeriod = fc.option(fc.tuple(fc.option(anyTime), fc.integer({ min: 1, max: 400 * day })))
  const anyPlan = fc
    .record({ paid: fc.boolean(), addons: fc.nat(3), hoursPerRelay: fc.nat(300), period: anyPeriod, other: anyTime })
    .map(({ period, other, ...plan }) => ({
      ...plan,
      start: period?.[0] ?? null,
      end: period ? (period[0] ?? other) + period[1] : null,
    }))
  // Around now, from milliseconds to more than a cycle.
  const anyAge = fc.integer({ min: -2 * day, max: 45 * day })
  const anyLength = fc.oneof(fc.nat(5000), fc.nat(2 * day), fc.nat(50 * day))
  const ended = fc.array(fc.record({ age: anyAge, length: anyLength }), { maxLength: 300 })
  const running = fc.array(anyAge, { maxLength: sessionIds.length })

  await fc.assert(
    fc.asyncProperty(anyTime, anyPlan, ended, running, async (now, plan, past, ages) => {
      // Running intervals first, each with its own session.
      const intervals = [
        ...ages.map((age) => ({ from: now - age, to: null })),
        ...past.map(({ age, length }) => ({ from: now - age, to: now - age + length })),
      ]
      await replaceIntervals(user, intervals, sessionIds)
      await setPlan(user, plan, plan.addons)
      const measured = await at(now, (tx) => measure(tx, user, plan))
      const { included_seconds, consumed_seconds, remaining_seconds, overage_seconds } = presentUsage(
        measured,
        timeBank,
      )

      const planTier = plan.paid ? 'paid' : 'free'
      const cycle = usageCycleAt(now, { planTier, periodStart: plan.start, periodEnd: plan.end })
      expect(measured.usage).toMatchObject({ cycleStart: new Date(cycle.start), cycleEnd: new Date(cycle.end) })
      const within = intervals.map((interval) =>
        Math.max(0, Math.min(interval.to ?? now, cycle.end) - Math.max(interval.from, cycle.start)),
      )
      expect(consumed_seconds).toBe(Math.floor(within.reduce((sum, millis) => sum + millis, 0) / 1000))
      expect(included_seconds).toBe(plan.paid ? plan.hoursPerRelay * 3600 * (1 + plan.addons) : 0)
      expect(included_seconds - consumed_seconds).toBe(remaining_seconds - overage_seconds)
      expect(remaining_seconds * overage_seconds).toBe(0)
      for (const seconds of [consumed_seconds, remaining_seconds, overage_seconds, included_seconds]) {
        expect(Number.isInteger(seconds)).toBe(true)
        expect(seconds).toBeGreaterThanOrEqual(0)
        expect(seconds).toBeLessThan(2 ** 31)
      }
    }),
    { numRuns: 40 },
  )
})

describe('an entitlement', () => {
  const reasons = (ids: readonly string[], enforcement: 'report' | 'enforce') =>
    Promise.all(
      ids.map(
        async (id) => (await findEntitlement(sql, id, { hoursPerRelay: 0, enforcement, trialSeconds: 0 }))?.reasonCode,
      ),
    )

  test('is denied for used relay time only if that is enforced', async () => {
    const [paid, free] = [await api.given.user(), await api.given.user()]
    await setPlan(paid, { paid: true, start: null, end: null })
    const ids = [paid.userId, free.userId]
    expect(await reasons(ids, 'report')).toEqual(['ok', 'plan_required'])
    expect(await reasons(ids, 'enforce')).toEqual(['usage_exhausted', 'plan_required'])
  })

  test('does not read the ledger unless relay time is enforced and the account has access', async () => {
    const [paid, free] = [await api.given.user(), await api.given.user()]
    await setPlan(paid, { paid: true, start: null, end: null })
    await sql.begin(async (tx) => {
      await tx`lock table usage_intervals in access exclusive mode`
      expect(await reasons([paid.userId, free.userId], 'report')).toEqual(['ok', 'plan_required'])
      expect(await reasons([free.userId], 'enforce')).toEqual(['plan_required'])
    })
  })
})
