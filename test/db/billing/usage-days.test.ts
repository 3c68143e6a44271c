/** Relay time by day, which adds up to that of the cycle. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findUsageByDay } from '../../../db/billing/usage-days.ts'
import { readSnapshot } from '../../../db/connection.ts'
import { type GivenUser, startApi } from '../../support/api.ts'

const api = await startApi()
const { sql } = api
const timeBank = { hoursPerRelay: 200, enforcement: 'report', trialSeconds: 0 } as const
const [second, day] = [1000, 86_400_000]

interface Interval {
  readonly connection: number
  /** Milliseconds since 1970. */
  readonly from: number
  /** Null while it runs. */
  readonly to: number | null
}

/** Replaces all relay time of the account; each interval has a session of its own. */
async function replaceIntervals({ userId }: GivenUser, intervals: readonly Interval[]): Promise<void> {
  await sql`delete from relay_sessions where user_id = ${userId}`
  for (const { connection, from, to } of intervals) {
    const [session] = await sql<{ id: string }[]>`
      insert into relay_sessions (user_id, connection_id, region, command_initiator)
      values (${userId}, ${`c${connection}`}, 'here', 'user') returning id`
    await sql`update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${session?.id ?? ''}`
    await sql`
      insert into usage_intervals (session_id, user_id, started_at, ended_at)
      values (${session?.id ?? ''}, ${userId}, ${new Date(from)}, ${to === null ? null : new Date(to)})`
  }
}

const setPeriod = ({ userId }: GivenUser, start: number, end: number) => sql`
  update users set plan_tier = 'paid', plan_status = 'active', period_start = ${new Date(start)}, period_end = ${new Date(end)}
  where id = ${userId}`

async function measure({ userId }: GivenUser) {
  const found = await readSnapshot(sql, (tx) => findUsageByDay(tx, userId, timeBank))
  if (!found) throw new Error('the account does not exist')
  return { days: found.days, usage: found.account.usage }
}

/** The milliseconds of each day in UTC, by a calculation of its own. */
function millisByDay(intervals: readonly Interval[], start: number, end: number, now: number): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { from, to } of intervals)
    for (let at = Math.max(from, start); at < Math.min(to ?? now, end); at = nextDay(at)) {
      const name = new Date(at).toISOString().slice(0, 10)
      sums.set(name, (sums.get(name) ?? 0) + Math.min(to ?? now, end, nextDay(at)) - at)
    }
  return sums
}

const nextDay = (at: number): number => (Math.floor(at / day) + 1) * day

test('an interval across midnight is split there, in any time zone of the connection', async () => {
  const user = await api.given.user()
  const midnight = Math.floor(Date.now() / day) * day - 2 * day
  await setPeriod(user, midnight - 3 * day, midnight + 20 * day)
  await replaceIntervals(user, [{ connection: 1, from: midnight - 90 * second, to: midnight + 40 * second }])
  const name = (at: number) => new Date(at).toISOString().slice(0, 10)
  for (const zone of ['UTC', 'America/St_Johns', 'Pacific/Kiritimati']) {
    const measured = await sql.begin(async (tx) => {
      await tx`select set_config('timezone', ${zone}, true)`
      return findUsageByDay(tx, user.userId, timeBank)
    })
    expect(measured?.days).toEqual([
      { day: name(midnight - 1), seconds: 90, connections: [{ connectionId: 'c1', seconds: 90 }] },
      { day: name(midnight), seconds: 40, connections: [{ connectionId: 'c1', seconds: 40 }] },
    ])
  }
})

test('the four connections with the most relay time have names, and the others share one entry', async () => {
  const user = await api.given.user()
  const from = Math.floor(Date.now() / day) * day - day
  await setPeriod(user, from - day, from + 20 * day)
  await replaceIntervals(
    user,
    Array.from({ length: 6 }, (_, connection) => ({ connection, from, to: from + (connection + 1) * second })),
  )
  const { days } = await measure(user)
  expect(days[0]?.connections).toEqual([
    ...[3, 4, 5, 6].map((seconds) => ({ connectionId: `c${seconds - 1}`, seconds })),
    { connectionId: null, seconds: 3 },
  ])
})

test('the days add up to the consumed seconds for any intervals and any cycle', async () => {
  const user = await api.given.user()
  const anyInterval = fc.record({
    connection: fc.nat(6),
    age: fc.integer({ min: 1, max: 45 * day }),
    length: fc.option(fc.oneof(fc.nat(5000), fc.nat(2 * day), fc.nat(50 * day)), { freq: 8 }),
  })
  const anyCycle = fc.record({
    passed: fc.integer({ min: 1, max: 40 * day }),
    left: fc.integer({ min: day, max: 40 * day }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(anyInterval, { maxLength: 25 }), anyCycle, async (some, { passed, left }) => {
      const now = Date.now()
      const intervals = some.map(({ connection, age, length }) => ({
        connection,
        from: now - age,
        to: length === null ? null : Math.min(now, now - age + length),
      }))
      await replaceIntervals(user, intervals)
      await setPeriod(user, now - passed, now + left)
      const { days, usage } = await measure(user)
      expect(days.reduce((sum, { seconds }) => sum + seconds, 0)).toBe(usage.consumedSeconds)
      const expected = millisByDay(intervals, now - passed, now + left, usage.asOf.getTime())
      expect(days.map((usageDay) => usageDay.day)).toEqual([...expected.keys()].sort())
      for (const { day: name, seconds, connections } of days) {
        expect(Math.abs(seconds - (expected.get(name) ?? 0) / 1000)).toBeLessThan(1)
        expect(connections.length).toBeLessThanOrEqual(5)
      }
    }),
    { numRuns: 30 },
  )
})
