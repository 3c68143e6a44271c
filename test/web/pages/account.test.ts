import { expect, test } from 'vitest'
import { recordAuditEntry } from '../../../db/audit.ts'
import { type GivenUser, givePlan } from '../../support/api.ts'
import { startApiDouble } from '../../support/api-double.ts'
import { highLimits } from '../../support/environment.ts'
import { mailsTo } from '../../support/mails.ts'
import { fetchUser, linkedProviders, newProviderAccount, startOAuthApi } from '../../support/oauth-api.ts'
import { operatorPassword } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'

const siteUrl = await freeSiteUrl()
const { api, authorize } = await startOAuthApi({
  SVC_SITE_URL: siteUrl,
  SVC_OPERATOR_PASSWORD: operatorPassword,
  SVC_RATE_LIMITS: highLimits({ forgot: 2 }),
})
const site = await startSite(api, { SVC_SITE_URL: siteUrl })

/** A browser with that sign-in, which counts as an address of its own. */
function browserOf({ bearer }: Pick<GivenUser, 'bearer'>): Browser {
  const browser = site.browser()
  browser.cookies.set('svc_session', bearer)
  return browser
}

/** Somebody who came through Twitch and has no other way in. */
async function twitchUser(account = newProviderAccount()) {
  const { body } = await authorize('twitch', account)
  const bearer = body.cp_access_jwt ?? ''
  return { bearer, browser: browserOf({ bearer }) }
}

test('the account says whose it is, what its plan includes, and how much relay time is used', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  const free = await browser.open('/account')
  expect(free.text).toContain(`${user.email} Not confirmed`)
  expect(free.text).toContain('Free plan No managed relay.')
  expect(free.text).toContain('0 min used.')

  await givePlan(api.sql, user.userId, 1)
  const paid = await browser.open('/account')
  expect(paid.text).toContain('Paid plan Active 2 managed relays at once, 0 of 2 in use.')
  expect(paid.text).toContain('0 min of 400 h used, 400 h left.')
})

test('what can be linked here is offered, and chat only where something is linked', async () => {
  const { browser } = await twitchUser()
  const page = await browser.open('/account')
  expect(page.text).toMatch(/Twitch Linked Connect Twitch chat Unlink Twitch Google Link Google Discord Link Discord/)
  const link = page.form('/oauth/google/start').fields
  expect(link).toMatchObject({ intent: 'link', scopes: 'identity' })
  expect(page.form('/oauth/twitch/start').fields).toMatchObject({ intent: 'link', scopes: 'chat' })
})

test('the only way to sign in stays linked, and the page says why', async () => {
  const { bearer, browser } = await twitchUser()
  const page = await browser.submit(await browser.open('/account'), '/account/linked/twitch/unlink')
  expect([page.status, page.problem]).toEqual([409, expect.stringContaining('the only way to sign in')])
  expect(linkedProviders(await fetchUser(api, bearer))).toEqual(['twitch'])
})

test('who has no address is not sent to change a password', async () => {
  const { browser } = await twitchUser(newProviderAccount({ email: null, emailVerified: false }))
  const page = await browser.open('/account')
  expect(page.html).not.toContain('/forgot-password')
  expect(page.text).toContain('Something that was not you? Sign it out above')
})

test('lists that the api does not tell are not shown as empty', async () => {
  const user = await api.given.user()
  const { body: summary } = await api.get<object>('/auth/session?view=dock', { bearer: user.bearer })
  const double = await startApiDouble()
  double.respondWith(({ url }) => (url.includes('/auth/sessions') ? { status: 503, body: {} } : { body: summary }))
  const browser = (await startSite(double)).browser()
  browser.cookies.set('svc_session', user.bearer)
  expect((await browser.open('/account')).status).toBe(503)
})

test('one of several ways to sign in can be unlinked', async () => {
  const user = await api.given.user()
  await authorize('twitch', newProviderAccount(), { intent: 'link', bearer: user.bearer })
  const browser = browserOf(user)
  const page = await browser.submit(await browser.open('/account'), '/account/linked/twitch/unlink')
  expect([page.path, page.status]).toEqual(['/account?done=unlinked', 200])
  expect(page.text).toContain('Not linked any more.')
  expect(linkedProviders(await fetchUser(api, user.bearer))).toEqual([])
  const unknown = await browser.post('/account/linked/nobody/unlink', {})
  expect([unknown.status, unknown.problem]).toEqual([404, 'There is no such thing on your account any more.'])
})

