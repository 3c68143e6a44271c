/** Renewing an expired access token while a page is opened. */
import { expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import type { GivenUser } from '../support/api.ts'
import { startApiDouble } from '../support/api-double.ts'
import { startApiAndSite, startSite, type TestSite } from '../support/site.ts'

const { api, site } = await startApiAndSite()
const refreshPath = '/api/v1/auth/refresh'
const returnTo = (path: string) => `${refreshPath}/return?to=${encodeURIComponent(path)}`

/** A browser with the user's refresh token and an expired access token, unless another one is given. */
function browserOf(
  { refreshToken }: { refreshToken: string },
  accessToken = looksLikeAccessToken(-1),
  at: TestSite = site,
) {
  const browser = at.browser()
  browser.cookies.set('svc_session', accessToken)
  browser.cookies.set('svc_refresh', refreshToken, refreshPath)
  return browser
}

const isSignedIn = (user: GivenUser, html: string) => html.includes(user.email)

test('a page with an expired access token is shown after a renewal', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  const page = await browser.open('/account/security?done=linked')
  expect([page.path, isSignedIn(user, page.html)]).toEqual(['/account/security?done=linked', true])
  expect(page.visited).toHaveLength(3)
  expect(browser.cookies.get('svc_refresh')).not.toBe(user.refreshToken)
  // The next page needs no renewal.
  expect((await browser.open('/account')).visited).toEqual(['GET /account'])
})

test('a form with an expired access token is submitted after a renewal', async () => {
  const user = await api.given.user()
  const other = await api.given.signIn(user)
  const page = await browserOf(user).post(`/account/sessions/${other.authSessionId}/sign-out`, {})
  expect(page.visited[1]).toMatch(/^POST \/api\/v1\/auth\/refresh\/return\?/)
  expect((await api.get('/auth/session', { bearer: other.bearer })).status).toBe(401)
})

test('the fields of a form are kept during a renewal', async () => {
  const user = await api.given.user()
  const page = await browserOf(user).post('/login', { email: 'nobody@example.com', password: 'wrong' })
  expect([page.status, page.form('/login').fields.email]).toEqual([401, 'nobody@example.com'])
})

test('an access token that the API rejects before its expiry is renewed', async () => {
  const user = await api.given.user()
  const page = await browserOf(user, looksLikeAccessToken(600)).open('/account/security')
  expect(isSignedIn(user, page.html)).toBe(true)
})

test('a missing access token is renewed from the refresh token', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  browser.cookies.remove('svc_session')
  expect(isSignedIn(user, (await browser.open('/account/security')).html)).toBe(true)
})

test('a rejected refresh token signs out and redirects to the login page with `next`', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  await api.post('/auth/logout', undefined, { bearer: user.bearer })
  const page = await browser.open('/account/security?done=linked')
  expect([page.path, page.status]).toEqual(['/login?next=%2Faccount%2Fsecurity%3Fdone%3Dlinked', 200])
  expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([undefined, undefined])
})

test.each([
  ['expired', -1],
  ['invalid', 600],
])('an %s access token without a refresh token redirects to the login page', async (_, secondsLeft) => {
  const browser = site.browser()
  browser.cookies.set('svc_session', looksLikeAccessToken(secondsLeft))
  const page = await browser.open('/account')
  expect(page.path).toBe('/login?next=%2Faccount')
  expect(page.name).toBe('login')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
})

test('a visitor without cookies is redirected to the login page', async () => {
  expect((await site.browser().open('/account')).path).toBe('/login?next=%2Faccount')
})

test('an access token that is expired by the site’s clock is renewed once for each page', async () => {
  const double = await startApiDouble()
  double.respondWith(() => ({
    body: { cp_access_jwt: looksLikeAccessToken(-1, String(Math.random())), refresh_token: 'n'.repeat(43) },
  }))
  const browser = browserOf({ refreshToken: 'r'.repeat(43) }, undefined, await startSite(double))
  const page = await browser.open('/login?next=/nothing')
  expect(page.visited).toEqual([
    'GET /login?next=/nothing',
    `GET ${returnTo('/login?next=/nothing')}`,
    'GET /login?next=/nothing',
    'GET /nothing',
  ])
})

test('an API that rejects its own new tokens signs out instead of causing a redirect loop', async () => {
  const double = await startApiDouble()
  double.respondWith(({ url }) =>
    url === refreshPath
      ? { body: { cp_access_jwt: looksLikeAccessToken(600), refresh_token: 'n'.repeat(43) } }
      : { status: 401, body: { error: { code: 'unauthorized', message: 'No.' } } },
  )
  const browser = browserOf({ refreshToken: 'r'.repeat(43) }, undefined, await startSite(double))
  const page = await browser.open('/account')
  expect(page.path).toBe('/login?next=%2Faccount')
  expect(browser.cookies.get('svc_refresh')).toBeUndefined()
})

test('an unavailable API signs nobody out, and the same address works when it recovers', async () => {
  const user = await api.given.user()
  const double = await startApiDouble()
  double.respondWith(() => ({ status: 503, headers: { 'Retry-After': '1' }, body: { error: {} } }))
  const before = looksLikeAccessToken(-1)
  const browser = browserOf(user, before, await startSite(double))
  const page = await browser.open('/account')
  expect([page.status, page.headers.get('content-type')]).toEqual([503, 'text/html; charset=utf-8'])
  expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([before, user.refreshToken])
  double.respondWith(() => ({ body: { cp_access_jwt: user.bearer, refresh_token: 'n'.repeat(43) } }))
  expect((await browser.open(page.path)).visited.at(-1)).toBe('GET /account')
  expect(browser.cookies.get('svc_session')).toBe(user.bearer)
})

test('a cross-site navigation to the renewal address keeps the cookies', async () => {
  const user = await api.given.user()
  const browser = browserOf(user, user.bearer)
  await browser.open(returnTo('/login'), { from: 'cross-site' })
  expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([
    user.bearer,
    user.refreshToken,
  ])
  // It does not prevent the next renewal either.
  browser.cookies.set('svc_session', looksLikeAccessToken(-1))
  expect(isSignedIn(user, (await browser.open('/account/security')).html)).toBe(true)
})

test.each(['https://evil.example/', '//evil.example', '/\\evil.example', '/api/v1/auth/logout', '', 'x'])(
  'a renewal redirects to pages of this site only: %s',
  async (to) => {
    const browser = site.browser()
    const first = await browser.request('GET', returnTo(to))
    expect([first.status, first.headers.get('location')]).toEqual([307, `${returnTo('/')}&checked=1`])
    const reply = await browser.request('GET', `${returnTo(to)}&checked=1`)
    expect([reply.status, reply.headers.get('location')]).toEqual([307, '/'])
  },
)
