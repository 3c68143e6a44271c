/** Leaving for a provider and coming back, at a browser that runs no script and keeps Strict cookies from other sites. */
import { expect, test } from 'vitest'
import { newProviderAccount } from '../../support/oauth-api.ts'
import { startApiAndSite } from '../../support/site.ts'
import { startOAuthSite } from '../../support/site-oauth.ts'

const oauth = await startOAuthSite()
const { api, site } = oauth

const accountOf = async (bearer: string | undefined) =>
  (
    await api.get<{
      user: { id: string; email: string | null; linked_accounts: { provider: string; linked: boolean }[] }
    }>('/auth/session', { bearer: bearer ?? '' })
  ).body.user

test('somebody who comes back from any of the providers is signed in where they wanted to go', async () => {
  for (const provider of ['twitch', 'google', 'discord'] as const) {
    const [browser, person] = [site.browser(), newProviderAccount()]
    const page = await oauth.through(browser, await browser.open('/login?next=/account'), provider, person)
    expect(page.path, provider).toBe('/account')
    expect((await accountOf(browser.cookies.get('svc_session'))).email).toBe(person.email)
    expect(browser.cookies.get('svc_oauth')).toBeUndefined()
  }
})

test('what the browser carries to the provider and back is read by no script and goes to those pages only', async () => {
  const browser = site.browser()
  const leaving = await browser.submit(await browser.open('/login'), '/oauth/google/start')
  expect(leaving.continuesTo).toContain(oauth.providers.google.issuerUrl)
  expect(browser.cookies.attributesOf('svc_oauth')).toBe('Path=/oauth; Max-Age=600; HttpOnly; Secure; SameSite=Lax')
  const carried = JSON.parse(Buffer.from(browser.cookies.get('svc_oauth') ?? '', 'base64url').toString())
  expect(leaving.continuesTo).not.toContain(carried.binding)
})

test('providers that are not set up are not offered', async () => {
  const bare = await startApiAndSite()
  expect((await bare.site.browser().open('/login')).html).not.toContain('/oauth/')
  expect((await site.browser().open('/login')).html).toContain('Continue with Discord')
})

test('who answers a plugin by way of a provider comes back to the question, and has approved nothing', async () => {
  const { body } = await api.post<{ login_attempt_id: string; poll_token: string; authorize_url: string }>(
    '/auth/plugin/login/start',
    {},
  )
  const browser = site.browser()
  const login = await browser.open(`/login?attempt=${body.login_attempt_id}`)
  const question = await oauth.through(
    browser,
    login,
    'twitch',
    newProviderAccount({ email: null, emailVerified: false }),
  )
  expect(question.heading).toBe('Let this program in?')
  expect(question.text).toContain('Let in to your Twitch account')
  const { login_attempt_id, poll_token } = body
  const poll = () => api.post<{ status?: string }>('/auth/plugin/login/poll', { login_attempt_id, poll_token })
  expect((await poll()).body.status).toBe('pending')
  await browser.submit(question, '/login/approve')
  expect((await poll()).body.status).toBe('complete')
})

test('who does not agree at the provider is told that nothing was done, and can go back', async () => {
  const browser = site.browser()
  await browser.submit(await browser.open('/login?next=/account'), '/oauth/google/start')
  const page = await browser.open('/oauth/google/callback?error=access_denied&state=x', { from: 'cross-site' })
  expect(page).toMatchObject({ status: 200, heading: 'Nothing was done' })
  expect(page.html).toContain('href="/login?next=%2Faccount"')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
})

