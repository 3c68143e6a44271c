import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { presentUsage } from '../../api/routes/usage.ts'
import type { Sql } from '../../db/connection.ts'
import { findEntitlement, findEntitlements } from '../../db/entitlements.ts'
import { findUsage, findUsages, type Usage } from '../../db/usage.ts'
import { type GivenUser, startApi } from '../support/api.ts'

const api = await startApi()
const { sql } = api

// Names are looked up along the search path: a clock in front of Postgres's own makes any day the present one.
await sql`create schema clock`
await sql`
  create function clock.now() returns timestamptz stable language sql as
  'select to_timestamp(current_setting(''clock.millis'')::float8 / 1000)'`

/** Asks while it is another day, in milliseconds since 1970, by the clock of the database. */
const at = <Answer>(millis: number, ask: (tx: Sql) => Promise<Answer>): Promise<Answer> =>
  sql.begin(async (tx) => {
    await tx`select set_config('clock.millis', ${String(millis)}, true), set_config('search_path', 'clock,pg_catalog,public', true)`
    return ask(tx)
  }) as Promise<Answer>

/** From and to in milliseconds since 1970; null while it runs. */
interface Interval {
  readonly from: number
  readonly to: number | null
}
/** In milliseconds since 1970; null for what the billing provider did not tell. */
interface Plan {
  readonly paid: boolean
  readonly start: number | null
  readonly end: number | null
}

const [second, hour, day] = [1000, 3_600_000, 86_400_000]
const millisOf = (text: string | null | undefined) => (text ? Date.parse(text) : null)
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

