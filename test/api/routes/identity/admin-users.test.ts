/** The operators' search for accounts, and how they disable and change one. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { type ErrorBody, statusAndCode } from '../../../support/api.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, type OneSession, operator, type RelayUser, type TestService } from '../../../support/relays.ts'

/** Its relays send no reports, so that each transition is the operator's. */
let service: TestService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: {
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
      SVC_RELAY_STOP_GRACE_SECONDS: '300',
      SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
    },
  })
})

const get = <Body = Partial<ErrorBody>>(path: string) => service.api.get<Body>(`/admin${path}`, { headers: operator })
const post = <Body = Partial<ErrorBody>>(path: string, body: object) =>
  service.api.post<Body>(`/admin${path}`, body, { headers: operator })
const transition = (id: string, to: string) => post<OneSession>(`/sessions/${id}/transition`, { to })
const entriesOf = async (userId: string, action: string) =>
  service.api
    .sql`select initiator, ip, detail from audit_entries where user_id = ${userId} and action = ${action} order by id`

interface Users {
  readonly users: readonly { readonly id: string; readonly email: string }[]
  readonly next_cursor: null
}
interface UserDetail {
  readonly user: Record<string, unknown>
  readonly entitlement: Record<string, unknown>
  readonly usage: Record<string, unknown>
  readonly sessions: readonly SessionView[]
}

const started = async (plan?: { addons: number }) => {
  const user = await service.user(plan)
  return { user, session: (await user.start()).body.session }
}
/** A relay that provisions and one on the air. */
const withTwoRelays = async (): Promise<{ user: RelayUser; ids: string[] }> => {
  const user = await service.user()
  const ids = []
  for (const name of ['a', 'b']) ids.push((await user.start({ connection_id: name })).body.session.session_id)
  expect((await transition(ids[0] ?? '', 'active')).status).toBe(200)
  return { user, ids }
}
const expectEnded = async (ids: readonly string[], by: 'operator' | 'system') => {
  for (const id of ids) {
    const { session, transitions } = await eventually(
      () => service.history(id),
      (history) => history.session.state === 'stopped',
    )
    expect(session.reason).toBe('force_disconnected')
    expect(transitions.at(-1)).toMatchObject({ to: 'stopped', reason: 'force_disconnected', initiator: by })
  }
}

describe('an account', () => {
  test('is found by its address in any case, and not by another', async () => {
    const user = await service.user()
    const found = await get<Users>(`/users?email=${encodeURIComponent(` ${user.email.toUpperCase()} `)}`)
    expect([found.status, found.body.users.map(({ id }) => id), found.body.next_cursor]).toEqual([
      200,
      [user.userId],
      null,
    ])
    for (const email of ['nobody@example.com', '%25', '_', "' or 1=1 --"])
      expect((await get<Users>(`/users?email=${email}`)).body).toEqual({ users: [], next_cursor: null })
    for (const query of ['', '?email=', '?email=a&email=b', `?email=${'a'.repeat(255)}`])
      expect(statusAndCode(await get(`/users${query}`))).toEqual([400, 'invalid_request'])
  })

  test('is listed by plan and by whether it is disabled, in pages, each account once', async () => {
    const ids: string[] = []
    for (let index = 0; index < 53; index += 1) ids.push((await service.api.given.user()).userId)
    await service.api.sql`update users set disabled_at = now() where id = any(${ids}::uuid[])`
    const listed: string[] = []
    const sizes: number[] = []
    let cursor: string | null = null
    do {
      const page: { body: { users: readonly { id: string }[]; next_cursor: string | null } } = await get(
        `/users?plan_tier=free&plan_status=none&disabled=true${cursor === null ? '' : `&cursor=${cursor}`}`,
      )
      listed.push(...page.body.users.map(({ id }) => id))
      sizes.push(page.body.users.length)
      cursor = page.body.next_cursor
    } while (cursor !== null)
    expect(sizes).toEqual([50, listed.length - 50])
    expect(listed).toEqual(listed.toSorted())
    expect(new Set(listed).size).toBe(listed.length)
    expect(ids.filter((id) => !listed.includes(id))).toEqual([])
    const paid = await get<Users>('/users?plan_tier=paid&disabled=true')
    expect(paid.body.users.filter(({ id }) => ids.includes(id))).toEqual([])
    for (const query of ['?plan_tier=gold', '?disabled=yes', '?disabled=true&cursor=x'])
      expect(statusAndCode(await get(`/users${query}`))).toEqual([400, 'invalid_request'])
  })

  test('is found by every Unicode form of its address', async () => {
    const { userId, email } = await service.user()
    await service.api.sql`update users set email = ${`é${email}`} where id = ${userId}`
    const { body } = await get<Users>(`/users?email=${encodeURIComponent(`e\u0301${email}`)}`)
    expect(body.users.map(({ id }) => id)).toEqual([userId])
  })

  test('is not found by an address that only looks like its own', async () => {
    const { userId, email } = await service.user()
    await service.api.sql`update users set email = ${`k${email}`} where id = ${userId}`
    const { status, body } = await get<Users>(`/users?email=${encodeURIComponent(`\u212a${email}`)}`)
    expect([status, body]).toEqual([200, { users: [], next_cursor: null }])
  })

  test('is shown with its entitlement and its live sessions', async () => {
    const { user, session } = await started({ addons: 1 })
    const { status, body } = await get<UserDetail>(`/users/${user.userId}`)
    expect(status).toBe(200)
    const fields = ['entitlement', 'play_keys', 'play_with_keys_only', 'sessions', 'subscription', 'usage', 'user']
    expect(Object.keys(body).sort()).toEqual(fields)
    expect(body.user).toMatchObject({ id: user.userId, email: user.email, plan_tier: 'paid', disabled: false })
    expect(body.entitlement).toMatchObject({ active_managed_conns: 1, max_concurrent_conns: 2 })
    expect(body.usage).toMatchObject({ consumed_seconds: 0, enforcement: expect.any(String) })
    expect(body.sessions.map(({ session_id }) => session_id)).toEqual([session.session_id])
    expect(statusAndCode(await get(`/users/${randomUUID()}`))).toEqual([404, 'not_found'])
  })
})

