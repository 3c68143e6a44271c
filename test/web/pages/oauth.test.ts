/**
 * OAuth authorization requests and callbacks, in a browser without scripts that sends Strict cookies to its own site
 * only.
 */
import { expect, test } from 'vitest'
import { fetchUser, linkedProviders, newProviderAccount } from '../../support/oauth-api.ts'
import { startApiAndSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'
import { startOAuthSite } from '../../support/site-oauth.ts'

const oauth = await startOAuthSite()
const { api, site } = oauth

const expired = { status: 400, name: 'oauth-expired', problem: 'authorization_request_expired' }

/** A browser in which a new user is signed in with a password. */
async function signedInBrowser() {
  const [user, browser] = [await api.given.user(), site.browser()]
  await browser.post('/login', { email: user.email, password: user.password })
  return { user, browser }
}

/** The page that forwards to Google. */
const startWithGoogle = async (browser: Browser, loginPath = '/login') =>
  browser.submit(await browser.open(loginPath), '/oauth/google/start')

test('signing in with each provider opens the page in `next`', async () => {
  for (const provider of ['twitch', 'google', 'discord'] as const) {
    const [browser, account] = [site.browser(), newProviderAccount()]
    const page = await oauth.signInWith(browser, await browser.open('/login?next=/account'), provider, account)
    expect(page.path, provider).toBe('/account')
    expect((await fetchUser(api, browser.cookies.get('svc_session'))).email).toBe(account.email)
    expect(browser.cookies.get('svc_oauth')).toBeUndefined()
  }
})

test('the authorization cookie is limited to its pages, and the provider does not receive the binding', async () => {
  const browser = site.browser()
  const forwarding = await startWithGoogle(browser)
  expect(forwarding.continuesTo).toContain(oauth.providers.google.issuerUrl)
  expect(browser.cookies.attributesOf('svc_oauth')).toBe('Path=/oauth; Max-Age=600; HttpOnly; Secure; SameSite=Lax')
  const request = JSON.parse(Buffer.from(browser.cookies.get('svc_oauth') ?? '', 'base64url').toString())
  expect(forwarding.continuesTo).not.toContain(request.binding)
})

test('the login page offers the providers that are configured', async () => {
  const withoutProviders = await startApiAndSite()
  expect((await withoutProviders.site.browser().open('/login')).html).not.toContain('/oauth/')
  expect((await site.browser().open('/login')).hasForm('/oauth/discord/start')).toBe(true)
})

test('signing in with a provider at a plugin’s link returns to the approval and approves nothing', async () => {
  const { body } = await api.post<{ login_attempt_id: string; poll_token: string; authorize_url: string }>(
    '/auth/plugin/login/start',
    {},
  )
  const browser = site.browser()
  const login = await browser.open(`/login?attempt=${body.login_attempt_id}`)
  const account = newProviderAccount({ email: null, emailVerified: false })
  const question = await oauth.signInWith(browser, login, 'twitch', account)
  expect(question.name).toBe('approval')
  // The account has no email address, so it is named by its provider.
  expect(question.text).toContain('Twitch')
  const { login_attempt_id, poll_token } = body
  const poll = () => api.post<{ status?: string }>('/auth/plugin/login/poll', { login_attempt_id, poll_token })
  expect((await poll()).body.status).toBe('pending')
  await browser.submit(question, '/login/approve')
  expect((await poll()).body.status).toBe('complete')
})

test('a denial at the provider changes nothing and links back to the login page', async () => {
  const browser = site.browser()
  await startWithGoogle(browser, '/login?next=/account')
  const page = await browser.open('/oauth/google/callback?error=access_denied&state=x', { from: 'cross-site' })
  expect(page).toMatchObject({ status: 200, name: 'oauth-cancelled', problem: 'access_denied' })
  expect(page.links).toContain('/login?next=%2Faccount')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
})

const invalidQueries = [
  '',
  'error=x',
  'error=server_error&error_description=%3Cscript%3E',
  'error=',
  'error=access_denied&error=x',
  'error=x&code=c&state=s',
  'code=c',
  'state=s',
  'code=&state=',
  'code=c&code=d&state=s',
  'code=c&state=s&state=t',
  'code=c&state=s&iss=a&iss=b',
  'code[]=c&state[]=s',
  'code=%FF&state=%00',
  `code=${'c'.repeat(6000)}&state=s`,
]

test.each(invalidQueries)(
  'a forged callback (case %#) gets 400 with a link, and a pending authorization request stays valid',
  async (query) => {
    const path = `/oauth/google/callback?${query}`
    const withoutRequest = await site.browser().open(path, { from: 'cross-site' })
    expect(withoutRequest).toMatchObject(expired)
    expect(withoutRequest.links).toContain('/')
    const browser = site.browser()
    const forwarding = await startWithGoogle(browser, '/login?next=/account')
    const page = await browser.open(path, { from: 'cross-site' })
    expect(page.status).toBe(400)
    expect(page.html).toMatch(/href="\/(login\?next=%2Faccount)?"/)
    expect(page.html).not.toContain('<script>')
    for (const answer of [withoutRequest, page]) expect(answer.visited).toHaveLength(1)
    const callback = await oauth.callbackPath('google', newProviderAccount(), forwarding)
    expect((await browser.open(callback, { from: 'cross-site' })).path).toBe('/account')
  },
)

test('a denial without an authorization request in this browser gets 400', async () => {
  const page = await site.browser().open('/oauth/google/callback?error=access_denied', { from: 'cross-site' })
  expect(page).toMatchObject(expired)
})

test('a callback for a request of another browser signs nobody in', async () => {
  const [attacker, victim] = [site.browser(), site.browser()]
  const callback = await oauth.callbackPath('google', newProviderAccount(), await startWithGoogle(attacker))
  expect(await victim.open(callback, { from: 'cross-site' })).toMatchObject(expired)
  expect(victim.cookies.get('svc_session')).toBeUndefined()
  // A pending request of the victim is not completed by it, and stays valid.
  const forwarding = await startWithGoogle(victim)
  expect((await victim.open(callback, { from: 'cross-site' })).status).toBe(400)
  expect(victim.cookies.get('svc_session')).toBeUndefined()
  const own = await oauth.callbackPath('google', newProviderAccount(), forwarding)
  expect((await victim.open(own, { from: 'cross-site' })).path).toBe('/relays')
})

test('a callback for another provider, or a second one, does nothing', async () => {
  const browser = site.browser()
  const callback = await oauth.callbackPath('google', newProviderAccount(), await startWithGoogle(browser))
  const cookie = browser.cookies.get('svc_oauth') ?? ''
  expect(await browser.open(callback.replace('google', 'twitch'), { from: 'cross-site' })).toMatchObject(expired)
  expect((await browser.open(callback, { from: 'cross-site' })).path).toBe('/relays')
  const second = site.browser()
  second.cookies.set('svc_oauth', cookie, '/oauth')
  expect(await second.open(callback)).toMatchObject({ status: 400, name: 'oauth-failed' })
  expect(second.cookies.get('svc_session')).toBeUndefined()
})

test('a forged authorization cookie is ignored, and its `next` cannot lead to another site', async () => {
  const browser = site.browser()
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const request = { provider: 'google', intent: 'sign_in', binding: 'x', next: '/account' }
  for (const value of [
    '',
    'x',
    encode({}),
    encode({ ...request, intent: 'take_over' }),
    encode([]),
    'e'.repeat(5000),
  ]) {
    browser.cookies.set('svc_oauth', value, '/oauth')
    const page = await browser.open('/oauth/google/callback?code=x&state=y', { from: 'cross-site' })
    expect(page, value).toMatchObject(expired)
  }
  browser.cookies.set('svc_oauth', encode({ ...request, next: 'https://evil.example/' }), '/oauth')
  const page = await browser.open('/oauth/google/callback?error=access_denied')
  expect(page.html).not.toContain('evil')
})

test('linking a provider keeps the sign-in', async () => {
  const { browser } = await signedInBrowser()
  const before = browser.cookies.get('svc_session')
  const forwarding = await browser.post('/oauth/discord/start', { intent: 'link', scopes: 'identity' })
  const callback = await oauth.callbackPath('discord', newProviderAccount(), forwarding)
  const page = await browser.open(callback, { from: 'cross-site' })
  expect(page).toMatchObject({ path: '/account/security?done=linked', notice: 'linked' })
  expect(browser.cookies.get('svc_session')).toBe(before)
  expect(linkedProviders(await fetchUser(api, before))).toContain('discord')
})

test('chat scopes are requested when a linked account connects its chat only', async () => {
  const { browser } = await signedInBrowser()
  const requestedScopes = async (fields: Readonly<Record<string, string>>) =>
    new URL((await browser.post('/oauth/twitch/start', fields)).continuesTo ?? '').searchParams.get('scope')
  expect(await requestedScopes({ intent: 'link', scopes: 'chat' })).toContain('chat:read')
  expect(await requestedScopes({ intent: 'link' })).not.toContain('chat')
  expect(await requestedScopes({ intent: 'sign_in', scopes: 'chat' })).not.toContain('chat')
})

test('a provider account that is linked to another account cannot be linked', async () => {
  const account = newProviderAccount()
  const first = site.browser()
  await oauth.signInWith(first, await first.open('/login'), 'twitch', account)
  const { browser } = await signedInBrowser()
  const forwarding = await browser.post('/oauth/twitch/start', { intent: 'link' })
  const page = await browser.open(await oauth.callbackPath('twitch', account, forwarding), { from: 'cross-site' })
  expect(page).toMatchObject({ status: 409, name: 'oauth-failed', problem: 'provider_already_linked' })
  expect(page.links).toContain('/account/security')
})

test('linking requires a sign-in, a known provider and a form of this site', async () => {
  const browser = site.browser()
  expect((await browser.post('/oauth/google/start', { intent: 'link' })).path).toBe('/login?next=/account')
  expect((await browser.post('/oauth/google/start', {}, { from: 'cross-site' })).status).toBe(403)
  expect((await browser.post('/oauth/myspace/start', {})).status).toBe(404)
  expect(browser.cookies.get('svc_oauth')).toBeUndefined()
})

test('a failure of the provider is reported with its name, and signs nobody in', async () => {
  const browser = site.browser()
  const callback = await oauth.callbackPath('google', newProviderAccount(), await startWithGoogle(browser))
  oauth.providers.google.failWith('status 500')
  const page = await browser.open(callback, { from: 'cross-site' })
  oauth.providers.google.recover()
  expect([page.status, page.name]).toEqual([503, 'oauth-failed'])
  expect(page.text).toContain('Google')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
})
