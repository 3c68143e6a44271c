import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../api/relay-session-view.ts'
import { type ErrorBody, outcome, startApi, streamTokenOf } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'
import { type FakeRelayService, fakeInstanceId, startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually, type OneSession, operator, operatorPassword, startService } from '../../support/relays.ts'

const regions = JSON.stringify([
  { region: 'here', display_name: 'Here', provider: 'local', default: true },
  { region: 'there', display_name: 'There', provider: 'local', capacity: 500 },
])

/** Its relays send no reports, so that each transition is the operator's. */
let service: FakeRelayService
const patientTimes = {
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
  SVC_RELAY_STOP_GRACE_SECONDS: '300',
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
}
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: {
      ...patientTimes,
      SVC_REGIONS: regions,
      SVC_TEMPORAL_UI_URL: 'http://ui.example/',
    },
  })
})

const get = <Body = Partial<ErrorBody>>(path: string, headers: Record<string, string> = operator) =>
  service.api.get<Body>(`/admin${path}`, { headers })
const post = <Body = Partial<ErrorBody>>(path: string, body: object) =>
  service.api.post<Body>(`/admin${path}`, body, { headers: operator })
const transition = (id: string, to: string) => post<OneSession>(`/sessions/${id}/transition`, { to })
const basic = (name: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
})
const entriesOf = async (userId: string, action: string) =>
  service.api
    .sql`select initiator, ip, detail from audit_entries where user_id = ${userId} and action = ${action} order by id`

interface Sessions {
  readonly sessions: readonly (SessionView & { readonly user_id: string })[]
  readonly next_cursor: string | null
}
interface UserDetail {
  readonly user: Record<string, unknown>
  readonly entitlement: Record<string, unknown>
  readonly sessions: readonly SessionView[]
}

const started = async (plan?: { addons: number }) => {
  const user = await service.user(plan)
  return { user, session: (await user.start()).body.session }
}
const bound = async () => {
  const { user, session } = await started()
  await eventually(
    async () => (await user.active()).session?.instance_id,
    (instanceId) => instanceId != null,
  )
  return { user, session }
}

describe('operators', () => {
  const paths: [string, string][] = [
    ['GET', '/admin/users?email=a'],
    ['GET', `/admin/users/${randomUUID()}`],
    ['POST', `/admin/users/${randomUUID()}/grant`],
    ['POST', `/admin/users/${randomUUID()}/disable`],
    ['POST', `/admin/users/${randomUUID()}/relay-access`],
    ['GET', '/admin/audit'],
    ['GET', '/admin/sessions'],
    ['GET', `/admin/sessions/${randomUUID()}`],
    ['POST', `/admin/sessions/${randomUUID()}/disconnect`],
    ['POST', `/admin/sessions/${randomUUID()}/transition`],
    ['DELETE', '/admin/sessions'],
    ['GET', '/admin/anything'],
  ]

  test('are not there at all without a configured password', async () => {
    const api = await startApi()
    for (const [method, path] of paths) {
      const response = await fetch(`${api.url}/api/v1${path}`, { method, headers: basic('operator', '') })
      expect([method, path, response.status]).toEqual([method, path, 404])
      expect(response.headers.get('www-authenticate')).toBeNull()
    }
  })

  test.each([
    ['nothing', {}],
    ['a wrong password', basic('operator', 'wrong')],
    ['another name', basic('root', operatorPassword)],
    ['a shorter password', basic('operator', operatorPassword.slice(0, -1))],
    ['a bearer token', { Authorization: `Bearer ${operatorPassword}` }],
    ['no base64', { Authorization: 'Basic ¬¬¬' }],
  ])('are asked who they are when they bring %s', async (_, headers) => {
    const answer = await get('/sessions', headers as never)
    expect(outcome(answer)).toEqual([401, 'invalid_operator'])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm="/)
  })

  test('who guess five times are kept out for the minute, with the right password too', async () => {
    const api = await startApi({
      SVC_OPERATOR_PASSWORD: operatorPassword,
      SVC_RATE_LIMITS: highLimits({ operator: 5 }),
    })
    const ask = (headers: Record<string, string>, ip: string) => api.get('/admin/sessions', { headers, ip })
    for (let round = 0; round < 10; round += 1) expect((await ask(operator, '192.0.2.1')).status).toBe(200)
    for (let round = 0; round < 5; round += 1)
      expect(outcome(await ask(basic('operator', `guess ${round}`), '192.0.2.1'))).toEqual([401, 'invalid_operator'])
    const refused = await ask(operator, '192.0.2.1')
    expect(outcome(refused)).toEqual([429, 'rate_limited'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await ask(operator, '192.0.2.2')).status).toBe(200)
    await api.sql`update rate_limit_windows set opened_at = opened_at - interval '1 minute'`
    expect((await ask(operator, '192.0.2.1')).status).toBe(200)
  })

  test('who guess many times at once are told five times that they are wrong', async () => {
    const api = await startApi({
      SVC_OPERATOR_PASSWORD: operatorPassword,
      SVC_RATE_LIMITS: highLimits({ operator: 5 }),
    })
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, round) => api.get('/admin/sessions', { headers: basic('operator', `${round}`) })),
    )
    expect(answers.filter((answer) => answer.status === 401)).toHaveLength(5)
    expect(answers.filter((answer) => answer.status === 429)).toHaveLength(35)
  })
})

