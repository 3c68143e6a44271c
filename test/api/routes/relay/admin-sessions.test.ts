/** The operators' view of sessions, and the transitions that they request. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { maskEmail } from '../../../../domain/identity/masked-email.ts'
import { type ErrorBody, statusAndCode, streamTokenOf } from '../../../support/api.ts'
import { fakeInstanceId } from '../../../support/fake-relay-provider.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, type History, type OneSession, operator, operatorPassword } from '../../../support/relays.ts'

const regions = JSON.stringify([
  { region: 'here', display_name: 'Here', provider: 'local', default: true },
  { region: 'there', display_name: 'There', provider: 'local', capacity: 500 },
])

/** Longer than the tests, so that each transition is an operator's or a user's. */
const longTimeouts = {
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
  SVC_RELAY_STOP_GRACE_SECONDS: '300',
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
}

/** Its relays send no reports. */
let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: {
      ...longTimeouts,
      SVC_REGIONS: regions,
      SVC_TEMPORAL_UI_URL: 'http://ui.example/',
    },
  })
})

const get = <Body = Partial<ErrorBody>>(path: string) => service.api.get<Body>(`/admin${path}`, { headers: operator })
const post = <Body = Partial<ErrorBody>>(path: string, body: object) =>
  service.api.post<Body>(`/admin${path}`, body, { headers: operator })
const transition = (id: string, to: string) => post<OneSession>(`/sessions/${id}/transition`, { to })
const findAuditEntries = (userId: string, action: string) =>
  service.api
    .sql`select initiator, ip, detail from audit_entries where user_id = ${userId} and action = ${action} order by id`

interface SessionPage {
  readonly sessions: readonly (SessionView & { readonly user_id: string })[]
  readonly next_cursor: string | null
}
interface UserDetail {
  readonly user: Record<string, unknown>
  readonly entitlement: Record<string, unknown>
  readonly sessions: readonly SessionView[]
}

const startSession = async (plan?: { addons: number }) => {
  const user = await service.user(plan)
  return { user, session: (await user.start()).body.session }
}
/** Resolves when an instance is bound to the session. */
const startBoundSession = async () => {
  const { user, session } = await startSession()
  await eventually(
    async () => (await user.active()).session?.instance_id,
    (instanceId) => instanceId != null,
  )
  return { user, session }
}

