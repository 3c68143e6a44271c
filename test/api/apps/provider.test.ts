/** Apps get tokens: authorization requests, approvals and codes, and what is refused on the way. */
import { randomBytes } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { describe, expect, test } from 'vitest'
import { appRedirectUris, sourceApp } from '../../../domain/identity/apps.ts'
import { startApi } from '../../support/api.ts'
import {
  approvedCode,
  appVariables,
  authorizationQuery,
  begin,
  codeFields,
  comeBack,
  connectApp,
  decide,
  exchange,
  postForm,
  refresh,
} from '../../support/apps.ts'

const api = await startApi(await appVariables())
const scriptApp = 'obs-relay-control'
const owner = await api.given.user()

const ask = (query: URLSearchParams | string, init: RequestInit = {}) =>
  fetch(`${api.url}/oauth/auth?${query}`, { redirect: 'manual', ...init })

describe('the documents', () => {
  test('of the source names the issuer, the client and the list, all of which stay the same', async () => {
    const response = await fetch(`${api.url}/.well-known/irl-source-provider.json`, { redirect: 'error' })
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(await response.json()).toEqual({
      protocol_version: 1,
      id: 'provider-of-these-tests',
      name: 'Backhaul',
      issuer: `${api.url}/oauth`,
      client_id: sourceApp,
      scope: 'ingests:read',
      ingests_endpoint: `${api.url}/api/v1/ingests`,
    })
  })

  test('of the provider has the endpoints at the address of the api, whatever host a client names', async () => {
    for (const headers of [{}, { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https' }]) {
      const response = await fetch(`${api.url}/oauth/.well-known/openid-configuration`, { headers, redirect: 'error' })
      expect(await response.json()).toMatchObject({
        issuer: `${api.url}/oauth`,
        authorization_endpoint: `${api.url}/oauth/auth`,
        token_endpoint: `${api.url}/oauth/token`,
        revocation_endpoint: `${api.url}/oauth/token/revocation`,
        code_challenge_methods_supported: ['S256'],
        response_types_supported: ['code'],
        token_endpoint_auth_methods_supported: ['none'],
      })
    }
  })

  test('of the keys has no private part', async () => {
    const { keys } = (await (await fetch(`${api.url}/oauth/jwks`)).json()) as { keys: object[] }
    expect(keys).toMatchObject([{ kty: 'EC', crv: 'P-256', alg: 'ES256' }])
    expect(keys[0]).not.toHaveProperty('d')
  })

  test('do not exist without an id of the provider', async () => {
    const other = await startApi()
    for (const path of [
      '/.well-known/irl-source-provider.json',
      '/oauth/.well-known/openid-configuration',
      '/oauth/auth',
    ])
      expect((await fetch(other.url + path)).status, path).toBe(404)
    expect((await other.get('/ingests', { bearer: owner.bearer })).status).toBe(401)
  })
})

describe('an authorization request', () => {
  test.each(appRedirectUris)('may lead back to %s', async (redirect_uri) => {
    const request = await begin(api, sourceApp, { redirect_uri })
    const url = await comeBack(await decide(api, request, owner.bearer), request.cookie)
    expect(url.href.startsWith(`${redirect_uri}?`)).toBe(true)
  })

  test.each([
    'http://127.0.0.1:47430/callback',
    'http://127.0.0.1:47419/callback',
    'http://127.0.0.1/callback',
    'http://127.0.0.1:47420/callback/',
    'http://127.0.0.1:47420/callback?to=evil',
    'http://127.0.0.1:47420/other',
    'http://localhost:47420/callback',
    'http://[::1]:47420/callback',
    'https://127.0.0.1:47420/callback',
    'http://127.0.0.1:47420@evil.example/callback',
    'https://evil.example/callback',
    'javascript:alert(1)',
  ])('that wants to lead back to %s ends on a page without a redirect', async (redirect_uri) => {
    const { query } = authorizationQuery(sourceApp, { redirect_uri })
    const response = await ask(query, { headers: { accept: 'text/html' } })
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(await response.text()).not.toContain('<script')
  })

  test('of an unknown client ends on a page without a redirect, which escapes what the client sent', async () => {
    const { query } = authorizationQuery('<b>obs</b>')
    const response = await ask(query)
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
    expect(await response.text()).not.toContain('<b>')
  })

  test.each([
    ['without a challenge', { code_challenge: '' }, 'invalid_request'],
    ['with a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['for a token in the address', { response_type: 'token' }, 'invalid_request'],
    ['for an ID token', { response_type: 'code id_token' }, 'invalid_request'],
    ['for a scope of another app', { scope: 'ingests:read relay:control' }, 'invalid_scope'],
    ['for an identity', { scope: 'openid' }, 'invalid_scope'],
    ['for an unknown scope', { scope: 'everything' }, 'invalid_scope'],
    ['without a scope', { scope: '' }, 'invalid_scope'],
    ['that may show no page', { prompt: 'none' }, 'consent_required'],
    ['for another resource', { resource: 'https://other.example' }, 'invalid_target'],
  ])('%s goes back with an error and the state', async (_, changes, error) => {
    const { query, state, redirectUri } = authorizationQuery(sourceApp, changes as Record<string, string>)
    const response = await ask(query)
    const location = new URL(response.headers.get('location') ?? '')
    expect(location.origin + location.pathname).toBe(redirectUri)
    // In the fragment where tokens would be there.
    const answer = new URLSearchParams(location.search || location.hash.slice(1))
    expect([answer.get('error'), answer.get('state')]).toEqual([error, state])
    expect(location.search).not.toContain('+')
  })

  test('sets one cookie, for the return alone, which scripts cannot read', async () => {
    const { query } = authorizationQuery()
    const cookies = (await ask(query)).headers.getSetCookie()
    expect(cookies.map((cookie) => cookie.split('=')[0])).toEqual(['svc_app_request', 'svc_app_request.sig'])
    for (const cookie of cookies) expect(cookie).toMatch(/path=\/oauth\/auth\/[\w-]+;.*samesite=lax; httponly/i)
  })

  test('is Secure at an https address', async () => {
    const variables = await appVariables()
    const other = await startApi({ ...variables, SVC_API_URL: 'https://api.relays.example' })
    const response = await fetch(`http://127.0.0.1:${variables.PORT}/oauth/auth?${authorizationQuery().query}`, {
      redirect: 'manual',
    })
    expect(response.headers.get('location')).toMatch(`${other.services.config.siteUrl}/connect/`)
    for (const cookie of response.headers.getSetCookie()) expect(cookie).toMatch(/secure/i)
  })

  test('needs an approval each time, also in the same browser', async () => {
    const { request } = await approvedCode(api, owner.bearer)
    const response = await ask(authorizationQuery().query, { headers: { cookie: request.cookie } })
    expect(response.headers.get('location')).toMatch(/\/connect\//)
  })
})

describe('the decision', () => {
  test('of a user who denies goes back as access_denied with the state, and connects nothing', async () => {
    const { bearer } = await api.given.user()
    const request = await begin(api)
    const url = await comeBack(await decide(api, request, bearer, 'deny'), request.cookie)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({ error: 'access_denied', state: request.state })
    expect((await api.get('/auth/apps', { bearer })).body).toEqual({ apps: [] })
  })

  test('counts only in the browser in which the request began', async () => {
    const [victim, request] = [await api.given.user(), await begin(api)]
    const continueUrl = await decide(api, request, victim.bearer)
    const other = await begin(api)
    for (const cookie of ['', other.cookie, request.cookie.replace(/sig=\w/, 'sig=-')])
      await expect(comeBack(continueUrl, cookie)).rejects.toThrow(/^400 /)
    expect((await api.get('/auth/apps', { bearer: victim.bearer })).body).toEqual({ apps: [] })
  })

  test('counts only with the ticket of its user: the browser is led to the page again', async () => {
    const [victim, request] = [await api.given.user(), await begin(api)]
    const continueUrl = new URL(await decide(api, request, victim.bearer))
    const own = await begin(api)
    const ownTicket = new URL(await decide(api, own, victim.bearer)).searchParams.get('ticket') ?? ''
    for (const ticket of ['', 'guess', ownTicket]) {
      continueUrl.searchParams.set('ticket', ticket)
      const url = await comeBack(continueUrl.href, request.cookie)
      expect(url.pathname).toBe(`/connect/${request.id}`)
    }
  })

  test('can be repeated and changed by its user, and by no other', async () => {
    const [user, other, request] = [await api.given.user(), await api.given.user(), await begin(api)]
    const path = `/auth/apps/requests/${request.id}`
    const shown = await api.get(path, { bearer: other.bearer })
    expect(shown.body).toMatchObject({ client_id: sourceApp, scopes: ['ingests:read'], status: 'pending' })
    expect(await decide(api, request, user.bearer)).toBe(await decide(api, request, user.bearer))
    for (const act of [
      api.get(path, { bearer: other.bearer }),
      api.post(`${path}/approve`, undefined, { bearer: other.bearer }),
      api.post(`${path}/deny`, undefined, { bearer: other.bearer }),
    ])
      expect((await act).status).toBe(404)
    const url = await comeBack(await decide(api, request, user.bearer, 'deny'), request.cookie)
    expect(url.searchParams.get('error')).toBe('access_denied')
    expect((await api.get(path, { bearer: user.bearer })).status).toBe(404)
  })

  test('needs a signed-in user', async () => {
    const request = await begin(api)
    for (const action of ['approve', 'deny'])
      expect((await api.post(`/auth/apps/requests/${request.id}/${action}`)).status).toBe(401)
    const { access_token } = await connectApp(api, owner.bearer)
    const answer = await api.post(`/auth/apps/requests/${request.id}/approve`, undefined, { bearer: access_token })
    expect([answer.status, answer.body.error?.code]).toEqual([403, 'insufficient_scope'])
  })

  test('ends with a password reset, and after five minutes', async () => {
    const [user, first, second] = [await api.given.user(), await begin(api), await begin(api)]
    const urls = [await decide(api, first, user.bearer), await decide(api, second, user.bearer)] as const
    await api.sql`update app_requests set expires_at = now() where user_id = ${user.userId}`
    expect((await comeBack(urls[0], first.cookie)).pathname).toBe(`/connect/${first.id}`)
    await api.sql`update app_requests set expires_at = now() + interval '1 minute' where user_id = ${user.userId}`
    await api.post('/auth/sessions/revoke-others', undefined, { bearer: user.bearer })
    expect((await comeBack(urls[1], second.cookie)).pathname).toBe(`/connect/${second.id}`)
  })
})

describe('a code', () => {
  test('gets tokens that name account, client, scopes and grant, for an audience of their own', async () => {
    const user = await api.given.user()
    const tokens = await connectApp(api, user.bearer, scriptApp, 'relay:read relay:control')
    expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 600, scope: 'relay:read relay:control' })
    expect(tokens).not.toHaveProperty('id_token')
    expect(decodeProtectedHeader(tokens.access_token)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
    expect(decodeJwt(tokens.access_token)).toMatchObject({
      iss: `${api.url}/oauth`,
      aud: 'svc-apps',
      sub: user.userId,
      client_id: scriptApp,
      scope: 'relay:read relay:control',
      gid: expect.any(String),
    })
  })

  test.each([
    ['another verifier', { code_verifier: 'a'.repeat(43) }],
    ['no verifier', { code_verifier: '' }],
    ['another client', { client_id: scriptApp }],
    ['another redirect address', { redirect_uri: appRedirectUris[1] ?? '' }],
    ['a changed code', { code: 'x'.repeat(43) }],
  ])('is refused with %s', async (_, changes) => {
    const { request, code } = await approvedCode(api, owner.bearer)
    const refused = await exchange(api, { ...codeFields(request, code), ...changes })
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(Object.keys(refused.body).toSorted()).toEqual(['error', 'error_description'])
  })

  test('that is used twice ends the grant and all its tokens', async () => {
    const user = await api.given.user()
    const { request, code } = await approvedCode(api, user.bearer)
    const { body: tokens } = await exchange(api, codeFields(request, code))
    expect((await api.get('/ingests', { bearer: tokens.access_token })).status).toBe(200)
    expect((await exchange(api, codeFields(request, code))).body.error).toBe('invalid_grant')
    expect((await api.get('/ingests', { bearer: tokens.access_token })).status).toBe(401)
    expect((await refresh(api, tokens.refresh_token)).body.error).toBe('invalid_grant')
  })

  test('expires after a minute, with its grant', async () => {
    const user = await api.given.user()
    const { request, code } = await approvedCode(api, user.bearer)
    await api.sql`update app_grants set expires_at = now() where user_id = ${user.userId}`
    expect((await exchange(api, codeFields(request, code))).body.error).toBe('invalid_grant')
  })
})

test('keys are rotated: former tokens are valid as long as their key is configured', async () => {
  const [former, next] = [await appVariables(), await appVariables()]
  const shared = {
    SVC_JWT_SECRET: 'a secret for the rotation of these tests, long enough',
    OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    SVC_API_URL: former.SVC_API_URL ?? '',
  }
  const first = await startApi({ ...former, ...shared })
  const user = await first.given.user()
  const { access_token } = await connectApp(first, user.bearer)
  const keyOf = (token: string) => decodeProtectedHeader(token).kid
  const [old = '', fresh = ''] = [former.SVC_OAUTH_SIGNING_KEYS, next.SVC_OAUTH_SIGNING_KEYS]
  const reads = async (keys: string) => {
    const variables = { ...next, ...shared, PORT: '0', DATABASE_URL: first.services.config.database.url }
    const second = await startApi({ ...variables, SVC_OAUTH_SIGNING_KEYS: keys })
    const connected = await connectApp(second, user.bearer)
    expect(keyOf(connected.access_token)).not.toBe(keyOf(access_token))
    return (await second.get('/ingests', { bearer: access_token })).status
  }
  expect(await reads(`${fresh},${old}`)).toBe(200)
  expect(await reads(fresh)).toBe(401)
})

describe('the token endpoint', () => {
  test.each([
    ['without a grant type', {}, 'invalid_request'],
    ['with another grant type', { grant_type: 'client_credentials', client_id: sourceApp }, 'unsupported_grant_type'],
    [
      'with a password',
      { grant_type: 'password', client_id: sourceApp, username: 'a', password: 'b' },
      'unsupported_grant_type',
    ],
    ['without a client', { grant_type: 'refresh_token', refresh_token: 'x' }, 'invalid_request'],
    ['without a token', { grant_type: 'refresh_token', client_id: sourceApp }, 'invalid_request'],
  ])('answers a request %s with a flat error that signs no app out', async (_, fields, error) => {
    const answer = await postForm(api, '/token', fields as Record<string, string>)
    expect(answer).toMatchObject({ status: 400, body: { error } })
  })

  test('answers an unknown client 401 and takes no other method, no JSON and no page of another site', async () => {
    expect((await refresh(api, 'x', 'other')).body.error).toBe('invalid_client')
    expect((await fetch(`${api.url}/oauth/token`)).status).toBe(405)
    const post = (headers: Record<string, string>, body: string) =>
      fetch(`${api.url}/oauth/token`, { method: 'POST', headers, body })
    const json = await post({ 'content-type': 'application/json' }, '{"grant_type":"refresh_token"}')
    expect([json.status, await json.json()]).toMatchObject([400, { error: 'invalid_request' }])
    const fields = `grant_type=refresh_token&refresh_token=x&client_id=${sourceApp}`
    const form = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' }
    const foreign = await post(form, fields)
    expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([400, null])
  })

  test('answers a large body with a refusal, and HEAD without a body', async () => {
    const large = await fetch(`${api.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `client_id=${sourceApp}&refresh_token=${'x'.repeat(2_000_000)}`,
    })
    expect([large.status, await large.json()]).toMatchObject([400, { error: 'invalid_request' }])
    const head = await fetch(`${api.url}/oauth/.well-known/openid-configuration`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  test('counts requests of a network, and says so in a flat error', async () => {
    const variables = await appVariables()
    const limited = await startApi({ ...variables, SVC_RATE_LIMITS: 'app_token=1' })
    await refresh(limited, 'x')
    const answer = await refresh(limited, 'x')
    expect(answer).toMatchObject({ status: 429, body: { error: 'rate_limited' } })
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
  })

  test('counts its outcomes', async () => {
    await refresh(api, 'unknown')
    const metrics = await (await fetch(`${api.url}/metrics`)).text()
    expect(metrics).toMatch(/svc_app_token_requests_total\{grant_type="refresh_token",outcome="invalid_grant"\} [1-9]/)
    expect(metrics).toMatch(/svc_app_token_requests_total\{grant_type="authorization_code",outcome="issued"\} [1-9]/)
  })
})
