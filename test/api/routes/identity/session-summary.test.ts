/** The account summary that plugins and the site read. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { type ErrorBody, streamTokenOf } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { type RelayUser, startService, type TestService } from '../../../support/relays.ts'

let service: TestService
beforeAll(async () => {
  const limits = highLimits({ usage: 30 })
  service = await startService({
    worker: false,
    variables: { SVC_TIME_BANK_HOURS_PER_RELAY: '2', SVC_RATE_LIMITS: limits },
  })
})

interface Usage {
  readonly cycle_start: string
  readonly cycle_end: string
  readonly included_seconds: number
  readonly consumed_seconds: number
  readonly remaining_seconds: number
  readonly overage_seconds: number
  readonly active_sessions: number
  readonly enforcement: string
  readonly as_of: string
}
interface Summary {
  readonly user: Record<string, unknown>
  readonly entitlement: Record<string, unknown>
  readonly usage: Usage
  readonly active_relay: SessionView | null
}

const summaryOf = async ({ bearer }: { bearer: string }, query = '') =>
  (await service.api.get<Summary>(`/auth/session${query}`, { bearer })).body
const usageOf = async ({ bearer }: { bearer: string }) =>
  (await service.api.get<Usage>('/usage/current', { bearer })).body
const set = (user: RelayUser, column: string, value: string | boolean | null) =>
  service.api.sql`update users set ${service.api.sql({ [column]: value })} where id = ${user.userId}`
/** An interval of relay time from so many seconds ago, to so many. */
const useRelay = async (user: RelayUser, from: number, to: number | null) => {
  const { session } = (await user.start({ connection_id: 'used' })).body
  await service.api.sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at) values (${session.session_id}, ${user.userId},
      now() - make_interval(secs => ${from}), ${to === null ? null : service.api.sql`now() - make_interval(secs => ${to})`})`
}

describe('the account summary', () => {
  test('of a new account has user, entitlement, usage and no relay', async () => {
    const account = await service.api.given.user()
    const answer = await service.api.get<Summary>('/auth/session', { bearer: account.bearer })
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(answer.body).toEqual({
      user: {
        id: account.userId,
        email: account.email,
        email_verified: false,
        plan_tier: 'free',
        relay_access_status: 'disabled',
        stream_token: expect.stringMatching(/^[A-Za-z0-9]{8}$/),
        linked_accounts: [
          { provider: 'twitch', linked: false },
          { provider: 'google', linked: false },
          { provider: 'discord', linked: false },
        ],
        created_at: expect.stringMatching(/Z$/),
      },
      entitlement: {
        relay_access_status: 'disabled',
        reason_code: 'plan_required',
        plan_tier: 'free',
        plan_status: 'none',
        active_managed_conns: 0,
        max_concurrent_conns: 0,
        grace_ends_at: null,
      },
      usage: {
        cycle_start: expect.stringMatching(/-01T00:00:00.000Z$/),
        cycle_end: expect.stringMatching(/-01T00:00:00.000Z$/),
        included_seconds: 0,
        consumed_seconds: 0,
        remaining_seconds: 0,
        overage_seconds: 0,
        active_sessions: 0,
        enforcement: 'report',
        as_of: expect.stringMatching(/Z$/),
      },
      first_steps: {
        address_verified: false,
        plan: false,
        relay_started: false,
        phone_connected: false,
        player_connected: false,
      },
      active_relay: null,
    })
  })

  test('of a paid account shows its oldest relay', async () => {
    const user = await service.user({ addons: 2 })
    const first = (await user.start({ connection_id: 'first' })).body.session
    await user.start({ connection_id: 'second' })
    const { entitlement, usage, active_relay } = await summaryOf(user)
    expect(entitlement).toEqual({
      relay_access_status: 'enabled',
      reason_code: 'ok',
      plan_tier: 'paid',
      plan_status: 'active',
      active_managed_conns: 2,
      max_concurrent_conns: 3,
      grace_ends_at: null,
    })
    expect(usage.included_seconds).toBe(2 * 3600 * 3)
    expect(active_relay).toEqual(first)
  })

  test('for the dock contains no secrets', async () => {
    const user = await service.user()
    const { session } = (await user.start()).body
    const secrets = [session.pair_token, session.relay_ws_token, await streamTokenOf(service.api, user.userId)]
    const { user: shown, active_relay } = await summaryOf(user, '?view=dock')
    expect(shown).not.toHaveProperty('stream_token')
    for (const secret of secrets) {
      expect(secret).toMatch(/./)
      expect(JSON.stringify({ shown, active_relay })).not.toContain(secret)
    }
  })

  test('shows why relays are not available', async () => {
    const user = await service.user()
    await set(user, 'relay_access_enabled', false)
    expect((await summaryOf(user)).entitlement).toMatchObject({
      relay_access_status: 'disabled',
      reason_code: 'operator_disabled',
      plan_tier: 'paid',
    })
    expect((await user.start()).status).toBe(403)
    await set(user, 'relay_access_enabled', true)
    await set(user, 'plan_tier', 'free')
    await set(user, 'plan_status', 'none')
    const ended = await summaryOf(user)
    expect(ended.entitlement).toMatchObject({ reason_code: 'plan_required', plan_tier: 'free', plan_status: 'none' })
    expect(ended.user).toMatchObject({ plan_tier: 'free', relay_access_status: 'disabled' })
  })

  test('shows when the payment grace period ends', async () => {
    const user = await service.user()
    await set(user, 'plan_status', 'past_due')
    await set(user, 'payment_grace_ends_at', '2030-01-01T00:00:00Z')
    expect((await summaryOf(user)).entitlement).toMatchObject({
      plan_status: 'past_due',
      relay_access_status: 'enabled',
      grace_ends_at: '2030-01-01T00:00:00.000Z',
    })
  })

  test.each(['', 'x', 'Bearer', 'e30.e30.e30'])('requires a valid access token, not %j', async (bearer) => {
    const answer = await service.api.get<ErrorBody>('/auth/session', { bearer })
    expect([answer.status, answer.body.error.code]).toEqual([401, 'unauthorized'])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
  })

  test('is refused once the auth session is revoked, before the token expires', async () => {
    const account = await service.api.given.user()
    await service.api.post('/auth/logout', undefined, { bearer: account.bearer })
    expect((await service.api.get('/auth/session', { bearer: account.bearer })).status).toBe(401)
  })
})

describe('the usage', () => {
  test('counts ended and live relays against the included time', async () => {
    const startedAt = performance.now()
    const user = await service.user({ addons: 0 })
    await useRelay(user, 100, 40)
    await useRelay(user, 30, null)
    const usage = await usageOf(user)
    expect(usage).toMatchObject({
      included_seconds: 7200,
      overage_seconds: 0,
      active_sessions: 1,
      enforcement: 'report',
    })
    expect(usage.consumed_seconds).toBeGreaterThanOrEqual(90)
    expect(usage.consumed_seconds).toBeLessThan(95 + (performance.now() - startedAt) / 1000)
    expect(usage.remaining_seconds).toBe(7200 - usage.consumed_seconds)
    expect((await summaryOf(user)).usage).toMatchObject({ included_seconds: 7200, active_sessions: 1 })
  })

  test('beyond the included time is shown as overage and refuses nothing', async () => {
    const user = await service.user({ addons: 0 })
    const [clock] = await service.api
      .sql`select extract(epoch from now() - date_trunc('month', now(), 'UTC'))::int as day`
    await service.api.sql`delete from usage_intervals where user_id = ${user.userId}`
    const seconds = Math.min(8000, clock?.day)
    await useRelay(user, seconds, 0)
    const usage = await usageOf(user)
    expect(usage.consumed_seconds).toBe(seconds)
    expect([usage.remaining_seconds, usage.overage_seconds]).toEqual([
      Math.max(0, 7200 - seconds),
      Math.max(0, seconds - 7200),
    ])
    expect((await user.start({ connection_id: 'used' })).status).toBe(200)
  })

  test('does not include other accounts', async () => {
    const [user, other] = [await service.user(), await service.user()]
    await useRelay(user, 50, 10)
    expect((await usageOf(other)).consumed_seconds).toBe(0)
    expect((await service.api.get('/usage/current')).status).toBe(401)
  })

  test('is limited to thirty requests a minute', async () => {
    const { bearer } = await service.api.given.user()
    const answers = await Promise.all(
      Array.from({ length: 31 }, () =>
        service.api.get('/usage/current', { bearer, headers: { 'X-Id': randomUUID() } }),
      ),
    )
    expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(30).fill(200), 429])
  })
})