test('another sign-in is ended from here, and this one is known as this browser', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS at home')
  const browser = browserOf(user)
  const page = await browser.open('/account')
  expect(page.text).toContain('Browser This browser')
  expect(page.text).toContain('Sign out OBS at home at 192.0.2.1')
  expect(() => page.form(`/account/sessions/${user.authSessionId}/sign-out`)).toThrow()

  const after = await browser.submit(page, `/account/sessions/${plugin.authSessionId}/sign-out`)
  expect(after.text).toContain('Signed out there.')
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(401)
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(200)
})

test('a plugin that is named like a browser is not listed as one', async () => {
  const user = await api.given.user()
  await api.given.signIn(user, 'Browser')
  await api.given.signIn(user, 'web')
  const page = await browserOf(user).open('/account')
  expect(page.text).toContain('Browser This browser')
  expect(page.text).toMatch(/Browser Streaming software 192\.0\.2\.1/)
  expect(page.text).toMatch(/web Streaming software 192\.0\.2\.1/)
  expect(page.text.match(/· Browser/g)).toHaveLength(1)
  expect(page.text).toContain('· streaming software “Browser”')
})

test('the owner of an address sees that a stranger tried to sign up with it, and how often', async () => {
  const user = await api.given.user()
  await api.post('/auth/signup', { email: user.email, password: 'a password of mine' }, { ip: '198.51.100.1' })
  const once = await browserOf(user).open('/account')
  expect(once.text).toMatch(/Someone tried to open an account with your address just now · 198\.51\.100\.1/)
  await api.post('/auth/signup', { email: user.email, password: 'a password of mine' }, { ip: '198.51.100.1' })
  for (const n of [2, 3, 4]) await api.post('/auth/password/forgot', { email: user.email }, { ip: `198.51.100.${n}` })
  await api.post('/auth/password/forgot', { email: user.email }, { ip: '198.51.100.5' })
  const { text } = await browserOf(user).open('/account')
  expect(text).toMatch(/with your address 2 times, first just now ?, last just now · 198\.51\.100\.1/)
  expect(text).toMatch(/new password asked for 2 times, first just now ?, last just now · from several addresses/)
})

test('nobody ends the sign-in of another', async () => {
  const other = await api.given.user()
  const browser = browserOf(await api.given.user())
  const page = await browser.post(`/account/sessions/${other.authSessionId}/sign-out`, {})
  expect([page.status, page.problem]).toEqual([404, 'There is no such thing on your account any more.'])
  expect((await browser.post('/account/sessions/nonsense/sign-out', {})).status).toBe(404)
  expect((await api.get('/auth/session', { bearer: other.bearer })).status).toBe(200)
})

test('the link that confirms the address is sent again on request, not endlessly', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  const sent = await browser.submit(await browser.open('/account'), '/account/verification')
  expect(sent.text).toContain('A new link is on its way to your address.')
  expect(mailsTo(api, user.email)).toHaveLength(1)
  await browser.post('/account/verification', {})
  const tooOften = await browser.post('/account/verification', {})
  expect([tooOften.status, tooOften.problem]).toEqual([
    429,
    expect.stringMatching(/Wait [1-9]\d? seconds?, then try again\./),
  ])
})

test('what happened is told in words, newest first, and what a plugin calls itself is text', async () => {
  const user = await api.given.user()
  await api.given.signIn(user, '<img src=x onerror=alert(1)>')
  await api.post('/auth/login', { email: user.email, password: 'wrong, all of it' })
  await recordAuditEntry(api.sql, { initiator: 'operator', action: 'plan_granted', userId: user.userId })
  const page = await browserOf(user).open('/account')
  expect(page.text).toMatch(
    /Recent activity .* Plan given just now · by support Sign-in refused: wrong password .* Signed in .*Signed in/,
  )
  expect(page.text).toContain('<img src=x onerror=alert(1)>')
  expect(page.html).not.toContain('<img')
})

test('only notices of ours are shown', async () => {
  const browser = browserOf(await api.given.user())
  expect((await browser.open('/account?done=linked')).text).toContain('It is linked to your account.')
  for (const other of ['Your%20account%20is%20blocked', 'constructor', '__proto__', 'toString'])
    expect((await browser.open(`/account?done=${other}`)).html).not.toContain('class="notice"')
})

test('who is not signed in changes nothing and is led to the login page', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS')
  const stranger = site.browser()
  expect((await stranger.open('/account')).path).toBe('/login?next=%2Faccount')
  for (const path of [
    '/account/verification',
    '/account/linked/twitch/unlink',
    `/account/sessions/${plugin.authSessionId}/sign-out`,
  ])
    expect((await stranger.post(path, {})).heading).toBe('Sign in')
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(200)
})
