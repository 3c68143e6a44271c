/** The relay time of an account: its limit, its days and its forecast. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { statusAndCode } from '../../../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { useRelayTime } from '../../../support/relay-time.ts'
import { operator, type RelayUser } from '../../../support/relays.ts'

/** An hour is included for each relay, and no more is given. */
let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: {
      SVC_TIME_BANK_ENFORCEMENT: 'enforce',
      SVC_TIME_BANK_HOURS_PER_RELAY: '1',
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '60',
      SVC_RELAY_STOP_GRACE_SECONDS: '60',
    },
  })
})

/** An account in the middle of a billing period of 60 days. */
async function paidUser(addons = 0): Promise<RelayUser> {
  const user = await service.user({ addons })
  await service.api.sql`
    update users set period_start = now() - interval '30 days', period_end = now() + interval '30 days'
    where id = ${user.userId}`
  return user
}

/** Relay time that was used up to a day ago, or to as many. */
const use = ({ userId }: RelayUser, seconds: number, daysAgo = 1) =>
  useRelayTime(service.api.sql, userId, seconds, daysAgo)

/** A relay that has reported, so that its time is counted. */
async function activeRelay(user: RelayUser): Promise<string> {
  return (await service.startActiveRelay(user)).session_id
}

const summaryOf = async ({ bearer }: RelayUser) =>
  (await service.api.get<{ entitlement: object }>('/auth/session', { bearer })).body
const exhausted = [403, 'usage_exhausted']

describe('an account that has used up the relay time of its cycle', () => {
  test('gets no new relay, with the reason in every response', async () => {
    const user = await paidUser()
    await use(user, 3600)
    expect(statusAndCode(await user.start())).toEqual(exhausted)
    const shown = { relay_access_status: 'disabled', reason_code: 'usage_exhausted', plan_tier: 'paid' }
    expect(await summaryOf(user)).toMatchObject({
      user: { relay_access_status: 'disabled' },
      entitlement: shown,
      usage: { included_seconds: 3600, consumed_seconds: 3600, remaining_seconds: 0, enforcement: 'enforce' },
      active_relay: null,
    })
    const seen = await service.api.get(`/admin/users/${user.userId}`, { headers: operator })
    expect(seen.body).toMatchObject({ entitlement: shown })
    const found = await service.api.get(`/admin/users?email=${user.email}`, { headers: operator })
    expect(found.body).toMatchObject({ users: [{ relay_access_status: 'disabled' }] })
  })

  test('had relays available a second earlier', async () => {
    const user = await paidUser()
    await use(user, 3599)
    expect((await summaryOf(user)).entitlement).toMatchObject({ reason_code: 'ok' })
    expect((await user.start()).status).toBe(201)
  })

  test('gets a relay in the next cycle or with an add-on, for the same request that was refused', async () => {
    const [renewed, extended] = [await paidUser(), await paidUser()]
    for (const user of [renewed, extended]) {
      await use(user, 4000, 2)
      const key = randomUUID()
      expect(statusAndCode(await user.start({}, key))).toEqual(exhausted)
      if (user === renewed)
        await service.api.sql`update users set period_start = now() - interval '1 day' where id = ${user.userId}`
      else await service.api.sql`update users set addons = 1 where id = ${user.userId}`
      expect((await user.start({}, key)).status).toBe(201)
    }
  })

  test('keeps its live relay and can read and stop it', async () => {
    const user = await paidUser(1)
    const key = randomUUID()
    const sessionId = await activeRelay(user)
    await use(user, 7200)
    const again = await user.start({}, key)
    expect([again.status, again.body.session]).toMatchObject([200, { session_id: sessionId, state: 'active' }])
    expect(statusAndCode(await user.start({ connection_id: 'other' }))).toEqual(exhausted)
    expect(await summaryOf(user)).toMatchObject({
      entitlement: { reason_code: 'usage_exhausted', active_managed_conns: 1 },
      usage: { active_sessions: 1, remaining_seconds: 0 },
      active_relay: { session_id: sessionId, state: 'active' },
    })

    const stopping = await user.stop({ session_id: sessionId })
    expect([stopping.status, stopping.body.session.state]).toEqual([200, 'grace'])
    expect(statusAndCode(await user.start())).toEqual(exhausted)
    const replayed = await user.start({}, key)
    expect([replayed.status, replayed.body.session.state]).toEqual([200, 'grace'])
    const stopped = await user.stop({ session_id: sessionId, immediate: true })
    expect(stopped.body.session.state).toBe('stopped')
  })

  test('reports a block by an operator or a missing plan first', async () => {
    const user = await paidUser()
    await use(user, 3600)
    const { sql } = service.api
    const reason = async () => (await summaryOf(user)).entitlement
    await sql`update users set relay_access_enabled = false where id = ${user.userId}`
    expect(await reason()).toMatchObject({ reason_code: 'operator_disabled' })
    expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
    await sql`update users set relay_access_enabled = true, plan_tier = 'free', plan_status = 'none' where id = ${user.userId}`
    expect(await reason()).toMatchObject({ reason_code: 'plan_required' })
    expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
  })
})

describe('relay time by day', () => {
  interface Days {
    readonly consumed_seconds: number
    readonly included_seconds: number
    readonly forecast_seconds: number | null
    readonly exhausted_at: string | null
    readonly connections: readonly { connection_id: string | null; seconds: number }[]
    readonly days: readonly { day: string; seconds: number }[]
  }
  const daysOf = async ({ bearer }: Pick<RelayUser, 'bearer'>) =>
    (await service.api.get<Days>('/usage/days', { bearer })).body

  test('adds up to the current usage, with a forecast at the present pace', async () => {
    const user = await paidUser()
    await use(user, 1200, 1)
    await use(user, 1000, 9)
    const body = await daysOf(user)
    expect(body.days.reduce((sum, { seconds }) => sum + seconds, 0)).toBe(2200)
    expect(body.connections.map(({ seconds }) => seconds)).toEqual([1200, 1000])
    expect(body).toMatchObject({ consumed_seconds: 2200, included_seconds: 3600 })
    // Half of the billing period has passed.
    expect(Math.abs((body.forecast_seconds ?? 0) - 4400)).toBeLessThanOrEqual(1)
    expect(Date.parse(body.exhausted_at ?? '')).toBeGreaterThan(Date.now())
  })

  test('is empty for an account that used none, and of no one without a sign-in', async () => {
    expect(await daysOf(await service.user())).toMatchObject({ consumed_seconds: 0, days: [], connections: [] })
    expect(statusAndCode(await service.api.get('/usage/days', {}))).toEqual([401, 'unauthorized'])
  })
})