test('an account shows the names of its play keys to operators, and no key', async () => {
  const user = await service.api.given.user()
  const { body: made } = await service.api.post<{ key: string }>(
    '/relay/play-keys',
    { name: 'Studio PC' },
    { bearer: user.bearer },
  )
  const { body } = await get<UserDetail & { play_keys: readonly object[] }>(`/users/${user.userId}`)
  expect(body.play_keys).toEqual([
    {
      id: expect.any(String),
      name: 'Studio PC',
      kind: 'own',
      connection_id: null,
      created_at: expect.any(String),
      last_used_at: null,
    },
  ])
  expect(JSON.stringify(body)).not.toContain(made.key)
})

describe('a grant', () => {
  const grant = (userId: string, body: object) => post<{ entitlement: object }>(`/users/${userId}/grant`, body)

  test.each([0, 1, 2, 3])('of %i add-ons allows one relay more than that', async (addons) => {
    const { userId } = await service.api.given.user()
    const { status, body } = await grant(userId, { plan_tier: 'paid', addons })
    expect([status, body]).toEqual([
      200,
      {
        entitlement: {
          relay_access_status: 'enabled',
          reason_code: 'ok',
          plan_tier: 'paid',
          plan_status: 'active',
          active_managed_conns: 0,
          max_concurrent_conns: 1 + addons,
          grace_ends_at: null,
        },
      },
    ])
    expect(await entriesOf(userId, 'plan_granted')).toMatchObject([
      { initiator: 'operator', detail: { plan_tier: 'paid', addons, until: null } },
    ])
  })

  test.each([
    { plan_tier: 'paid', addons: 4 },
    { plan_tier: 'paid', addons: -1 },
    { plan_tier: 'paid', addons: 1.5 },
    { plan_tier: 'paid', addons: '2' },
    { plan_tier: 'paid', addons: null },
    { plan_tier: 'gold' },
    { addons: 1 },
    { plan_tier: 'paid', until: 'tomorrow' },
    { plan_tier: 'paid', until: 4_102_444_800 },
    { plan_tier: 'paid', until: '2030-02-30T00:00:00Z' },
    { plan_tier: 'paid', until: '0000-01-01T00:00:00Z' },
    { plan_tier: 'paid', until: '9999-12-31T23:59:59-10:00' },
    {},
  ])('of %j is a bad request and changes nothing', async (body) => {
    const { userId } = await service.api.given.user()
    expect(statusAndCode(await grant(userId, body))).toEqual([400, 'invalid_request'])
    expect(await entriesOf(userId, 'plan_granted')).toHaveLength(0)
    expect((await get<UserDetail>(`/users/${userId}`)).body.entitlement).toMatchObject({ plan_tier: 'free' })
  })

  test('to an unknown account is not found', async () => {
    expect(statusAndCode(await grant(randomUUID(), { plan_tier: 'paid' }))).toEqual([404, 'not_found'])
  })

  test('lasts until its end, and a grant that has ended has no effect', async () => {
    const { userId } = await service.api.given.user()
    const until = (text: string) => grant(userId, { plan_tier: 'paid', addons: 2, until: text })
    expect((await until('2999-01-01T00:00:00+02:00')).body.entitlement).toMatchObject({ max_concurrent_conns: 3 })
    expect((await until('2020-01-01T00:00:00Z')).body.entitlement).toMatchObject({
      relay_access_status: 'disabled',
      reason_code: 'plan_required',
      plan_tier: 'free',
      plan_status: 'none',
      max_concurrent_conns: 0,
    })
  })

  test.each([{ plan_tier: 'free' }, { plan_tier: 'paid', addons: 3, until: '2020-01-01T00:00:00Z' }])(
    'of %j ends live relays',
    async (plan) => {
      const { user, ids } = await withTwoRelays()
      expect((await grant(user.userId, plan)).body.entitlement).toMatchObject({ relay_access_status: 'disabled' })
      await expectEnded(ids, 'system')
      expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
    },
  )
})