const oddQueries = [
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

test.each(oddQueries)(
  'a callback that anybody can send a browser to (case %#) is a bad request with a way back',
  async (query) => {
    const path = `/oauth/google/callback?${query}`
    const stranger = await site.browser().open(path, { from: 'cross-site' })
    expect([stranger.status, stranger.html.includes('href="/"')]).toEqual([400, true])
    const browser = site.browser()
    const leaving = await browser.submit(await browser.open('/login?next=/account'), '/oauth/google/start')
    const page = await browser.open(path, { from: 'cross-site' })
    expect(page.status).toBe(400)
    expect(page.html).toMatch(/href="\/(login\?next=%2Faccount)?"/)
    expect(page.html).not.toContain('<script>')
    for (const one of [stranger, page]) expect(one.visited).toHaveLength(1)
    // What is under way goes on.
    const home = await browser.open(await oauth.away('google', newProviderAccount(), leaving), { from: 'cross-site' })
    expect(home.path).toBe('/account')
  },
)

test('a denial that this browser did not ask for is a bad request as well', async () => {
  const page = await site.browser().open('/oauth/google/callback?error=access_denied', { from: 'cross-site' })
  expect(page).toMatchObject({ status: 400, heading: 'Start again in this browser' })
})

test('a return that did not begin in this browser signs nobody in', async () => {
  const [attacker, victim] = [site.browser(), site.browser()]
  const leaving = await attacker.submit(await attacker.open('/login'), '/oauth/google/start')
  const back = await oauth.away('google', newProviderAccount(), leaving)
  const page = await victim.open(back, { from: 'cross-site' })
  expect(page).toMatchObject({ status: 400, heading: 'Start again in this browser' })
  expect(victim.cookies.get('svc_session')).toBeUndefined()
  // Nor when the victim has a request of their own under way, which stays well.
  const own = await victim.submit(await victim.open('/login'), '/oauth/google/start')
  expect((await victim.open(back, { from: 'cross-site' })).status).toBe(400)
  expect(victim.cookies.get('svc_session')).toBeUndefined()
  const home = await victim.open(await oauth.away('google', newProviderAccount(), own), { from: 'cross-site' })
  expect(home.path).toBe('/relays')
})

test('a return to the page of another provider, or for the second time, does nothing', async () => {
  const browser = site.browser()
  const leaving = await browser.submit(await browser.open('/login'), '/oauth/google/start')
  const back = await oauth.away('google', newProviderAccount(), leaving)
  const cookie = browser.cookies.get('svc_oauth') ?? ''
  const other = await browser.open(back.replace('google', 'twitch'), { from: 'cross-site' })
  expect(other.heading).toBe('Start again in this browser')
  expect((await browser.open(back, { from: 'cross-site' })).path).toBe('/relays')
  const second = site.browser()
  second.cookies.set('svc_oauth', cookie, '/oauth')
  expect(await second.open(back)).toMatchObject({ status: 400, heading: 'That did not work' })
  expect(second.cookies.get('svc_session')).toBeUndefined()
})

test('a cookie that is not ours is no round request, and leads nowhere else', async () => {
  const browser = site.browser()
  const forged = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const request = { provider: 'google', intent: 'sign_in', binding: 'x', next: '/account' }
  for (const value of [
    '',
    'x',
    forged({}),
    forged({ ...request, intent: 'take_over' }),
    forged([]),
    'e'.repeat(5000),
  ]) {
    browser.cookies.set('svc_oauth', value, '/oauth')
    const page = await browser.open('/oauth/google/callback?code=x&state=y', { from: 'cross-site' })
    expect(page, value).toMatchObject({ status: 400, heading: 'Start again in this browser' })
  }
  browser.cookies.set('svc_oauth', forged({ ...request, next: 'https://evil.example/' }), '/oauth')
  const page = await browser.open('/oauth/google/callback?error=access_denied')
  expect(page.html).not.toContain('evil')
})

test('somebody who is signed in links a provider and stays signed in as they were', async () => {
  const [user, browser] = [await api.given.user(), site.browser()]
  await browser.post('/login', { email: user.email, password: user.password })
  const before = browser.cookies.get('svc_session')
  const leaving = await browser.post('/oauth/discord/start', { intent: 'link', scopes: 'identity' })
  const page = await browser.open(await oauth.away('discord', newProviderAccount(), leaving), { from: 'cross-site' })
  expect(page.path).toBe('/account?done=linked')
  expect(browser.cookies.get('svc_session')).toBe(before)
  const { linked_accounts } = await accountOf(before)
  expect(linked_accounts).toContainEqual({ provider: 'discord', linked: true })
})

test('the rights to a chat are asked for only where somebody connects it', async () => {
  const [user, browser] = [await api.given.user(), site.browser()]
  await browser.post('/login', { email: user.email, password: user.password })
  const scopesOf = async (fields: Readonly<Record<string, string>>) =>
    new URL((await browser.post('/oauth/twitch/start', fields)).continuesTo ?? '').searchParams.get('scope')
  expect(await scopesOf({ intent: 'link', scopes: 'chat' })).toContain('chat:read')
  expect(await scopesOf({ intent: 'link' })).not.toContain('chat')
  expect(await scopesOf({ intent: 'sign_in', scopes: 'chat' })).not.toContain('chat')
})

test('a provider account that is linked elsewhere is not linked a second time, and the page says why', async () => {
  const person = newProviderAccount()
  const first = site.browser()
  await oauth.through(first, await first.open('/login'), 'twitch', person)
  const [user, browser] = [await api.given.user(), site.browser()]
  await browser.post('/login', { email: user.email, password: user.password })
  const leaving = await browser.post('/oauth/twitch/start', { intent: 'link' })
  const page = await browser.open(await oauth.away('twitch', person, leaving), { from: 'cross-site' })
  expect(page.status).toBe(409)
  expect(page.problem).toContain('Nothing was linked')
  expect(page.html).toContain('href="/account"')
})

test('linking without being signed in leads to the sign-in; another site starts nothing', async () => {
  const browser = site.browser()
  expect((await browser.post('/oauth/google/start', { intent: 'link' })).path).toBe('/login?next=/account')
  expect((await browser.post('/oauth/google/start', {}, { from: 'cross-site' })).status).toBe(403)
  expect((await browser.post('/oauth/myspace/start', {})).status).toBe(404)
  expect(browser.cookies.get('svc_oauth')).toBeUndefined()
})

test('a provider that is in trouble is named, and nobody is signed in', async () => {
  const browser = site.browser()
  const leaving = await browser.submit(await browser.open('/login'), '/oauth/google/start')
  const back = await oauth.away('google', newProviderAccount(), leaving)
  oauth.providers.google.failWith('status 500')
  const page = await browser.open(back, { from: 'cross-site' })
  oauth.providers.google.recover()
  expect(page.status).toBe(503)
  expect(page.problem).toBe('Google did not answer as it should: try again in a moment.')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
})
