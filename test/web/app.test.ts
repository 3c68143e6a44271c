/** What applies to all requests to the site: addresses, headers, bodies, client addresses, outages and shutdown. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { beforeEach, describe, expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import { startApiDouble } from '../support/api-double.ts'
import { rawRequest, sendRaw } from '../support/raw-http.ts'
import { eventually } from '../support/relays.ts'
import { startApiAndSite, startSite } from '../support/site.ts'

const { api, site } = await startApiAndSite()
const double = await startApiDouble()
const siteOfDouble = await startSite(double)

beforeEach(() => {
  double.requests.length = 0
  double.respondWith(() => ({ body: {} }))
})

describe('a visit', () => {
  test('signing in opens the page in `next`', async () => {
    const user = await api.given.user()
    const browser = site.browser()
    const login = await browser.open('/login?next=/account')
    const page = await browser.submit(login, '/login', { email: user.email, password: user.password })
    expect([page.path, page.status]).toEqual(['/account', 200])
  })

  test('a cross-site navigation is forwarded once, so that the Strict cookies are sent', async () => {
    const user = await api.given.user()
    const browser = site.browser()
    await browser.post('/login', { email: user.email, password: user.password })
    const page = await browser.open('/account/security', { from: 'cross-site' })
    expect(page.visited).toEqual(['GET /account/security', 'GET /account/security'])
    expect(page.html).toContain(user.email)
  })

  test('a cross-site navigation without cookies shows the page', async () => {
    expect((await site.browser().open('/login', { from: 'cross-site' })).name).toBe('login')
  })
})

describe('an address', () => {
  test.each(['/nothing', '/login/', '/Login', '/assets/none.css', '/api', '/%', '/%00', '/oauth/%E0%A4%A/callback'])(
    '%s is not found',
    async (path) => {
      const answer = await rawRequest(site.url, `GET ${path} HTTP/1.1`)
      expect([answer.status, answer.head.toLowerCase().includes('content-type: text/html')]).toEqual([404, true])
    },
  )

  test('below /api is not found with the error format of the API', async () => {
    const reply = await site.browser().request('GET', '/api/v2/auth/session')
    expect(reply.json()).toMatchObject({ error: { code: 'not_found' } })
  })

  test('lists its methods in Allow when another one is used', async () => {
    const reply = await site.browser().request('DELETE', '/login')
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
  })

  test.each(['http://evil.example/login', '//evil.example/login', '*', 'login'])(
    '%s is refused without a redirect',
    async (target) => {
      const answer = await rawRequest(
        site.url,
        `GET ${target} HTTP/1.1`,
        'Sec-Fetch-Site: cross-site',
        'Sec-Fetch-Mode: navigate',
      )
      expect([400, 404]).toContain(answer.status)
      expect(answer.body).not.toContain('http-equiv="refresh"')
      expect(answer.head).not.toMatch(/\r\nlocation:/i)
    },
  )

  test('replies to HEAD with the length of the page', async () => {
    const reply = await site.browser().request('HEAD', '/login')
    expect([reply.status, reply.text]).toEqual([200, ''])
    expect(Number(reply.headers.get('content-length'))).toBeGreaterThan(500)
  })
})

describe('every reply', () => {
  test.each(['/login', '/nothing', '/livez', '/api/v1/capacity/status'])(
    'forbids framing, foreign scripts, type sniffing and caching: %s',
    async (path) => {
      const { headers } = await site.browser().request('GET', path)
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).toContain("form-action 'self'")
      expect(policy).not.toMatch(/unsafe|\*|data:/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('x-powered-by')).toBeNull()
      expect(headers.get('cache-control')).toBe('no-store')
    },
  )

  test('has Strict-Transport-Security when the site is served over TLS', async () => {
    const secured = await startSite(double, { SVC_SITE_URL: 'https://relay.example.com', SVC_SITE_PORT: '0' })
    expect((await secured.browser().request('GET', '/livez')).headers.get('strict-transport-security')).toMatch(
      /max-age=\d{8}/,
    )
    expect((await site.browser().request('GET', '/livez')).headers.get('strict-transport-security')).toBeNull()
  })

  test('assets are immutable under a path with their hash', async () => {
    const { html } = await site.browser().open('/login')
    const path = /href="(\/assets\/[^"]+\.css)"/.exec(html)?.[1] ?? ''
    const { headers, text } = await site.browser().request('GET', path)
    expect([headers.get('cache-control'), headers.get('content-type')]).toEqual([
      'public, max-age=31536000, immutable',
      'text/css; charset=utf-8',
    ])
    expect(text.length).toBeGreaterThan(1000)
  })
})

describe('a body', () => {
  const tooLarge = Buffer.alloc(64 * 1024 + 1, 'a')

  test.each(['/login', '/api/v1/auth/login'])(
    'that is too large is refused before the API is called: %s',
    async (path) => {
      const reply = await siteOfDouble.browser().request('POST', path, { body: tooLarge })
      expect(reply.status).toBe(413)
      expect(double.requests).toEqual([])
    },
  )

  test.each([
    ['bytes', Buffer.from([...Buffer.from('email=a@b.example&password=caf'), 0xe9])],
    ['percent-encoded', 'email=a@b.example&password=caf%E9'],
    ['truncated character', 'email=a@b.example&password=%E2%82'],
    ['incomplete encoding', 'email=a@b.example&password=100%'],
  ])('of a form with invalid UTF-8 (%s) is refused before the API is called', async (_, body) => {
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    expect((await siteOfDouble.browser().request('POST', '/login', { body, headers })).status).toBe(400)
    expect(double.requests).toEqual([])
  })

  test('without a length is refused when it becomes too large, and the reply arrives', async () => {
    const chunk = `10000\r\n${'a'.repeat(65_536)}\r\n`
    const answer = await sendRaw(
      siteOfDouble.url,
      'POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
      ...Array<string>(40).fill(chunk),
      '0\r\n\r\n',
    )
    expect([answer.status, JSON.parse(answer.body.replace(/^[0-9a-f]+\r\n/, '').split('\r\n')[0] ?? '')]).toMatchObject(
      [413, { error: { code: 'payload_too_large' } }],
    )
  })

  test('in chunks is forwarded as a whole', async () => {
    const answer = await sendRaw(
      siteOfDouble.url,
      'POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
      '2\r\n{}\r\n',
      '1\r\n \r\n0\r\n\r\n',
    )
    expect([answer.status, double.requests[0]?.body]).toEqual([200, '{} '])
  })

  test('that is aborted logs no error', async () => {
    const { hostname, port } = new URL(siteOfDouble.url)
    const socket = connect(Number(port), hostname)
    socket.write('POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n')
    const [interim] = (await once(socket, 'data')) as [Buffer]
    expect(interim.toString()).toMatch(/^HTTP\/1\.1 100 /)
    socket.write('{"email"')
    socket.resetAndDestroy()
    expect((await siteOfDouble.browser().request('GET', '/livez')).status).toBe(200)
    expect(double.requests).toEqual([])
    expect(siteOfDouble.logged.filter((line) => line.includes('"error"'))).toEqual([])
  })
})

test('a client that disconnects before the reply logs no error', async () => {
  let reply = () => {}
  double.respondWith(() => new Promise((resolve) => (reply = () => resolve({ body: {} }))))
  const { hostname, port } = new URL(siteOfDouble.url)
  const socket = connect(Number(port), hostname)
  socket.write('GET /api/v1/capacity/status HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(
    () => double.requests.length,
    (count) => count === 1,
  )
  socket.resetAndDestroy()
  reply()
  double.respondWith(() => ({ body: {} }))
  expect((await siteOfDouble.browser().requestApi('GET', '/capacity/status')).status).toBe(200)
  expect(siteOfDouble.logged.filter((line) => line.includes('"error"'))).toEqual([])
})

describe('an invalid request', () => {
  test('gets 400 with an error code', async () => {
    const answer = await sendRaw(site.url, 'nonsense\r\n\r\n')
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([400, { error: { code: 'invalid_request' } }])
  })

  test('gets 431 when its headers are too large', async () => {
    const answer = await rawRequest(site.url, 'GET /login HTTP/1.1', `Cookie: ${'x=1; '.repeat(5000)}`)
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([431, { error: { code: 'invalid_request' } }])
  })
})

describe('the client address that the API receives', () => {
  const receivedBehind = async (proxies: string, forwardedFor?: string) => {
    const behind = await startSite(double, { SVC_TRUSTED_PROXY_HOPS: proxies })
    const headers: Record<string, string> = forwardedFor ? { 'X-Forwarded-For': forwardedFor } : {}
    await behind.browser().requestApi('GET', '/capacity/status', undefined, { headers })
    return double.requests[0]?.headers['x-forwarded-for']
  }

  test.each([
    ['the peer address without a proxy, even with X-Forwarded-For', '0', '192.0.2.1', /^(127\.0\.0\.1|::1)$/],
    ['the last entry behind one proxy', '1', '192.0.2.66, 203.0.113.5', /^203\.0\.113\.5$/],
    ['the second to last entry behind two proxies', '2', '192.0.2.66, 203.0.113.5, 198.51.100.1', /^203\.0\.113\.5$/],
    ['the peer address when the proxy added no entry', '1', undefined, /^(127\.0\.0\.1|::1)$/],
    ['the entry behind one proxy without its port', '1', '203.0.113.5:51234', /^203\.0\.113\.5$/],
    ['an address of its own when the entry is not an address', '1', 'unknown', /^fd00:[\da-f:]+$/],
  ])('is %s', async (_, proxies, forwardedFor, expected) => {
    expect(await receivedBehind(proxies, forwardedFor)).toMatch(expected)
  })

  test('determines the rate limits of the API', async () => {
    const limited = await startApiAndSite({
      api: { SVC_RATE_LIMITS: 'capacity=1' },
      site: { SVC_TRUSTED_PROXY_HOPS: '1' },
    })
    const ask = (ip: string) =>
      limited.site.browser().requestApi('GET', '/capacity/status', undefined, { headers: { 'X-Forwarded-For': ip } })
    expect((await ask('192.0.2.1')).status).toBe(200)
    expect((await ask('192.0.2.1')).status).toBe(429)
    expect((await ask('192.0.2.2')).status).toBe(200)
    expect((await ask('192.0.2.2, 192.0.2.1')).status).toBe(429)
  })
})

describe('while the API is unavailable', () => {
  test('pages get 503 with Retry-After, and the site stays live and ready', async () => {
    const alone = await startApiDouble()
    const siteWithoutApi = await startSite(alone)
    await alone.close()
    const browser = siteWithoutApi.browser()
    browser.cookies.set('svc_session', looksLikeAccessToken(600))
    const page = await browser.open('/account')
    expect([page.status, page.headers.get('retry-after'), page.name]).toEqual([503, '2', 'error-away'])
    expect(
      siteWithoutApi.logged.filter((line) => line.includes('"ApiUnreachableError"') && line.includes('ECONNREFUSED')),
    ).toHaveLength(1)
    expect((await browser.request('GET', '/livez')).json()).toEqual({ status: 'ok' })
    const readiness = await browser.request('GET', '/readyz')
    expect([readiness.status, readiness.json()]).toEqual([200, { status: 'ready' }])
  })

  test('a page tries again by itself, and a form that was sent does not', async () => {
    const alone = await startApiDouble()
    const siteWithoutApi = await startSite(alone)
    await alone.close()
    const browser = siteWithoutApi.browser()
    browser.cookies.set('svc_session', looksLikeAccessToken(600))
    expect((await browser.open('/account')).headers.get('refresh')).toMatch(/^\d$/)
    expect((await browser.post('/relays/start', {})).headers.get('refresh')).toBeNull()
  })

  test('a page of an API that hangs is answered with an error page', async () => {
    const hanging = await startApiDouble()
    hanging.respondWith(() => new Promise(() => {}))
    const browser = (await startSite(hanging)).browser()
    browser.cookies.set('svc_session', looksLikeAccessToken(600))
    expect((await browser.open('/account')).name).toBe('error-away')
  })
})

test('a draining site is not ready, and serves pages until its drain time is over', async () => {
  const site = await startSite(double, { SVC_DRAIN_SECONDS: '1' })
  const stopped = site.stop()
  const readiness = await site.browser().request('GET', '/readyz')
  expect([readiness.status, readiness.json()]).toEqual([503, { status: 'draining' }])
  expect((await site.browser().open('/login')).status).toBe(200)
  await stopped
  await expect(site.browser().request('GET', '/readyz')).rejects.toThrow()
})

test('a stopping site finishes running requests and accepts no new ones', async () => {
  const slow = await startApiDouble()
  const stopping = await startSite(slow)
  let reply: (body: object) => void = () => {}
  slow.respondWith(() => new Promise((resolve) => (reply = resolve)))
  const running = stopping.browser().requestApi('GET', '/capacity/status')
  await eventually(
    () => slow.requests.length,
    (count) => count === 1,
  )
  const stopped = stopping.stop()
  await eventually(
    () =>
      new Promise((resolve) =>
        request(`${stopping.url}/livez`)
          .once('error', resolve)
          .once('response', () => resolve(undefined))
          .end(),
      ),
    (error) => error !== undefined,
  )
  reply({ body: { status: 'available' } })
  expect((await running).json()).toEqual({ status: 'available' })
  await stopped
})