describe('an account that is disabled', () => {
  const disable = (userId: string, body: object = {}) =>
    post<{ user: { id: string } }>(`/users/${userId}/disable`, body)
  const isSignedIn = async (bearer: string) => (await service.api.get('/auth/session', { bearer })).status === 200

  test('loses its auth sessions and relays at once', async () => {
    const { user, ids } = await withTwoRelays()
    const elsewhere = await service.api.given.signIn(user, 'OBS plugin')
    const { status, body } = await disable(user.userId)
    expect([status, body.user.id]).toEqual([200, user.userId])
    expect([await isSignedIn(user.bearer), await isSignedIn(elsewhere.bearer)]).toEqual([false, false])
    for (const { refreshToken } of [user, elsewhere])
      expect(statusAndCode(await service.api.post('/auth/refresh', { refresh_token: refreshToken }))).toEqual([
        401,
        'invalid_refresh_token',
      ])
    const { email, password } = user
    expect(statusAndCode(await service.api.post('/auth/login', { email, password }))).toEqual([403, 'account_disabled'])
    await expectEnded(ids, 'operator')
    expect(await entriesOf(user.userId, 'account_disabled')).toMatchObject([{ initiator: 'operator' }])
    expect((await get<UserDetail>(`/users/${user.userId}`)).body.entitlement).toMatchObject({
      relay_access_status: 'disabled',
      reason_code: 'operator_disabled',
    })
  })

  test('can be enabled again and has to sign in again', async () => {
    const user = await service.user()
    for (const body of [{}, { disabled: true }, { disabled: false }])
      expect((await disable(user.userId, body)).status).toBe(200)
    expect(await isSignedIn(user.bearer)).toBe(false)
    const again = await service.api.given.signIn(user)
    expect(await isSignedIn(again.bearer)).toBe(true)
    expect(await entriesOf(user.userId, 'account_enabled')).toHaveLength(1)
  })

  test('gets no tokens from a plugin login that it approved before', async () => {
    const user = await service.user()
    const { body } = await service.api.post<{ login_attempt_id: string; poll_token: string }>(
      '/auth/plugin/login/start',
    )
    const { login_attempt_id, poll_token } = body
    await service.api.post(`/auth/plugin/login/attempts/${login_attempt_id}/approve`, undefined, {
      bearer: user.bearer,
    })
    await disable(user.userId)
    await disable(user.userId, { disabled: false })
    const polled = await service.api.post('/auth/plugin/login/poll', { login_attempt_id, poll_token })
    expect(statusAndCode(polled)).toEqual([403, 'attempt_denied'])
  })

  test('starts no relay with a request that was authenticated just before', async () => {
    const user = await service.user()
    for (let round = 0; round < 5; round += 1) {
      await disable(user.userId, { disabled: false })
      const again = await service.api.given.signIn(user)
      await Promise.all([
        ...['a', 'b', 'c'].map((connection_id) =>
          service.api.post(
            '/relay/start',
            { connection_id },
            { bearer: again.bearer, headers: { 'Idempotency-Key': randomUUID() } },
          ),
        ),
        disable(user.userId),
      ])
      const running = await service.api
        .sql`select from relay_sessions where user_id = ${user.userId} and state <> 'stopped' and command = 'run'`
      expect(running).toHaveLength(0)
    }
  })

  test('must exist, and the value must be a boolean', async () => {
    expect(statusAndCode(await disable(randomUUID()))).toEqual([404, 'not_found'])
    const { userId } = await service.api.given.user()
    for (const disabled of ['true', 1, null])
      expect(statusAndCode(await disable(userId, { disabled }))).toEqual([400, 'invalid_request'])
    expect((await service.api.sql`select from users where id = ${userId} and disabled_at is null`).length).toBe(1)
  })
})

describe('access to relays', () => {
  const allow = (userId: string, enabled: unknown) =>
    post<{ entitlement: object }>(`/users/${userId}/relay-access`, { enabled })

  test('can be disabled, which ends live relays whatever the plan, and enabled again', async () => {
    const { user, ids } = await withTwoRelays()
    const { status, body } = await allow(user.userId, false)
    expect([status, body.entitlement]).toMatchObject([
      200,
      { relay_access_status: 'disabled', reason_code: 'operator_disabled', plan_tier: 'paid' },
    ])
    await expectEnded(ids, 'operator')
    expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
    expect((await service.api.get('/auth/session', { bearer: user.bearer })).status).toBe(200)
    expect((await allow(user.userId, true)).body.entitlement).toMatchObject({ relay_access_status: 'enabled' })
    expect((await user.start()).status).toBe(201)
    for (const action of ['relay_access_disabled', 'relay_access_enabled'])
      expect(await entriesOf(user.userId, action)).toMatchObject([{ initiator: 'operator' }])
  })

  test('requires a boolean and an existing account', async () => {
    const { userId } = await service.api.given.user()
    for (const enabled of [undefined, null, 'no', 0])
      expect(statusAndCode(await allow(userId, enabled))).toEqual([400, 'invalid_request'])
    expect(statusAndCode(await allow(randomUUID(), true))).toEqual([404, 'not_found'])
  })
})