describe('a session', () => {
  test('is shown with what its actor says, its moves and where to look further', async () => {
    const { user, session } = await bound()
    const id = session.session_id
    await transition(id, 'active')
    const { status, body } = await get<Record<string, unknown>>(`/sessions/${id}`)
    expect(status).toBe(200)
    expect(body).toEqual({
      session: expect.objectContaining({
        session_id: id,
        user_id: user.userId,
        state: 'active',
        instance_id: fakeInstanceId(id),
        relay_host_masked: '198.51.x.x',
      }),
      live: {
        state: 'active',
        reason: 'relay_ready',
        version: 1,
        command_seq: 1,
        instance_id: fakeInstanceId(id),
        deadline_at: null,
        longest_at: expect.stringMatching(/Z$/),
      },
      transitions: [
        {
          from: 'provisioning',
          to: 'active',
          reason: 'relay_ready',
          initiator: 'operator',
          at: expect.stringMatching(/Z$/),
        },
      ],
      workflow_id: `relay-session/${id}`,
      temporal_ui_url: `http://ui.example/namespaces/default/workflows/relay-session%2F${id}`,
    })
    expect((await get<{ workflow_id: string }>(`/sessions/${id.toUpperCase()}`)).body).toEqual(body)
    expect(outcome(await get(`/sessions/${randomUUID()}`))).toEqual([404, 'not_found'])
  })

  test('is ended by a disconnect at once, through grace, and again is as it is', async () => {
    const { user, session } = await bound()
    await transition(session.session_id, 'active')
    const path = `/sessions/${session.session_id}/disconnect`
    for (const body of [{}, { reason: '' }, { reason: 'x'.repeat(501) }, { reason: 7 }])
      expect(outcome(await post(path, body))).toEqual([400, 'invalid_request'])
    const { status, body } = await post<OneSession>(path, { reason: 'abuse, reported twice' })
    expect([status, body.session]).toMatchObject([200, { state: 'stopped', reason: 'force_disconnected' }])
    expect((await service.history(session.session_id)).transitions.slice(1)).toMatchObject([
      { from: 'active', to: 'grace', reason: 'force_disconnected', initiator: 'operator' },
      { from: 'grace', to: 'stopped', reason: 'force_disconnected', initiator: 'operator' },
    ])
    const again = await post<OneSession>(path, { reason: 'once more' })
    expect([again.status, again.body]).toEqual([200, body])
    expect(await entriesOf(user.userId, 'session_disconnected')).toMatchObject([
      { initiator: 'operator', detail: { session_id: session.session_id, reason: 'abuse, reported twice' } },
      { initiator: 'operator', detail: { reason: 'once more' } },
    ])
    expect(outcome(await post(`/sessions/${randomUUID()}/disconnect`, { reason: 'x' }))).toEqual([404, 'not_found'])
  })

  test('makes each of the five moves by hand, and no other', async () => {
    const { user, session } = await bound()
    const id = session.session_id
    const refused = async (...ends: string[]) => {
      for (const to of ends) expect(outcome(await transition(id, to))).toEqual([409, 'invalid_transition'])
    }
    const moved = async (to: string, reason: string) =>
      expect((await transition(id, to)).body.session).toMatchObject({ state: to, reason })
    await refused('provisioning', 'grace')
    await moved('active', 'relay_ready')
    await refused('provisioning', 'active', 'stopped')
    await moved('grace', 'stop_requested')
    await refused('provisioning', 'grace')
    await moved('active', 'start_requested')
    await moved('grace', 'stop_requested')
    await moved('stopped', 'force_disconnected')
    await refused('provisioning', 'active', 'grace', 'stopped')

    const { session: other } = await started()
    expect((await transition(other.session_id, 'stopped')).body.session.state).toBe('stopped')
    expect((await entriesOf(user.userId, 'session_transitioned')).map((entry) => entry.detail.to)).toEqual([
      'active',
      'grace',
      'active',
      'grace',
      'stopped',
    ])
    expect(outcome(await transition(randomUUID(), 'active'))).toEqual([404, 'not_found'])
    for (const to of ['paused', '', 7, null])
      expect(outcome(await transition(id, to as string))).toEqual([400, 'invalid_request'])
  })

  test('in grace by hand does not count, and a start brings it back', async () => {
    const { user, session } = await started({ addons: 0 })
    await transition(session.session_id, 'active')
    await transition(session.session_id, 'grace')
    expect((await get<UserDetail>(`/users/${user.userId}`)).body.entitlement).toMatchObject({ active_managed_conns: 0 })
    expect((await user.start()).body.session).toMatchObject({ session_id: session.session_id, state: 'active' })
  })

  test('is asked for a move in vain while no worker runs, and can be looked at all the same', async () => {
    const still = await startService({ worker: false })
    const user = await still.user()
    const { session_id } = (await user.start()).body.session
    const [moved, shown] = await Promise.all([
      still.api.post(`/admin/sessions/${session_id}/transition`, { to: 'active' }, { headers: operator }),
      still.history(session_id),
    ])
    expect(outcome(moved)).toEqual([503, 'temporarily_unavailable'])
    expect(Number(moved.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(shown).toMatchObject({ session: { state: 'provisioning' }, live: null, transitions: [] })
  })

  test('makes no transition later that was answered with 503, and both the request and its end are audited', async () => {
    const service = await startFakeRelayService({ worker: false, variables: patientTimes })
    const user = await service.user()
    const { session_id } = (await user.start()).body.session
    const answer = await service.api.post(
      `/admin/sessions/${session_id}/transition`,
      { to: 'stopped' },
      { headers: operator },
    )
    expect(outcome(answer)).toEqual([503, 'temporarily_unavailable'])
    await service.startWorker()
    await eventually(
      () => service.history(session_id),
      ({ live }) => live?.instance_id != null,
    )
    const { session, transitions } = await service.history(session_id)
    expect([session.state, transitions]).toEqual(['provisioning', []])
    const entries = await service.api
      .sql`select action from audit_entries where user_id = ${user.userId} and initiator = 'operator' order by id`
    expect(entries.map((entry) => entry.action)).toEqual([
      'session_transition_requested',
      'session_transition_withdrawn',
    ])
  })

  test('brought back from a stop by hand counts against the limit, and no other start displaces it', async () => {
    const { user, session } = await started({ addons: 0 })
    await transition(session.session_id, 'active')
    await user.stop({ session_id: session.session_id })
    expect((await transition(session.session_id, 'active')).body.session).toMatchObject({ state: 'active' })
    expect((await get<UserDetail>(`/users/${user.userId}`)).body.entitlement).toMatchObject({ active_managed_conns: 1 })
    const other = await user.start({ connection_id: 'another' })
    expect(outcome(other)).toEqual([403, 'relay_limit_reached'])
    expect((await user.active()).session).toMatchObject({ session_id: session.session_id, state: 'active' })
  })
})

describe('the list of sessions', () => {
  test('is turned page by page, each session once, the newest first', async () => {
    const user = await service.api.given.user()
    await service.api.sql`
      insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq, created_at)
      select ${user.userId}, 'c' || n, 'there', 'user', 1, now() - make_interval(secs => n / 10) from generate_series(1, 205) n`
    const pages: Sessions[] = []
    let cursor: string | null = null
    do {
      const more: string = cursor ? `&cursor=${cursor}` : ''
      const { body }: { body: Sessions } = await get<Sessions>(`/sessions?user_id=${user.userId}${more}`)
      pages.push(body)
      cursor = body.next_cursor
    } while (cursor && pages.length < 10)
    expect(pages.map((page) => page.sessions.length)).toEqual([100, 100, 5])
    const all = pages.flatMap((page) => page.sessions)
    expect(new Set(all.map((one) => one.session_id)).size).toBe(205)
    const times = all.map((one) => one.created_at)
    expect(times).toEqual([...times].sort().reverse())
    expect(all.every((one) => one.user_id === user.userId)).toBe(true)
    await service.api.sql`delete from users where id = ${user.userId}`
  })

  test('is narrowed by state, region and owner', async () => {
    const user = await service.user()
    const here = (await user.start({ connection_id: 'a' })).body.session.session_id
    const there = (await user.start({ connection_id: 'b', region: 'there' })).body.session.session_id
    await transition(there, 'active')
    const ids = async (query: string) =>
      (await get<Sessions>(`/sessions?user_id=${user.userId}&${query}`)).body.sessions.map((one) => one.session_id)
    expect(await ids('')).toEqual([there, here])
    expect(await ids('state=active')).toEqual([there])
    expect(await ids('region=here')).toEqual([here])
    expect(await ids('region=here&state=active')).toEqual([])
    expect(await ids(`cursor=${there}`)).toEqual([here])
    expect(await ids(`cursor=${randomUUID()}`)).toEqual([])
    for (const query of ['state=gone', 'user_id=7', 'cursor=7', 'region='])
      expect(outcome(await get(`/sessions?${query}`))).toEqual([400, 'invalid_request'])
  })
})

test('no operator is shown a secret', async () => {
  const { user, session } = await bound()
  const id = session.session_id
  await transition(id, 'active')
  const [row] = await service.api.sql`
    select u.password_hash, s.relay_host from users u join relay_sessions s on s.user_id = u.id where s.id = ${id}`
  const tokens = [session.pair_token, session.relay_ws_token, await streamTokenOf(service.api, user.userId)]
  const secrets = [...Object.values(row ?? {}), ...tokens, user.bearer, user.refreshToken, operatorPassword]
  for (const secret of secrets) expect(secret).toMatch(/./)
  const answers = [
    await get(`/users?email=${user.email}`),
    await get(`/users/${user.userId}`),
    await get('/sessions'),
    await get(`/sessions/${id}`),
    await transition(id, 'grace'),
    await post(`/sessions/${id}/disconnect`, { reason: 'done' }),
    await post(`/users/${user.userId}/grant`, { plan_tier: 'free' }),
    await post(`/users/${user.userId}/relay-access`, { enabled: true }),
    await post(`/users/${user.userId}/disable`, {}),
  ]
  for (const answer of answers) {
    expect(answer.status).toBe(200)
    const text = JSON.stringify(answer.body)
    for (const secret of secrets) expect(text).not.toContain(secret)
  }
})
