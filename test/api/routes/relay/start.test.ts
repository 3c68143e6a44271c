/** The start of a relay: reservation, limits, capacity. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { listStatesAndCommands } from '../../../support/relay-rows.ts'
import { startService, type TestService } from '../../../support/relays.ts'

const regions = JSON.stringify([
  { region: 'here', display_name: 'Here', provider: 'local', default: true },
  { region: 'tiny', display_name: 'Tiny', provider: 'local', capacity: 1 },
])

/** Without a worker, so that sessions keep the state in which they were accepted. */
let service: TestService
beforeAll(async () => {
  const variables = { SVC_REGIONS: regions, SVC_RATE_LIMITS: highLimits({ relay_start: 6 }) }
  service = await startService({ worker: false, variables })
})

const removePlan = (userId: string) => service.api.sql`update users set plan_tier = 'free' where id = ${userId}`

describe('a start', () => {
  test('reserves a session, and a second start of the connection returns the same session', async () => {
    const user = await service.user()
    const first = await user.start()
    expect(first.status).toBe(201)
    const unknown = { level: 'unknown', code: 'unknown', since: expect.stringMatching(/Z$/) }
    expect(first.body.session).toEqual({
      session_id: expect.any(String),
      connection_id: 'default',
      state: 'provisioning',
      reason: 'start_requested',
      detail: null,
      region: 'here',
      instance_id: null,
      relay_host_masked: null,
      relay_host: null,
      pair_token: expect.stringMatching(/^[\w-]{32}$/),
      relay_ws_token: expect.stringMatching(/^[\w-]{32}$/),
      connect: null,
      created_at: expect.stringMatching(/Z$/),
      active_at: null,
      grace_ends_at: null,
      ends_at: expect.stringMatching(/Z$/),
      idle_ends_at: expect.any(String),
      ending_soon: false,
      stopped_at: null,
      ingest: null,
      signal: { phone: unknown, relay: { ...unknown, code: 'starting' }, player: unknown },
    })
    const second = await user.start()
    expect(second.status).toBe(200)
    expect(second.body).toEqual(first.body)
  })

  test('needs no request body', async () => {
    const { bearer } = await service.user()
    const headers = { 'Idempotency-Key': randomUUID() }
    const response = await service.api.post<{ session: SessionView }>('/relay/start', undefined, { bearer, headers })
    expect([response.status, response.body.session.connection_id]).toEqual([201, 'default'])
  })

  test('of five connections at the same time reserves four sessions on a plan with four relays', async () => {
    const user = await service.user({ addons: 3 })
    const responses = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => user.start({ connection_id: name })))
    expect(responses.map(statusAndCode).sort()).toEqual([
      ...Array(4).fill([201, undefined]),
      [403, 'relay_limit_reached'],
    ])
    expect(await listStatesAndCommands(service.api.sql, user.userId)).toHaveLength(4)
  })

  test('is refused without a plan, while live sessions can still be listed and stopped', async () => {
    const user = await service.user()
    await user.start()
    await removePlan(user.userId)
    expect(statusAndCode(await user.start({ connection_id: 'other' }))).toEqual([403, 'relay_access_denied'])
    expect((await user.active()).sessions).toHaveLength(1)
    expect((await user.stop({ connection_id: 'default' })).status).toBe(200)
  })

  test('is refused to an account that never had a plan', async () => {
    const { bearer } = await service.api.given.user()
    const headers = { 'Idempotency-Key': randomUUID() }
    const response = await service.api.post('/relay/start', {}, { bearer, headers })
    expect(statusAndCode(response)).toEqual([403, 'relay_access_denied'])
  })

  test('is refused in an unknown region and beyond the capacity of a region', async () => {
    const [user, otherUser] = [await service.user(), await service.user()]
    expect(statusAndCode(await user.start({ region: 'nowhere' }))).toEqual([400, 'invalid_request'])
    const responses = await Promise.all([user, otherUser].map((caller) => caller.start({ region: 'tiny' })))
    expect(responses.map(statusAndCode).sort()).toEqual([
      [201, undefined],
      [503, 'capacity_exhausted'],
    ])
    const refused = responses.find(({ status }) => status === 503)
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test.each(['', 'a'.repeat(65), 'a b', 'a/b', 'ü', 'a\n', '\0', 7, null, ['a'], {}])(
    'refuses the connection_id %j',
    async (connection_id) => {
      const user = await service.user()
      expect(statusAndCode(await user.start({ connection_id }))).toEqual([400, 'invalid_request'])
    },
  )

  test.each(['a', 'A-b_c.9', 'x'.repeat(64)])('accepts the connection_id %j', async (connection_id) => {
    const user = await service.user()
    expect((await user.start({ connection_id })).body.session.connection_id).toBe(connection_id)
  })

  test('with an invalid access token is refused before its idempotency key is checked', async () => {
    const response = await service.api.post('/relay/start', {}, { bearer: 'a.b.c' })
    expect(statusAndCode(response)).toEqual([401, 'unauthorized'])
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/)
  })

  test('of a user who has signed out is refused as signed out, whatever else is wrong with it', async () => {
    const { api } = service
    const user = await service.user()
    const key = { 'idempotency-key': randomUUID() }
    const starts = [{}, { region: 'here' }, { region: 'nowhere' }, { connection_id: '' }, { connection_id: 7 }]
    await api.sql`update auth_sessions set revoked_at = now(), revoked_for = 'logout' where user_id = ${user.userId}`
    for (const body of starts) {
      const answers = [
        await api.post('/relay/start', body, { bearer: user.bearer, headers: key }),
        await api.post('/relay/start', body, { bearer: user.bearer }),
      ]
      for (const answer of answers) {
        expect(statusAndCode(answer)).toEqual([401, 'unauthorized'])
        expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
        expect(answer.headers.get('ratelimit')).toBeNull()
      }
    }
    expect(await listStatesAndCommands(api.sql, user.userId)).toEqual([])
  })
})

describe('the rate limit of starts', () => {
  test('allows six requests a minute for each user, and each counted response states the remaining ones', async () => {
    const [user, otherUser] = [await service.user(), await service.user()]
    const keys = Array.from({ length: 7 }, () => randomUUID())
    const responses = []
    for (const key of keys) responses.push(await user.start({}, key))
    expect(responses.map(({ status }) => status)).toEqual([201, 200, 200, 200, 200, 200, 429])
    expect(responses.map(({ headers }) => headers.get('ratelimit')?.split(';')[1])).toEqual(
      [5, 4, 3, 2, 1, 0, 0].map((remaining) => `r=${remaining}`),
    )
    const refused = responses.at(-1)
    expect(refused && statusAndCode(refused)).toEqual([429, 'rate_limited'])
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused?.headers.get('ratelimit-policy')).toBe('"relay_start";q=6;w=60')
    expect((await otherUser.start()).status).toBe(201)

    // A replay is neither counted nor limited. The refused request stored no idempotency key, so its key can be used.
    const replay = await user.start({}, keys[0])
    expect([replay.status, replay.headers.get('ratelimit')]).toEqual([200, null])
    await service.api.sql`update rate_limit_windows set opened_at = opened_at - interval '1 minute'`
    expect((await user.start({}, keys[6])).status).toBe(200)
  })

  test('counts refused starts, and counts concurrent starts exactly', async () => {
    const user = await service.user()
    await removePlan(user.userId)
    const responses = await Promise.all(Array.from({ length: 20 }, () => user.start()))
    expect(responses.map(statusAndCode).sort()).toEqual([
      ...Array(6).fill([403, 'relay_access_denied']),
      ...Array(14).fill([429, 'rate_limited']),
    ])
  })
})
