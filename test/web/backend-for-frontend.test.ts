/** `/api/v1/*` on the site's origin, as scripts of its pages and attackers call it. */
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import { startApiDouble } from '../support/api-double.ts'
import { propertyRuns } from '../support/property-runs.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startApiAndSite, startSite } from '../support/site.ts'

describe('in front of the API', async () => {
  const { api, site } = await startApiAndSite()

  /** Signs in through the forwarded API. */
  async function signedIn() {
    const user = await api.given.user()
    const browser = site.browser()
    const reply = await browser.requestApi('POST', '/auth/login', { email: user.email, password: user.password })
    return { user, browser, reply }
  }

  test('a sign-in sets two HttpOnly cookies, and the reply contains no token', async () => {
    const { browser, reply } = await signedIn()
    expect(reply.status).toBe(200)
    expect(reply.json()).toEqual({ token_type: 'Bearer', expires_in: 720 })
    expect(reply.headers.get('cache-control')).toBe('no-store')
    const strict = 'Max-Age=2592000; HttpOnly; Secure; SameSite=Strict'
    expect(browser.cookies.attributesOf('svc_session')).toBe(`Path=/; ${strict}`)
    expect(browser.cookies.attributesOf('svc_refresh')).toBe(`Path=/api/v1/auth/refresh; ${strict}`)
  })

  test('the access token comes from the cookie, and an Authorization header is ignored', async () => {
    const { user, browser } = await signedIn()
    const other = await api.given.user()
    const reply = await browser.requestApi('GET', '/auth/session', undefined, {
      headers: { Authorization: `Bearer ${other.bearer}` },
    })
    expect(reply.json()).toMatchObject({ user: { id: user.userId } })
    const anonymous = await site
      .browser()
      .requestApi('GET', '/auth/session', undefined, { headers: { Authorization: `Bearer ${other.bearer}` } })
    expect(anonymous.status).toBe(401)
    expect(anonymous.headers.get('www-authenticate')).toBeNull()
  })

  test('the tokens of a plugin login poll become cookies too', async () => {
    const { user, browser } = await signedIn()
    const { body: attempt } = await api.post<Record<string, string>>('/auth/plugin/login/start', {})
    await api.post(`/auth/plugin/login/attempts/${attempt.login_attempt_id}/approve`, {}, { bearer: user.bearer })
    const { login_attempt_id, poll_token } = attempt
    browser.cookies.remove('svc_session')
    const reply = await browser.requestApi('POST', '/auth/plugin/login/poll', { login_attempt_id, poll_token })
    expect(reply.json()).toEqual({ status: 'complete', token_type: 'Bearer', expires_in: 720 })
    expect((await browser.requestApi('GET', '/auth/session')).status).toBe(200)
  })

  test('the refresh token comes from the cookie, and one in the body is ignored', async () => {
    const { browser } = await signedIn()
    const other = await api.given.user()
    const before = browser.cookies.get('svc_refresh')
    const reply = await browser.requestApi('POST', '/auth/refresh', { refresh_token: other.refreshToken })
    expect(reply.json()).toEqual({ token_type: 'Bearer', expires_in: 720 })
    expect(browser.cookies.get('svc_refresh')).not.toBe(before)
    const anonymous = await site.browser().requestApi('POST', '/auth/refresh', { refresh_token: other.refreshToken })
    expect(anonymous.json()).toMatchObject({ error: { code: 'invalid_refresh_token' } })
    // The token in the body was not exchanged.
    expect((await api.post('/auth/refresh', { refresh_token: other.refreshToken })).status).toBe(200)
  })

  test('the refresh cookie alone is enough to sign in again', async () => {
    const { browser } = await signedIn()
    browser.cookies.remove('svc_session')
    expect((await browser.requestApi('POST', '/auth/refresh')).status).toBe(200)
    expect((await browser.requestApi('GET', '/auth/session')).status).toBe(200)
  })

  test('signing out removes both cookies and revokes the sign-in', async () => {
    const { browser } = await signedIn()
    const token = browser.cookies.get('svc_session') ?? ''
    expect((await browser.requestApi('POST', '/auth/logout')).status).toBe(204)
    expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([undefined, undefined])
    expect((await api.get('/auth/session', { bearer: token })).status).toBe(401)
  })

  test.each([
    ['GET', '/admin/users'],
    ['GET', '/Admin/users'],
    ['GET', '/admin'],
    ['POST', '/relay/health'],
    ['GET', `/relay/slate/${'0'.repeat(64)}`],
    ['POST', '/billing/webhook'],
    ['GET', '/no/such/thing'],
    ['GET', '/auth/session/'],
  ])('%s %s is not forwarded', async (method, path) => {
    const { browser } = await signedIn()
    const reply = await browser.requestApi(method, path, method === 'POST' ? {} : undefined)
    expect([reply.status, reply.json()]).toMatchObject([404, { error: { code: 'not_found' } }])
  })

  test('the Allow header of the API is forwarded', async () => {
    const reply = await site.browser().requestApi('DELETE', '/auth/login')
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test('the rate limit headers of the API are forwarded', async () => {
    const limited = await startApiAndSite({ api: { SVC_RATE_LIMITS: 'capacity=1' } })
    const browser = limited.site.browser()
    await browser.requestApi('GET', '/capacity/status')
    const reply = await browser.requestApi('GET', '/capacity/status')
    expect(reply.status).toBe(429)
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(reply.headers.get('ratelimit-policy')).toMatch(/q=1/)
  })
})

describe('in front of an API double', async () => {
  const api = await startApiDouble()
  const site = await startSite(api)
  const token = looksLikeAccessToken(600)
  const withSession = { Cookie: `svc_session=${token}` }
  const get = (headers: Record<string, string> = {}, path = '/auth/session') =>
    site.browser().requestApi('GET', path, undefined, { headers })

  beforeEach(() => {
    api.requests.length = 0
    api.respondWith(() => ({ body: {} }))
  })

  test('method, path, body and allowed headers are forwarded, other headers are not', async () => {
    await site.browser().requestApi(
      'POST',
      '/relay/start?a=1&a=%2F',
      { region: 'local' },
      {
        headers: {
          ...withSession,
          'User-Agent': 'Some Browser',
          'Idempotency-Key': 'a key',
          'Accept-Encoding': 'gzip',
          TE: 'trailers',
          Via: '1.1 elsewhere',
          Forwarded: 'for=192.0.2.66',
          'Proxy-Authorization': 'Basic eDp5',
          'X-Relay-Auth': 'a secret',
          'X-Anything': 'else',
        },
      },
    )
    const [request] = api.requests
    expect(request).toMatchObject({ method: 'POST', url: '/api/v1/relay/start?a=1&a=%2F', body: '{"region":"local"}' })
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'user-agent': 'Some Browser',
      'idempotency-key': 'a key',
    })
    for (const name of ['cookie', 'te', 'via', 'forwarded', 'proxy-authorization', 'x-relay-auth', 'x-anything'])
      expect(request?.headers[name], name).toBeUndefined()
  })

  test.each([
    ['is not a JWT', 'svc_session=secret'],
    ['would end the header', 'svc_session=a.b.c,Basic'],
    ['is too long', `svc_session=a.b.${'c'.repeat(5000)}`],
    ['is sent twice with different values, as a sibling host can cause', `svc_session=${token}; svc_session=a.b.c`],
    ['is empty', 'svc_session='],
    ['has another name', `x_svc_session=${token}; SVC_SESSION=${token}`],
  ])('a session cookie that %s is ignored', async (_, cookie) => {
    await get({ Cookie: cookie })
    expect(api.requests[0]?.headers.authorization).toBeUndefined()
  })

  test('a session cookie that is sent twice with the same value is used', async () => {
    await get({ Cookie: `svc_session=${token}; other=1;svc_session=${token}` })
    expect(api.requests[0]?.headers.authorization).toBe(`Bearer ${token}`)
  })

  test('only allowed headers of a reply are forwarded', async () => {
    api.respondWith(() => ({
      status: 401,
      headers: {
        'WWW-Authenticate': 'Basic realm="operators"',
        'Set-Cookie': ['svc_session=evil; Path=/', 'x=1'],
        'Content-Encoding': 'gzip',
        'Content-Type': 'application/json',
        Server: 'inner',
        Location: 'https://inner.example/',
        'X-Request-Id': 'abc',
      },
      body: gzipSync('{"error":{"code":"unauthorized","message":"No."}}'),
    }))
    const reply = await get(withSession)
    expect([reply.status, reply.json()]).toMatchObject([401, { error: { code: 'unauthorized' } }])
    expect(reply.headers.get('x-request-id')).toBe('abc')
    for (const name of ['www-authenticate', 'set-cookie', 'content-encoding', 'server', 'location'])
      expect(reply.headers.get(name), name).toBeNull()
  })

  test.each([204, 304])('a reply with status %i has no body and no content type', async (status) => {
    api.respondWith(() => ({ status }))
    const reply = await get(withSession)
    expect([reply.status, reply.text, reply.headers.get('content-type')]).toEqual([status, '', null])
  })

  test('the reply to HEAD has the headers of the reply to GET', async () => {
    api.respondWith(() => ({ body: { some: 'thing' } }))
    const reply = await site.browser().requestApi('HEAD', '/usage/current', undefined, { headers: withSession })
    expect([reply.status, reply.text, reply.headers.get('content-length')]).toEqual([200, '', '16'])
  })

  test.each(['TRACE', 'OPTIONS', 'PROPFIND'])('%s is not forwarded', async (method) => {
    const answer = await rawRequest(site.url, `${method} /api/v1/auth/session HTTP/1.1`, 'Sec-Fetch-Site: same-origin')
    expect(answer.status).toBe(405)
    expect(answer.head).toMatch(/\r\nallow: DELETE, GET, HEAD, PATCH, POST, PUT\r\n/i)
    expect(api.requests).toEqual([])
  })

  test('the body of a GET request is not forwarded', async () => {
    const reply = await site
      .browser()
      .request('GET', '/api/v1/usage/current', { body: '{}', headers: { 'Content-Length': '2' } })
    expect([reply.status, api.requests[0]?.body]).toEqual([200, ''])
  })

  test('header bytes that `fetch` would reject are removed', async () => {
    const answer = await rawRequest(
      site.url,
      'GET /api/v1/auth/session HTTP/1.1',
      'User-Agent: a\xff\tc',
      'Idempotency-Key: \xfe\xff',
    )
    expect(answer.status).toBe(200)
    expect(api.requests[0]?.headers['user-agent']).toMatch(/^a.*c$/)
  })

  const segments = [
    'api',
    'v1',
    'auth',
    'admin',
    'relay',
    'health',
    '..',
    '.',
    '%2e%2e',
    '%2f',
    '..;',
    '\\',
    '',
    'a%00b',
    'é',
    '#',
    '@',
    ':',
  ]

  test('for any path, only plain paths below /api/v1 and outside /admin are forwarded', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...segments), { maxLength: 6 }), fc.boolean(), async (parts, below) => {
        const path = `/${[...(below ? ['api', 'v1'] : []), ...parts].join('/')}`
        // A page, which calls the API itself.
        fc.pre(path.split('#')[0] !== '/')
        const before = api.requests.length
        const answer = await rawRequest(site.url, `GET ${path} HTTP/1.1`)
        expect(answer.status).toBeGreaterThanOrEqual(200)
        expect(answer.status).not.toBe(500)
        for (const { url } of api.requests.slice(before)) {
          expect(url).toBe(path)
          expect(url).toMatch(/^\/api\/v1(\/[\w-]+)+$/)
          expect(url).not.toMatch(/^\/api\/v1\/(admin|relay\/health)/)
        }
      }),
      { numRuns: propertyRuns(60, 300) },
    )
  })

  test.each([
    'GET http://evil.example/api/v1/auth/session HTTP/1.1',
    'GET //evil.example/api/v1/auth/session HTTP/1.1',
    'GET /\\evil.example/api/v1/auth/session HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    'GET api/v1/auth/session HTTP/1.1',
    'CONNECT evil.example:443 HTTP/1.1',
    'GET /api/v1/../../metrics HTTP/1.1',
    'GET /api/v1/%2e%2e/%2e%2e/metrics HTTP/1.1',
    'GET /api/v1//auth/session HTTP/1.1',
    'GET /api/v1/auth/session#/x HTTP/1.1',
    'GET /API/v1/auth/session HTTP/1.1',
  ])('%s is not forwarded', async (firstLine) => {
    const answer = await rawRequest(site.url, firstLine)
    expect([0, 400, 404, 405]).toContain(answer.status)
    expect(answer.head).not.toMatch(/\r\nlocation:/i)
    expect(api.requests).toEqual([])
  })

  test('a reply with invalid JSON counts as unavailable', async () => {
    api.respondWith(() => ({ headers: { 'Content-Type': 'application/json' }, body: '<html>' }))
    expect((await get(withSession)).status).toBe(503)
  })
})

describe('while the API is unavailable', async () => {
  const api = await startApiDouble()
  const site = await startSite(api)
  await api.close()

  test('requests get 503 with Retry-After', async () => {
    const reply = await site.browser().requestApi('GET', '/capacity/status')
    expect(reply.json()).toMatchObject({ error: { code: 'temporarily_unavailable' } })
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '2'])
  })

  test('a token refresh keeps the cookies', async () => {
    const browser = site.browser()
    browser.cookies.set('svc_session', looksLikeAccessToken(-1))
    browser.cookies.set('svc_refresh', 'r'.repeat(43), '/api/v1/auth/refresh')
    const reply = await browser.requestApi('POST', '/auth/refresh')
    expect([reply.status, reply.headers.getSetCookie()]).toEqual([503, []])
  })
})
