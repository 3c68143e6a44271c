/** What the tokens of apps open: the operations that name their scope, and no others. */
import { describe, expect, test } from 'vitest'
import { appScopes } from '../../../domain/identity/apps.ts'
import { nameOf, type Operation, operations, sendOperation } from '../../attacks/operations.ts'
import { givePlan, startApi } from '../../support/api.ts'
import { appVariables, connectApp } from '../../support/apps.ts'
import { writeActive } from '../../support/relay-rows.ts'
import { connectSocket, refusalOf } from '../../support/relay-sockets.ts'
import { eventually, operatorPassword } from '../../support/relays.ts'

const api = await startApi(
  { ...(await appVariables()), SVC_OPERATOR_PASSWORD: operatorPassword },
  { sockets: { pingSeconds: 0.5 } },
)
const user = await api.given.user()
await givePlan(api.sql, user.userId)
const script = await connectApp(api, user.bearer, 'obs-relay-control')

/** Tokens with one scope each, and one with all. */
const tokens = {
  all: script.access_token,
  'ingests:read': (await connectApp(api, user.bearer)).access_token,
  'relay:read': (await connectApp(api, user.bearer, 'obs-relay-control', 'relay:read')).access_token,
  'relay:control': (await connectApp(api, user.bearer, 'obs-relay-control', 'relay:control')).access_token,
}

const bearerOf = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

const outcomeOf = async (operation: Operation, token: string) => {
  const { status, headers } = await sendOperation(api.url, operation, bearerOf(token))
  return { status, challenge: headers.get('www-authenticate') }
}

const named = (wanted: (operation: Operation) => boolean) =>
  operations.filter(wanted).map((operation): [string, Operation] => [nameOf(operation), operation])

test('the operations that name a scope are these', () => {
  expect(
    Object.fromEntries(named(({ scopes }) => scopes.length > 0).map(([name, { scopes }]) => [name, scopes])),
  ).toEqual({
    'GET /api/v1/ingests': ['ingests:read'],
    'GET /api/v1/ingests/{id}/url': ['ingests:read'],
    'GET /api/v1/relay/active': ['relay:read'],
    'GET /api/v1/relay/connections': ['relay:read'],
    'GET /api/v1/relay/manifest': ['relay:read'],
    'GET /api/v1/relay/sessions': ['relay:read'],
    'GET /api/v1/relay/sessions/{id}': ['relay:read'],
    'GET /api/v1/relay/sessions/{id}/record': ['relay:read'],
    'GET /api/v1/relay/ws': ['relay:read'],
    'POST /api/v1/relay/start': ['relay:control'],
    'POST /api/v1/relay/stop': ['relay:control'],
  })
})

test.each(named(({ scopes }) => scopes.length > 0))('%s is open to its scope alone', async (_, operation) => {
  const [scope = ''] = operation.scopes
  for (const name of ['all', ...appScopes] as const) {
    const { status, challenge } = await outcomeOf(operation, tokens[name])
    if (name === 'all' || name === scope) expect([name, status === 401 || status === 403]).toEqual([name, false])
    else {
      expect([name, status]).toEqual([name, 403])
      expect(challenge).toBe(`Bearer error="insufficient_scope", scope="${scope}"`)
    }
  }
})

test.each(named(({ scopes, schemes }) => scopes.length === 0 && schemes.includes('accessToken')))(
  '%s names no scope and refuses all apps',
  async (_, operation) => {
    const { status, challenge } = await outcomeOf(operation, tokens.all)
    expect([status, challenge]).toEqual([403, 'Bearer error="insufficient_scope"'])
  },
)

test.each(named(({ schemes }) => schemes.some((scheme) => ['operator', 'relayAuth'].includes(scheme))))(
  '%s takes other credentials',
  async (_, operation) => {
    expect((await outcomeOf(operation, tokens.all)).status).toBe(401)
  },
)

test('an ended grant and a changed token are 401 before any scope', async () => {
  const gone = await connectApp(api, user.bearer, 'obs-relay-control', 'relay:read')
  await api.sql`
    update app_grants set ended_at = now(), ended_for = 'revoked' where scopes = '{relay:read}' and client_id = 'obs-relay-control'
      and created_at = (select max(created_at) from app_grants)`
  const changed = `${tokens.all.slice(0, -4)}AAAA`
  for (const token of [gone.access_token, changed])
    for (const path of ['/relay/active', '/auth/session', '/ingests']) {
      const { status, headers } = await api.get(path, { bearer: token })
      expect([path, status, headers.get('www-authenticate')]).toEqual([path, 401, 'Bearer error="invalid_token"'])
    }
})