describe('a session', () => {
  test('is shown with its row, its workflow’s snapshot, its transitions and links to Temporal', async () => {
    const { user, session } = await startBoundSession()
    const id = session.session_id
    await transition(id, 'active')
    const { status, body } = await get<Record<string, unknown>>(`/sessions/${id}`)
    expect(status).toBe(200)
    expect(body).toEqual({
      session: expect.objectContaining({
        session_id: id,
        user_id: user.userId,
        masked_email: maskEmail(user.email),
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
          public_reason: null,
          at: expect.stringMatching(/Z$/),
        },
      ],
      stream_events: [],
      recent_bitrate: [],
      workflow_id: `relay-session/${id}`,
      temporal_ui_url: `http://ui.example/namespaces/default/workflows/relay-session%2F${id}`,
    })
    expect((await get<{ workflow_id: string }>(`/sessions/${id.toUpperCase()}`)).body).toEqual(body)
    expect(statusAndCode(await get(`/sessions/${randomUUID()}`))).toEqual([404, 'not_found'])
  })

  test('is ended at once through grace by a disconnect, and a second disconnect returns it unchanged', async () => {
    const { user, session } = await startBoundSession()
    await transition(session.session_id, 'active')
    const path = `/sessions/${session.session_id}/disconnect`
    for (const body of [{}, { reason: '' }, { reason: 'x'.repeat(501) }, { reason: 7 }])
      expect(statusAndCode(await post(path, body))).toEqual([400, 'invalid_request'])
    const { status, body } = await post<OneSession>(path, { reason: 'abuse, reported twice' })
    expect([status, body.session]).toMatchObject([200, { state: 'stopped', reason: 'force_disconnected' }])
    expect((await service.history(session.session_id)).transitions.slice(1)).toMatchObject([
      { from: 'active', to: 'grace', reason: 'force_disconnected', initiator: 'operator' },
      { from: 'grace', to: 'stopped', reason: 'force_disconnected', initiator: 'operator' },
    ])
    const repeated = await post<OneSession>(path, { reason: 'once more' })
    expect([repeated.status, repeated.body]).toEqual([200, body])
    expect(await findAuditEntries(user.userId, 'session_disconnected')).toMatchObject([
      { initiator: 'operator', detail: { session_id: session.session_id, reason: 'abuse, reported twice' } },
      { initiator: 'operator', detail: { reason: 'once more' } },
    ])
    expect(statusAndCode(await post(`/sessions/${randomUUID()}/disconnect`, { reason: 'x' }))).toEqual([
      404,
      'not_found',
    ])
  })

  test('shows its owner the public reason of an operator, and never the other one', async () => {
    const { user, session } = await startBoundSession()
    const id = session.session_id
    await transition(id, 'active')
    const tooLong = { reason: 'x', public_reason: 'x'.repeat(201) }
    for (const path of ['disconnect', 'transition'])
      expect(statusAndCode(await post(`/sessions/${id}/${path}`, { to: 'grace', ...tooLong }))).toEqual([
        400,
        'invalid_request',
      ])
    const toGrace = { to: 'grace', reason: 'a secret of ours', public_reason: 'We move this relay.' }
    expect((await post(`/sessions/${id}/transition`, toGrace)).status).toBe(200)
    const ending = { reason: 'another secret', public_reason: 'Music that was reported.' }
    expect((await post(`/sessions/${id}/disconnect`, ending)).status).toBe(200)
    const own = await service.api.get<History>(`/relay/sessions/${id}`, { bearer: user.bearer })
    expect(own.body.transitions).toMatchObject([
      { to: 'active', public_reason: null },
      { to: 'grace', initiator: 'operator', public_reason: 'We move this relay.' },
      { to: 'stopped', initiator: 'operator', public_reason: 'Music that was reported.' },
    ])
    expect(JSON.stringify(own.body)).not.toContain('secret')
    expect((await service.history(id)).transitions).toEqual(own.body.transitions)
    expect((await findAuditEntries(user.userId, 'session_disconnected')).map(({ detail }) => detail)).toEqual([
      { session_id: id, ...ending },
    ])
  })

  test('accepts the five legal transitions from an operator and refuses all others', async () => {
    const { user, session } = await startBoundSession()
    const id = session.session_id
    const expectRefused = async (...states: string[]) => {
      for (const to of states) expect(statusAndCode(await transition(id, to))).toEqual([409, 'invalid_transition'])
    }
    const expectTransition = async (to: string, reason: string) =>
      expect((await transition(id, to)).body.session).toMatchObject({ state: to, reason })
    await expectRefused('provisioning', 'grace')
    await expectTransition('active', 'relay_ready')
    await expectRefused('provisioning', 'active', 'stopped')
    await expectTransition('grace', 'stop_requested')
    await expectRefused('provisioning', 'grace')
    await expectTransition('active', 'start_requested')
    await expectTransition('grace', 'stop_requested')
    await expectTransition('stopped', 'force_disconnected')
    await expectRefused('provisioning', 'active', 'grace', 'stopped')

    const { session: other } = await startSession()
    expect((await transition(other.session_id, 'stopped')).body.session.state).toBe('stopped')
    expect((await findAuditEntries(user.userId, 'session_transitioned')).map((entry) => entry.detail.to)).toEqual([
      'active',
      'grace',
      'active',
      'grace',
      'stopped',
    ])
    expect(statusAndCode(await transition(randomUUID(), 'active'))).toEqual([404, 'not_found'])
    for (const to of ['paused', '', 7, null])
      expect(statusAndCode(await transition(id, to as string))).toEqual([400, 'invalid_request'])
  })

  test('that an operator put in its stop grace does not count against the limit, and is resumed by a start', async () => {
    const { user, session } = await startSession({ addons: 0 })
    await transition(session.session_id, 'active')
    await transition(session.session_id, 'grace')
    expect((await get<UserDetail>(`/users/${user.userId}`)).body.entitlement).toMatchObject({ active_managed_conns: 0 })
    expect((await user.start()).body.session).toMatchObject({ session_id: session.session_id, state: 'active' })
  })

  test('can be shown while no worker runs, and never makes a transition that was answered with 503, which is audited', async () => {
    const service = await startFakeRelayService({ worker: false, variables: longTimeouts })
    const user = await service.user()
    const { session_id } = (await user.start()).body.session
    expect(await service.history(session_id)).toMatchObject({
      session: { state: 'provisioning' },
      live: null,
      transitions: [],
    })
    const response = await service.api.post(
      `/admin/sessions/${session_id}/transition`,
      { to: 'stopped' },
      { headers: operator },
    )
    expect(statusAndCode(response)).toEqual([503, 'temporarily_unavailable'])
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
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

  test('that an operator resumed from a stop counts against the limit and is not displaced by a start', async () => {
    const { user, session } = await startSession({ addons: 0 })
    await transition(session.session_id, 'active')
    await user.stop({ session_id: session.session_id })
    expect((await transition(session.session_id, 'active')).body.session).toMatchObject({ state: 'active' })
    expect((await get<UserDetail>(`/users/${user.userId}`)).body.entitlement).toMatchObject({ active_managed_conns: 1 })
    const other = await user.start({ connection_id: 'another' })
    expect(statusAndCode(other)).toEqual([403, 'relay_limit_reached'])
    expect((await user.active()).session).toMatchObject({ session_id: session.session_id, state: 'active' })
  })
})

describe('the list of sessions', () => {
  test('has pages that contain each session once, the newest first', async () => {
    const user = await service.api.given.user()
    await service.api.sql`
      insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq, created_at)
      select ${user.userId}, 'c' || n, 'there', 'user', 1, now() - make_interval(secs => n / 10) from generate_series(1, 205) n`
    const pages: SessionPage[] = []
    let cursor: string | null = null
    do {
      const cursorParameter: string = cursor ? `&cursor=${cursor}` : ''
      const { body }: { body: SessionPage } = await get<SessionPage>(
        `/sessions?user_id=${user.userId}${cursorParameter}`,
      )
      pages.push(body)
      cursor = body.next_cursor
    } while (cursor && pages.length < 10)
    expect(pages.map((page) => page.sessions.length)).toEqual([100, 100, 5])
    const sessions = pages.flatMap((page) => page.sessions)
    expect(new Set(sessions.map(({ session_id }) => session_id)).size).toBe(205)
    const times = sessions.map(({ created_at }) => created_at)
    expect(times).toEqual([...times].sort().reverse())
    expect(sessions.every(({ user_id }) => user_id === user.userId)).toBe(true)
    await service.api.sql`delete from users where id = ${user.userId}`
  })

  test('can be filtered by state, region and user', async () => {
    const user = await service.user()
    const here = (await user.start({ connection_id: 'a' })).body.session.session_id
    const there = (await user.start({ connection_id: 'b', region: 'there' })).body.session.session_id
    await transition(there, 'active')
    const listIds = async (query: string) =>
      (await get<SessionPage>(`/sessions?user_id=${user.userId}&${query}`)).body.sessions.map(
        ({ session_id }) => session_id,
      )
    expect(await listIds('')).toEqual([there, here])
    expect(await listIds('state=active')).toEqual([there])
    expect(await listIds('region=here')).toEqual([here])
    expect(await listIds('region=here&state=active')).toEqual([])
    expect(await listIds(`cursor=${there}`)).toEqual([here])
    expect(await listIds(`cursor=${randomUUID()}`)).toEqual([])
    for (const query of ['state=gone', 'user_id=7', 'cursor=7', 'region='])
      expect(statusAndCode(await get(`/sessions?${query}`))).toEqual([400, 'invalid_request'])
  })
})

test('responses to operators contain no secrets', async () => {
  const { user, session } = await startBoundSession()
  const id = session.session_id
  await transition(id, 'active')
  const [row] = await service.api.sql`
    select u.password_hash, s.relay_host from users u join relay_sessions s on s.user_id = u.id where s.id = ${id}`
  const tokens = [session.pair_token, session.relay_ws_token, await streamTokenOf(service.api, user.userId)]
  const secrets = [...Object.values(row ?? {}), ...tokens, user.bearer, user.refreshToken, operatorPassword]
  for (const secret of secrets) expect(secret).toMatch(/./)
  const responses = [
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
  for (const response of responses) {
    expect(response.status).toBe(200)
    const text = JSON.stringify(response.body)
    for (const secret of secrets) expect(text).not.toContain(secret)
  }
})
