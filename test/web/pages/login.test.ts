/** Signing in and out with a password, at a browser that runs no script. */
import { expect, test } from 'vitest'
import { startApiDouble } from '../../support/api-double.ts'
import { highLimits } from '../../support/environment.ts'
import { startApiAndSite, startSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite()

test('the front door leads to the sign-in, and who is signed in to the relays', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  const login = await browser.open('/')
  expect(login).toMatchObject({ path: '/login', heading: 'Sign in' })
  await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect((await browser.open('/')).path).toBe('/relays')
})

test('a wrong password is said in a sentence, and the address need not be typed again', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  const page = await browser.post('/login', { email: user.email, password: 'not the right one', next: '/account' })
  expect(page.status).toBe(401)
  expect(page.problem).toBe('The email address or password is incorrect.')
  expect(page.form('/login').fields).toMatchObject({ email: user.email, password: '', next: '/account' })
  expect(browser.cookies.get('svc_session')).toBeUndefined()
})

test('what was typed stands on the page as text, whatever it is', async () => {
  const page = await site.browser().post('/login', { email: '"><script>alert(1)</script>', password: 'x' })
  expect(page.status).toBe(400)
  expect(page.html).not.toContain('<script>alert')
  expect(page.problem).toBe('The email address is not an email address.')
})

test('somebody who tries too often is told for how many seconds to wait', async () => {
  const limited = await startApiAndSite({ api: { SVC_RATE_LIMITS: highLimits({ login: 1 }) } })
  const browser = limited.site.browser()
  await browser.post('/login', { email: 'someone@example.com', password: 'x' })
  const page = await browser.post('/login', { email: 'someone@example.com', password: 'x' })
  expect(page.status).toBe(429)
  expect(page.problem).toMatch(/^Too many tries\. Wait \d+ seconds?, then try again\.$/)
})

test('a notice is one of ours or none', async () => {
  for (const done of ['constructor', '__proto__', 'something else'])
    expect((await site.browser().open(`/login?done=${done}`)).html).not.toContain('class="notice"')
})

test('trouble of the api is told in words for people', async () => {
  const double = await startApiDouble()
  const message = 'Something went wrong on our side. Quote the X-Request-Id header when you report it.'
  double.respondWith(() => ({ status: 500, body: { error: { code: 'internal_error', message } } }))
  const page = await (await startSite(double)).browser().post('/login', { email: 'someone@example.com', password: 'x' })
  expect(page.status).toBe(500)
  expect(page.problem).toBe('Something went wrong on our side. Try again in a moment.')
})

test('where addresses have to be confirmed, every refused sign-in says what to do first, in the same words', async () => {
  const strict = await startApiAndSite({ api: { SVC_REQUIRE_EMAIL_VERIFICATION: 'true' } })
  const user = await strict.api.given.user()
  const signIn = (email: string, password: string) => strict.site.browser().post('/login', { email, password })
  const page = await signIn(user.email, user.password)
  expect(page.status).toBe(401)
  expect(page.problem).toContain('confirm your address first')
  for (const other of [await signIn(user.email, 'a wrong password'), await signIn('nobody@example.com', 'x')])
    expect([other.status, other.problem]).toEqual([page.status, page.problem])
})

test('after signing in nobody is led to another site', async () => {
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
    // Nor when the field of the form was changed.
    const page = await browser.post('/login', { email: user.email, password: user.password, next })
    expect(page, next).toMatchObject({ path: '/relays', continuesTo: undefined })
  }
})

test('who is signed in already is not asked again', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  expect((await browser.open('/login?next=/account')).path).toBe('/account')
  expect((await browser.open('/sign-up?next=/account')).path).toBe('/account')
})

test('signing out ends the sign-in at the api and in the browser', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const bearer = browser.cookies.get('svc_session') ?? ''
  const page = await browser.post('/sign-out', {})
  expect(page.path).toBe('/login')
  expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([undefined, undefined])
  expect((await api.get('/auth/session', { bearer })).status).toBe(401)
})

test('who signs out with an access token that is over ends the sign-in all the same', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  browser.cookies.set('svc_session', 'e30.e30.e30')
  browser.cookies.set('svc_refresh', user.refreshToken, '/api/v1/auth/refresh')
  const page = await browser.post('/sign-out', {})
  expect(page.path).toBe('/login')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(401)
})

test('one can sign out of the browser while the api is away, and the sign-in is shown without it', async () => {
  const alone = await startSite({ url: 'http://127.0.0.1:9' })
  const browser = alone.browser()
  browser.cookies.set('svc_session', 'e30.e30.e30')
  browser.cookies.set('svc_refresh', 'whatever', '/api/v1/auth/refresh')
  const page = await browser.post('/sign-out', {})
  expect(page).toMatchObject({ path: '/login', status: 200, heading: 'Sign in' })
  expect([browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]).toEqual([undefined, undefined])
})

test('another site signs nobody in or out', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  const forced = { email: user.email, password: user.password }
  expect((await browser.post('/login', forced, { from: 'cross-site' })).status).toBe(403)
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  await browser.post('/login', forced)
  expect((await browser.post('/sign-out', {}, { from: 'same-site' })).status).toBe(403)
  expect(browser.cookies.get('svc_session')).toBeDefined()
})
