/** What another site's page can make a browser send here, and that it changes nothing. */
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

/** The cookies come along in any case, as if SameSite were not kept. */
const post = (path: string, ...headers: string[]) =>
  rawRequest(
    site.url,
    `POST ${path} HTTP/1.1`,
    `Cookie: svc_session=${looksLikeAccessToken(600)}; svc_refresh=${randomBytes(32).toString('base64url')}`,
    'Content-Length: 0',
    ...headers,
  )

describe.each([
  ['a page', '/login'],
  ['the api', '/api/v1/auth/logout'],
  ['the refresh', '/api/v1/auth/refresh'],
  ['the way back from it', '/api/v1/auth/refresh/return?to=/login'],
])('%s', (_, path) => {
  test.each([
    ['another site', ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.example']],
    ['a sibling host', ['Sec-Fetch-Site: same-site', 'Origin: https://blog.example.com']],
    ['the address bar', ['Sec-Fetch-Site: none']],
    ['another site that names our origin', ['Sec-Fetch-Site: cross-site', `Origin: ${own}`]],
    ['another site in an old browser', ['Origin: https://evil.example']],
    ['our host without TLS', ['Origin: http://relay.example.com']],
    ['a sandboxed frame in an old browser', ['Origin: null']],
  ])('does nothing for %s', async (_, headers) => {
    const answer = await post(path, ...headers)
    expect(answer.status).toBe(403)
    expect(answer.head).not.toMatch(/set-cookie/i)
    expect(api.requests).toEqual([])
  })

  test.each([
    ['a page of ours', ['Sec-Fetch-Site: same-origin', `Origin: ${own}`]],
    ['a page of ours in an old browser', [`Origin: ${own}`]],
    ['no browser', []],
  ])('answers %s', async (_, headers) => {
    expect((await post(path, ...headers)).status).not.toBe(403)
    expect(api.requests).not.toEqual([])
  })
})

test('a script of ours is told so in the words of the api', async () => {
  const { body, head } = await post('/api/v1/auth/logout', 'Sec-Fetch-Site: cross-site')
  expect(head).toMatch(/content-type: application\/json/i)
  expect(JSON.parse(body)).toEqual({ error: { code: 'forbidden', message: expect.any(String) } })
})

test('links from other sites are followed', async () => {
  const page = await site.browser().open('/login', { from: 'cross-site' })
  expect([page.status, page.visited.at(-1)]).toEqual([200, 'GET /login'])
})
