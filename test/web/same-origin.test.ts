/** CSRF protection: requests from other origins change nothing. */
import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import { startApiDouble } from '../support/api-double.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startSite } from '../support/site.ts'

const api = await startApiDouble()
const site = await startSite(api, { SVC_SITE_URL: 'https://relay.example.com', SVC_SITE_PORT: '0' })
const own = 'https://relay.example.com'

beforeEach(() => {
  api.requests.length = 0
  api.respondWith(() => ({ body: { cp_access_jwt: looksLikeAccessToken(600), refresh_token: 'n'.repeat(43) } }))
})

/** Sends the cookies as a browser without SameSite would. */
const post = (path: string, ...headers: string[]) =>
  rawRequest(
    site.url,
    `POST ${path} HTTP/1.1`,
    `Cookie: svc_session=${looksLikeAccessToken(600)}; svc_refresh=${randomBytes(32).toString('base64url')}`,
    'Content-Length: 0',
    ...headers,
  )

describe.each([
  ['a form', '/login'],
  ['the API', '/api/v1/auth/logout'],
  ['the token refresh', '/api/v1/auth/refresh'],
  ['the renewal', '/api/v1/auth/refresh/return?to=/login'],
])('%s', (_, path) => {
  test.each([
    ['another site', ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.example']],
    ['a sibling host', ['Sec-Fetch-Site: same-site', 'Origin: https://blog.example.com']],
    ['the address bar', ['Sec-Fetch-Site: none']],
    ['another site with a forged Origin', ['Sec-Fetch-Site: cross-site', `Origin: ${own}`]],
    ['another site in a browser without Fetch Metadata', ['Origin: https://evil.example']],
    ['the same host without TLS', ['Origin: http://relay.example.com']],
    ['a sandboxed frame in a browser without Fetch Metadata', ['Origin: null']],
  ])('refuses a request from %s', async (_, headers) => {
    const answer = await post(path, ...headers)
    expect(answer.status).toBe(403)
    expect(answer.head).not.toMatch(/set-cookie/i)
    expect(api.requests).toEqual([])
  })

  test.each([
    ['its own page', ['Sec-Fetch-Site: same-origin', `Origin: ${own}`]],
    ['its own page in a browser without Fetch Metadata', [`Origin: ${own}`]],
    ['a client that is not a browser', []],
  ])('accepts a request from %s', async (_, headers) => {
    expect((await post(path, ...headers)).status).not.toBe(403)
    expect(api.requests).not.toEqual([])
  })
})

test('a refused API request gets the error format of the API', async () => {
  const { body, head } = await post('/api/v1/auth/logout', 'Sec-Fetch-Site: cross-site')
  expect(head).toMatch(/content-type: application\/json/i)
  expect(JSON.parse(body)).toEqual({ error: { code: 'forbidden', message: expect.any(String) } })
})

test('links from other sites open pages', async () => {
  const page = await site.browser().open('/login', { from: 'cross-site' })
  expect([page.status, page.visited.at(-1)]).toEqual([200, 'GET /login'])
})
