import fc from 'fast-check'
import { expect, test } from 'vitest'
import { presentUsage } from '../../api/usage.ts'
import { entitlementOf } from '../../db/entitlements.ts'
import { usageOf } from '../../db/usage.ts'
import { type GivenUser, startApi } from '../support/api.ts'

const api = await startApi()
const { sql } = api

/** From and to in milliseconds since 1970; null while it runs. */
interface Interval {
  readonly from: number
  readonly to: number | null
}

let sessions = 0

async function insertSession({ userId }: GivenUser): Promise<string> {
  const [row] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_actor)
    values (${userId}, ${`c${sessions++}`}, 'here', 'user') returning id`
  return row?.id ?? ''
}

async function replaceIntervals(user: GivenUser, sessionId: string, intervals: readonly Interval[]): Promise<void> {
  await sql`delete from usage_intervals where user_id = ${user.userId}`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    select ${sessionId}, ${user.userId}, started_at, ended_at from unnest(
      ${intervals.map((one) => new Date(one.from).toISOString())}::timestamptz[],
      ${intervals.map((one) => (one.to === null ? null : new Date(one.to).toISOString()))}::timestamptz[]) as i (started_at, ended_at)`
}

const cycleOf = async ({ userId }: GivenUser) => {
  const { cycleStart, cycleEnd } = await usageOf(sql, userId)
  return { start: cycleStart.getTime(), end: cycleEnd.getTime() }
}

test('the cycle is the calendar month in UTC, whatever the time zone of the connection', async () => {
  const user = await api.given.user()
  const now = new Date()
  await sql.begin(async (tx) => {
    await tx`set local time zone 'Pacific/Kiritimati'`
    const usage = await usageOf(tx, user.userId)
    expect(usage.cycleStart).toEqual(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)))
    expect(usage.cycleEnd).toEqual(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)))
  })
})

test('who has used nothing has used nothing', async () => {
  const user = await api.given.user()
  expect(await usageOf(sql, user.userId)).toMatchObject({ consumedSeconds: 0, activeSessions: 0 })
})

test('sixty relays of nine tenths of a second are 54 seconds', async () => {
  const user = await api.given.user()
  const { start } = await cycleOf(user)
  const intervals = Array.from({ length: 60 }, (_, place) => ({
    from: start + place * 1000,
    to: start + place * 1000 + 900,
  }))
  await replaceIntervals(user, await insertSession(user), intervals)
  expect((await usageOf(sql, user.userId)).consumedSeconds).toBe(54)
})

test('a part of a second is not yet a second', async () => {
  const user = await api.given.user()
  const { start } = await cycleOf(user)
  await replaceIntervals(user, await insertSession(user), [{ from: start, to: start + 999 }])
  expect((await usageOf(sql, user.userId)).consumedSeconds).toBe(0)
})

test('of a relay that ran over the end of a cycle only the part within counts', async () => {
  const user = await api.given.user()
  const { start, end } = await cycleOf(user)
  const session = await insertSession(user)
  const consumedOf = async (...intervals: Interval[]) => {
    await replaceIntervals(user, session, intervals)
    return (await usageOf(sql, user.userId)).consumedSeconds
  }
  expect(await consumedOf({ from: start - 3_600_000, to: start + 90_000 })).toBe(90)
  expect(await consumedOf({ from: end - 60_000, to: end + 3_600_000 })).toBe(60)
  expect(await consumedOf({ from: start - 1000, to: end + 1000 })).toBe((end - start) / 1000)
  expect(await consumedOf({ from: start - 2000, to: start })).toBe(0)
  expect(await consumedOf({ from: end, to: end + 2000 })).toBe(0)
  expect(await consumedOf({ from: start - 2000, to: start - 1000 }, { from: end + 1000, to: end + 2000 })).toBe(0)
})

test('relays that run at once add up, and one that still runs counts to now', async () => {
  const user = await api.given.user()
  const { start } = await cycleOf(user)
  const session = await insertSession(user)
  await replaceIntervals(user, session, [
    { from: start, to: start + 10_000 },
    { from: start + 5000, to: start + 15_000 },
    { from: Date.now() - 30_000, to: null },
  ])
  const { consumedSeconds, activeSessions } = await usageOf(sql, user.userId)
  expect(activeSessions).toBe(1)
  const running = consumedSeconds - 20
  const atLeast = Math.min(30, Math.floor((Date.now() - start) / 1000) - 1)
  expect(running).toBeGreaterThanOrEqual(atLeast)
  expect(running).toBeLessThan(35)
})

test('a session never has two intervals that run, nor one that ends before it begins', async () => {
  const user = await api.given.user()
  const session = await insertSession(user)
  const now = Date.now()
  const twice = replaceIntervals(user, session, [
    { from: now, to: null },
    { from: now, to: null },
  ])
  await expect(twice).rejects.toThrow(/usage_intervals_open/)
  await expect(replaceIntervals(user, session, [{ from: now, to: now - 1 }])).rejects.toThrow(/check/)
})

test('whatever ran, what is left and what is over fit what is included and what is used', async () => {
  const user = await api.given.user()
  const session = await insertSession(user)
  const { start, end } = await cycleOf(user)
  const day = 86_400_000
  const anyInterval = fc
    .tuple(fc.integer({ min: start - 2 * day, max: end + 2 * day }), fc.integer({ min: 0, max: 3 * day }))
    .map(([from, length]) => ({ from, to: from + length }))
  const anyPlan = fc.record({ paid: fc.boolean(), addons: fc.nat(3), hoursPerRelay: fc.nat(300) })
  await fc.assert(
    fc.asyncProperty(fc.array(anyInterval, { maxLength: 30 }), anyPlan, async (intervals, plan) => {
      await replaceIntervals(user, session, intervals)
      await sql`
        update users set plan_tier = ${plan.paid ? 'paid' : 'free'}, addons = ${plan.addons} where id = ${user.userId}`
      const timeBank = { hoursPerRelay: plan.hoursPerRelay, enforcement: 'report' as const }
      const entitlement = await entitlementOf(sql, user.userId, timeBank)
      if (!entitlement) throw new Error('the account is gone')
      const shown = presentUsage(await usageOf(sql, user.userId), entitlement, timeBank)
      const { included_seconds, consumed_seconds, remaining_seconds, overage_seconds } = shown

      const within = intervals.map(({ from, to }) => Math.max(0, Math.min(to, end) - Math.max(from, start)))
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
    { numRuns: 60 },
  )
})