test('a token of a user is none of an app', async () => {
  for (const path of ['/ingests', '/ingests/abc/url']) {
    const { status, body } = await api.get<object>(path, { bearer: user.bearer })
    expect([status, body]).toEqual([401, { error: 'invalid_token', error_description: expect.any(String) }])
  }
})

describe('an app with relay scopes', () => {
  test('starts, sees and stops a relay, and gets the dock view alone', async () => {
    const owner = await api.given.user()
    await givePlan(api.sql, owner.userId)
    const tokenWith = async (scope: string) =>
      (await connectApp(api, owner.bearer, 'obs-relay-control', scope)).access_token
    const [reader, controller] = [await tokenWith('relay:read'), await tokenWith('relay:control')]
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    const started = await api.post<{ session: Record<string, unknown> }>(
      '/relay/start',
      {},
      { bearer: controller, headers },
    )
    expect(started.status).toBe(201)
    const id = String(started.body.session.session_id)
    await writeActive(api.sql, id)
    const active = await api.get<{ session: object; sessions: object[] }>('/relay/active', {
      bearer: reader,
    })
    const stopped = await api.post<{ session: object }>('/relay/stop', { session_id: id }, { bearer: controller })
    for (const session of [started.body.session, active.body.session, ...active.body.sessions, stopped.body.session]) {
      expect(session).toMatchObject({ session_id: id, connection_id: 'default' })
      for (const secret of ['connect', 'pair_token', 'relay_ws_token', 'relay_host', 'instance_id'])
        expect(session).not.toHaveProperty(secret)
    }
    expect(JSON.stringify([active.body, stopped.body])).not.toMatch(/198\.51\.100\.7|streamid/)
    const seen = await api.get<{ session: object }>('/relay/active', { bearer: owner.bearer })
    expect(seen.body.session).toHaveProperty('connect')
    const activity = await api.get<{ entries: object[] }>('/auth/activity?group=relays', { bearer: owner.bearer })
    expect(activity.body.entries).toMatchObject([
      { action: 'relay_started', client: 'OBS script', client_kind: 'plugin' },
    ])
  })

  test('is refused a start by the plan as its user is, and never with 401', async () => {
    const other = await api.given.user()
    const { access_token } = await connectApp(api, other.bearer, 'obs-relay-control', 'relay:control')
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    const refused = await api.post('/relay/start', {}, { bearer: access_token, headers })
    expect([refused.status, refused.body.error?.code]).toEqual([403, 'relay_access_denied'])
  })

  test('counts against the limits of its account', async () => {
    const limited = await startApi({ ...(await appVariables()), SVC_RATE_LIMITS: 'relay_active=2' })
    const owner = await limited.given.user()
    const { access_token } = await connectApp(limited, owner.bearer, 'obs-relay-control', 'relay:read')
    expect((await limited.get('/relay/active', { bearer: owner.bearer })).status).toBe(200)
    expect((await limited.get('/relay/active', { bearer: access_token })).status).toBe(200)
    expect((await limited.get('/relay/active', { bearer: access_token })).status).toBe(429)
  })

  test('watches relays, and its socket closes when it is disconnected', async () => {
    const other = await api.given.user()
    const { access_token } = await connectApp(api, other.bearer, 'obs-relay-control', 'relay:read')
    const control = await connectApp(api, other.bearer, 'obs-relay-control', 'relay:control')
    expect(await refusalOf(connectSocket(api.url, { bearer: control.access_token }))).toEqual([
      403,
      'insufficient_scope',
    ])
    const client = await connectSocket(api.url, { bearer: access_token })
    await api.delete('/auth/apps/obs-relay-control', { bearer: other.bearer })
    expect((await client.closed).code).toBe(4401)
    await eventually(
      () => refusalOf(connectSocket(api.url, { bearer: access_token })),
      (refusal) => refusal[0] === 401,
    )
  })
})
