/** Signing in with a password and signing out, in a browser without scripts. */
import { expect, test } from 'vitest'
import { startApiDouble } from '../../support/api-double.ts'
import { highLimits } from '../../support/environment.ts'
import { startApiAndSite, startSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite()

test('`/` leads to the login page, and to the relays after signing in', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  expect((await browser.open('/')).links).toContain('/login')
  const login = await browser.open('/login')
  await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect((await browser.open('/')).path).toBe('/relays')
})

test('a wrong password is reported, and the form keeps the email address and `next`', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  const page = await browser.post('/login', { email: user.email, password: 'not the right one', next: '/account' })
  expect([page.status, page.problem]).toEqual([401, 'invalid_credentials'])
  expect(page.form('/login').fields).toMatchObject({ email: user.email, password: '', next: '/account' })
  expect(browser.cookies.get('svc_session')).toBeUndefined()
})

test('submitted values are escaped in the page', async () => {
  const page = await site.browser().post('/login', { email: '"><script>alert(1)</script>', password: 'x' })
  expect([page.status, page.problem]).toEqual([400, 'invalid_request'])
  expect(page.html).not.toContain('<script>alert')
})

test('too many attempts are refused with the seconds to wait', async () => {
  const limited = await startApiAndSite({ api: { SVC_RATE_LIMITS: highLimits({ login: 1 }) } })
  const browser = limited.site.browser()
  await browser.post('/login', { email: 'someone@example.com', password: 'x' })
  const page = await browser.post('/login', { email: 'someone@example.com', password: 'x' })
  expect([page.status, page.problem]).toEqual([429, 'rate_limited'])
  expect(page.text).toMatch(/ [1-9]\d* seconds?\b/)
})

test('an unknown `done` parameter shows no notice', async () => {
  for (const done of ['constructor', '__proto__', 'something else'])
    expect((await site.browser().open(`/login?done=${done}`)).notice).toBeUndefined()
})

test('a failure of the API is reported without the API’s own message', async () => {
  const double = await startApiDouble()
  const message = 'Something went wrong on our side. Quote the X-Request-Id header when you report it.'
  double.respondWith(() => ({ status: 500, body: { error: { code: 'internal_error', message } } }))
  const page = await (await startSite(double)).browser().post('/login', { email: 'someone@example.com', password: 'x' })
  expect([page.status, page.problem]).toEqual([500, 'internal_error'])
  expect(page.text).not.toContain('X-Request-Id')
})

test('where email verification is required, all refused sign-ins look the same', async () => {
  const strict = await startApiAndSite({ api: { SVC_REQUIRE_EMAIL_VERIFICATION: 'true' } })
  const user = await strict.api.given.user()
  const signIn = (email: string, password: string) => strict.site.browser().post('/login', { email, password })
  const page = await signIn(user.email, user.password)
  expect([page.status, page.problem]).toEqual([401, 'invalid_credentials'])
  const htmlWithout = ({ html }: { html: string }, email: string) => html.replaceAll(email, '…')
  const wrongPassword = await signIn(user.email, 'a wrong password')
  const unknown = await signIn('nobody@example.com', 'x')
  expect([wrongPassword.status, wrongPassword.html]).toEqual([401, page.html])
  expect([unknown.status, htmlWithout(unknown, 'nobody@example.com')]).toEqual([401, htmlWithout(page, user.email)])
})

test('signing in never redirects to another site', async () => {
  const user = await api.given.user()
  for (const next of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    '/\t/evil.example',
  ]) {
    const browser = site.browser()
    const login = await browser.open(`/login?next=${encodeURIComponent(next)}`)
    expect(login.form('/login').fields.next, next).toBe('/relays')
    const page = await browser.post('/login', { email: user.email, password: user.password, next })
    expect(page, next).toMatchObject({ path: '/relays', continuesTo: undefined })
  }
})

test('the login and sign-up pages redirect signed-in visitors to `next`', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  expect((await browser.open('/login?next=/account')).path).toBe('/account')
  expect((await browser.open('/sign-up?next=/account')).path).toBe('/account')
})

test('signing out revokes the sign-in at the API and removes the cookies', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const bearer = browser.cookies.get('svc_session') ?? ''
  const page = await browser.post('/sign-out', {})
  expect(page.path).toBe('/login')
  expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([undefined, undefined])
  expect((await api.get('/auth/session', { bearer })).status).toBe(401)
})

test('signing out with an expired access token revokes the sign-in too', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  browser.cookies.set('svc_session', 'e30.e30.e30')
  browser.cookies.set('svc_refresh', user.refreshToken, '/api/v1/auth/refresh')
  const page = await browser.post('/sign-out', {})
  expect(page.path).toBe('/login')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(401)
})

test('signing out removes the cookies while the API is unavailable', async () => {
  const alone = await startSite({ url: 'http://127.0.0.1:9' })
  const browser = alone.browser()
  browser.cookies.set('svc_session', 'e30.e30.e30')
  browser.cookies.set('svc_refresh', 'whatever', '/api/v1/auth/refresh')
  const page = await browser.post('/sign-out', {})
  expect(page).toMatchObject({ path: '/login', status: 200, name: 'login' })
  expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([undefined, undefined])
})

test('a cross-origin form neither signs in nor out', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  const forced = { email: user.email, password: user.password }
  expect((await browser.post('/login', forced, { from: 'cross-site' })).status).toBe(403)
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  await browser.post('/login', forced)
  expect((await browser.post('/sign-out', {}, { from: 'same-site' })).status).toBe(403)
  expect(browser.cookies.get('svc_session')).toBeDefined()
})
