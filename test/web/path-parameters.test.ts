/** A segment of a page's path that becomes a path parameter of the API leads to no other resource of the API. */
import { beforeEach, expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import { startApiDouble } from '../support/api-double.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startSite } from '../support/site.ts'

const double = await startApiDouble()
const site = await startSite(double)
const cookies = `Cookie: svc_session=${looksLikeAccessToken(600)}; svc_operator=${'x'.repeat(43)}`

/** Not normalised, as no browser would send it. */
const send = (method: string, path: string) =>
  rawRequest(site.url, `${method} ${path} HTTP/1.1`, cookies, 'Sec-Fetch-Site: same-origin', 'Content-Length: 0')

beforeEach(() => {
  double.requests.length = 0
  double.respondWith(() => ({ body: {} }))
})

const requested = () => double.requests.map(({ method, url }) => `${method} ${url.split('?')[0]}`)

const segments = [
  '',
  '.',
  '..',
  '%2e',
  '%2e%2e',
  '%252e%252e',
  'a/b',
  'a%2Fb',
  '..%2Fmanifest',
  'a%3Fb',
  'a%23b',
  'a%25b',
  'a%20b',
  'a%5Cb',
  'a;b',
  '%00',
]

test.each(segments)('the page of a relay "%s" is not found, without a request for it', async (segment) => {
  expect((await send('GET', `/history/${segment}`)).status).toBe(404)
  // The names of the regions, and what the account is notified of, which the page reads in any case.
  const others = ['/relay/manifest', '/notifications'].map((path) => `GET /api/v1${path}`)
  expect(requested().filter((request) => !others.includes(request))).toEqual([])
})

test.each(segments)('the console finds no account, event or relay "%s", without a request for it', async (segment) => {
  const lists = ['/billing/events', '/sessions', '/audit'].map((path) => `GET /api/v1/admin${path}`)
  for (const page of ['users', 'sessions', 'billing/events'])
    expect((await send('GET', `/operator/${page}/${segment}`)).status, page).toBe(404)
  expect(requested().filter((request) => !lists.includes(request))).toEqual([])
})

test.each(segments)('forms that name "%s" change nothing', async (segment) => {
  await send('POST', `/account/sessions/${segment}/sign-out`)
  await send('POST', `/account/linked/${segment}/unlink`)
  await send('POST', `/account/subscriptions/${segment}/cancel`)
  expect(requested().filter((request) => !request.startsWith('GET '))).toEqual([])
})

test('a plain segment is sent as it is, and the query of the page is not', async () => {
  await send('GET', '/history/a-b_c.d~1?e')
  await send('GET', '/operator/users/a?b')
  await send('POST', '/account/sessions/a/sign-out?b')
  expect(double.requests.map(({ method, url }) => `${method} ${url}`)).toEqual(
    expect.arrayContaining([
      'GET /api/v1/relay/sessions/a-b_c.d~1',
      'GET /api/v1/admin/users/a',
      'DELETE /api/v1/auth/sessions/a',
    ]),
  )
})

test('characters that a header cannot hold are removed from the key of a start', async () => {
  const browser = site.browser()
  browser.cookies.set('svc_session', looksLikeAccessToken(600))
  double.respondWith(() => ({ status: 503, body: { error: { code: 'temporarily_unavailable', message: 'Later.' } } }))
  await browser.post('/relays/start', { connection_id: 'cam', idempotency_key: 'one\r\nx-injected: twoé' })
  const start = double.requests.find(({ url }) => url.startsWith('/api/v1/relay/start'))
  expect(start?.headers).toMatchObject({ 'idempotency-key': 'onex-injected: two' })
  expect(start?.headers['x-injected']).toBeUndefined()
})