/** Intervals in place of those there were; those that run are each of a session of its own. */
async function replaceIntervals(user: GivenUser, intervals: readonly Interval[], sessionIds: readonly string[]) {
  await sql`delete from usage_intervals where user_id = ${user.userId}`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    select session_id, ${user.userId}, started_at, ended_at from unnest(
      ${intervals.map((_, place) => sessionIds[place % sessionIds.length] ?? '')}::uuid[],
      ${intervals.map((one) => new Date(one.from).toISOString())}::timestamptz[],
      ${intervals.map((one) => date(one.to)?.toISOString() ?? null)}::timestamptz[]) as i (session_id, started_at, ended_at)`
}

/** An account that has used relays so. */
async function userOf(...intervals: Interval[]): Promise<GivenUser> {
  const user = await api.given.user()
  const running = Math.max(1, intervals.filter((one) => one.to === null).length)
  const sessionIds = await Promise.all(Array.from({ length: running }, () => insertSession(user)))
  await replaceIntervals(user, intervals, sessionIds)
  return user
}

const monthsAfter = (millis: number, months: number): number => {
  const from = new Date(millis)
  const to = new Date(millis)
  to.setUTCDate(1)
  to.setUTCMonth(from.getUTCMonth() + months)
  const daysInMonth = new Date(Date.UTC(to.getUTCFullYear(), to.getUTCMonth() + 1, 0)).getUTCDate()
  return to.setUTCDate(Math.min(from.getUTCDate(), daysInMonth))
}

/** The cycle as a person would find it with a calendar: month by month from where it is counted. */
function expectedCycle(now: number, { paid, start, end }: Plan): { start: number; end: number } {
  if (paid && start !== null && end !== null && start <= now && now < end) return { start, end }
  const calendar = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth(), 1)
  const anchor = !paid || end === null ? calendar : start !== null && now < start ? start : end
  let months = 0
  while (monthsAfter(anchor, months + 1) <= now) months += 1
  while (monthsAfter(anchor, months) > now) months -= 1
  return { start: monthsAfter(anchor, months), end: monthsAfter(anchor, months + 1) }
}

const cycleOf = ({ cycleStart, cycleEnd }: Usage) => ({ start: cycleStart.getTime(), end: cycleEnd.getTime() })

describe('the cycle', () => {
  test('is the calendar month in UTC, whatever the time zone of the connection', async () => {
    const user = await api.given.user()
    const now = new Date()
    await sql.begin(async (tx) => {
      await tx`set local time zone 'Pacific/Kiritimati'`
      const usage = await findUsage(tx, user.userId)
      expect(usage.cycleStart).toEqual(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)))
      expect(usage.cycleEnd).toEqual(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)))
    })
  })

  const [begin, end] = ['2027-04-10T08:30Z', '2027-05-10T08:30Z']
  test.each([
    // Now, the plan's period, and the cycle that it makes.
    ['begins with the paid period', begin, [begin, end], [begin, end]],
    ['lasts until the paid period ends', '2027-05-10T08:29:59.999Z', [begin, end], [begin, end]],
    ['goes on from there when the renewal is late', end, [begin, end], [end, '2027-06-10T08:30Z']],
    ['goes on for months', '2027-12-24', [begin, end], ['2027-12-10T08:30Z', '2028-01-10T08:30Z']],
    ['is the month before a period to come', '2027-04-10', [begin, end], ['2027-03-10T08:30Z', begin]],
    ['is a whole year where that is paid', '2027-10-01', ['2027-01-31', '2028-01-31'], ['2027-01-31', '2028-01-31']],
    ['is the month before the only end known', '2027-03-15', [null, '2027-03-31'], ['2027-02-28', '2027-03-31']],
    ['is a month long before the only end known', '2027-07-31', [null, '2028-01-31'], ['2027-07-31', '2027-08-31']],
    ['is the calendar month when only a start is known', '2027-04-15', [begin, null], ['2027-04-01', '2027-05-01']],
    ['is the calendar month without a period', '2027-12-31T23:59:59.999Z', [null, null], ['2027-12-01', '2028-01-01']],
    ['from a 31st ends with a short month', '2027-02-27', [null, '2027-01-31'], ['2027-01-31', '2027-02-28']],
    ['from a 31st goes on with that end', '2027-02-28', [null, '2027-01-31'], ['2027-02-28', '2027-03-31']],
    ['from a 31st comes back to a 31st', '2027-03-31', [null, '2027-01-31'], ['2027-03-31', '2027-04-30']],
    ['from a 31st ends on a leap day', '2028-02-28T23:59Z', [null, '2028-01-31'], ['2028-01-31', '2028-02-29']],
    ['from a leap day ends a day early otherwise', '2029-02-28', [null, '2028-02-29'], ['2029-02-28', '2029-03-29']],
    ['from a leap day comes back to one', '2032-02-29', [null, '2028-02-29'], ['2032-02-29', '2032-03-29']],
  ])('%s', async (_, now, [start, end], cycle) => {
    const user = await api.given.user()
    const plan = { paid: true, start: millisOf(start), end: millisOf(end) }
    await setPlan(user, plan)
    for (const zone of ['UTC', 'America/St_Johns']) {
      const usage = await at(Date.parse(now), async (tx) => {
        await tx`select set_config('timezone', ${zone}, true)`
        return findUsage(tx, user.userId)
      })
      expect([usage.cycleStart, usage.cycleEnd]).toEqual(cycle.map((text) => new Date(text)))
    }
    expect(expectedCycle(Date.parse(now), plan)).toEqual({ start: millisOf(cycle[0]), end: millisOf(cycle[1]) })
  })

  test('is the calendar month again once the plan is free', async () => {
    const user = await api.given.user()
    await setPlan(user, { paid: false, start: Date.parse(begin), end: Date.parse(end) })
    const usage = await at(Date.parse('2027-04-15'), (tx) => findUsage(tx, user.userId))
    expect(cycleOf(usage)).toEqual({ start: Date.UTC(2027, 3, 1), end: Date.UTC(2027, 4, 1) })
  })
})

describe('the relay time used', () => {
  const noon = Date.UTC(2027, 4, 17, 12)

  test('is none of who has used nothing', async () => {
    const user = await api.given.user()
    expect(await findUsage(sql, user.userId)).toMatchObject({ consumedSeconds: 0, activeSessions: 0 })
  })

  test('of sixty relays of nine tenths of a second is 54 seconds', async () => {
    const starts = Array.from({ length: 60 }, (_, place) => noon - hour + place * second)
    const user = await userOf(...starts.map((from) => ({ from, to: from + 900 })))
    expect((await at(noon, (tx) => findUsage(tx, user.userId))).consumedSeconds).toBe(54)
  })

  test('has no part of a second', async () => {
    const user = await userOf({ from: noon - second, to: noon - 1 })
    expect((await at(noon, (tx) => findUsage(tx, user.userId))).consumedSeconds).toBe(0)
  })

  const turn = Date.UTC(2027, 4, 17, 9, 30, 0, 250)
  test.each([
    ['of the calendar', Date.UTC(2027, 4, 1), { paid: false, start: null, end: null }],
    ['that is paid', turn, { paid: true, start: monthsAfter(turn, -1), end: turn }],
  ])('over the end of a cycle %s is split there, and all of it counts once', async (_, end, plan) => {
    const inCycles = async (...intervals: Interval[]) => {
      const user = await userOf(...intervals)
      await setPlan(user, plan)
      const moments = [end - 1, end, end + day]
      return Promise.all(
        moments.map((now) => at(now, (tx) => findUsage(tx, user.userId)).then((it) => it.consumedSeconds)),
      )
    }
    expect(await inCycles({ from: end - 90 * second, to: end + 40 * second })).toEqual([90, 40, 40])
    expect(await inCycles({ from: end - 90 * second, to: end })).toEqual([90, 0, 0])
    expect(await inCycles({ from: end, to: end + 40 * second })).toEqual([0, 40, 40])
    expect(await inCycles({ from: end - 1500, to: null })).toEqual([1, 0, day / second])
  })

  test('of relays that run at once adds up, and one that still runs counts to now', async () => {
    const user = await userOf(
      { from: noon - 20_000, to: noon - 10_000 },
      { from: noon - 15_000, to: noon - 5000 },
      { from: noon - 30_000, to: null },
      { from: noon - 7000, to: null },
    )
    const usage = await at(noon, (tx) => findUsage(tx, user.userId))
    expect(usage).toMatchObject({ consumedSeconds: 57, activeSessions: 2, asOf: new Date(noon) })
  })

  test('is never less for a relay that begins after now', async () => {
    const user = await userOf({ from: noon - 10_000, to: noon - 5000 }, { from: noon + hour, to: null })
    const usage = await at(noon, (tx) => findUsage(tx, user.userId))
    expect(usage).toMatchObject({ consumedSeconds: 5, activeSessions: 1 })
  })

  test('is each account’s own, however often it is asked for', async () => {
    const one = await userOf({ from: noon - 3000, to: noon })
    const other = await userOf({ from: noon - 5000, to: null })
    await setPlan(other, { paid: true, start: noon - 2000, end: noon + day })
    const usages = await at(noon, (tx) => findUsages(tx, [one.userId, other.userId, one.userId]))
    expect([...usages].map(([userId, usage]) => [userId, usage.consumedSeconds])).toEqual(
      expect.arrayContaining([
        [one.userId, 3],
        [other.userId, 2],
      ]),
    )
    expect(usages.size).toBe(2)
  })

  test('is of intervals that run once for a session, and never end before they begin', async () => {
    const now = Date.now()
    const user = await api.given.user()
    const session = [await insertSession(user)]
    const running = { from: now, to: null }
    await expect(replaceIntervals(user, [running, running], session)).rejects.toThrow(/usage_intervals_open/)
    await expect(replaceIntervals(user, [{ from: now, to: now - 1 }], session)).rejects.toThrow(/check/)
  })
})

test('whatever ran, and whenever it is asked, the numbers are exact and fit each other', async () => {
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
  // Around now, from the milliseconds to longer than a cycle.
  const anyAge = fc.integer({ min: -2 * day, max: 45 * day })
  const anyLength = fc.oneof(fc.nat(5000), fc.nat(2 * day), fc.nat(50 * day))
  const ended = fc.array(fc.record({ age: anyAge, length: anyLength }), { maxLength: 300 })
  const running = fc.array(anyAge, { maxLength: sessionIds.length })

  await fc.assert(
    fc.asyncProperty(anyTime, anyPlan, ended, running, async (now, plan, past, ages) => {
      // Those that run come first: each has a session of its own then.
      const intervals = [
        ...ages.map((age) => ({ from: now - age, to: null })),
        ...past.map(({ age, length }) => ({ from: now - age, to: now - age + length })),
      ]
      await replaceIntervals(user, intervals, sessionIds)
      await setPlan(user, plan, plan.addons)
      const timeBank = { hoursPerRelay: plan.hoursPerRelay, enforcement: 'report' as const }
      const entitlement = await findEntitlement(sql, user.userId, timeBank)
      if (!entitlement) throw new Error('the account is gone')
      const usage = await at(now, (tx) => findUsage(tx, user.userId))
      const { included_seconds, consumed_seconds, remaining_seconds, overage_seconds } = presentUsage(
        usage,
        entitlement,
        timeBank,
      )

      const cycle = expectedCycle(now, plan)
      expect(cycleOf(usage)).toEqual(cycle)
      const within = intervals.map((one) =>
        Math.max(0, Math.min(one.to ?? now, cycle.end) - Math.max(one.from, cycle.start)),
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

test('an entitlement asks for the relay time used only where that is enforced, and only of who may have relays', async () => {
  const [paid, free] = [await api.given.user(), await api.given.user()]
  await setPlan(paid, { paid: true, start: null, end: null })
  const ids = [paid.userId, free.userId]
  const asked: (readonly string[])[] = []
  const usages = (userIds: readonly string[]) => {
    asked.push(userIds)
    return findUsages(sql, userIds)
  }
  const reasons = async (enforcement: 'report' | 'enforce') => {
    const entitlements = await findEntitlements(sql, ids, { hoursPerRelay: 0, enforcement }, usages)
    return ids.map((id) => entitlements.get(id)?.reasonCode)
  }
  expect(await reasons('report')).toEqual(['ok', 'plan_required'])
  expect(asked).toEqual([])
  expect(await reasons('enforce')).toEqual(['usage_exhausted', 'plan_required'])
  expect(asked).toEqual([[paid.userId]])
})
