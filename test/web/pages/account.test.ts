/** The account page: profile, plan, linked accounts, sign-ins and activity, in a browser without scripts. */
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

function browserOf({ bearer }: Pick<GivenUser, 'bearer'>): Browser {
  const browser = site.browser()
  browser.cookies.set('svc_session', bearer)
  return browser
}

/** A user who signed up with Twitch and has no other way to sign in. */
async function twitchUser(account = newProviderAccount()) {
  const { body } = await authorize('twitch', account)
  const bearer = body.cp_access_jwt ?? ''
  return { bearer, browser: browserOf({ bearer }) }
}

test('the account page shows email address, plan and relay time', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  const free = await browser.open('/account')
  expect(free.text).toContain(user.email)
  expect(free.data('email-verified')).toEqual(['no'])
  expect([free.data('plan-tier'), free.data('plan-status'), free.data('relays-in-use')]).toEqual([
    ['free'],
    ['none'],
    ['0/0'],
  ])
  expect([free.data('included-seconds'), free.data('consumed-seconds')]).toEqual([['0'], ['0']])

  await givePlan(api.sql, user.userId, 1)
  const paid = await browser.open('/account')
  expect([paid.data('plan-tier'), paid.data('plan-status'), paid.data('relays-in-use')]).toEqual([
    ['paid'],
    ['active'],
    ['0/2'],
  ])
  expect(paid.data('included-seconds')).toEqual([String(400 * 3600)])
  expect(paid.text).toContain('400 h')
})

test('unlinked providers can be linked, and linked ones can connect their chat', async () => {
  const { browser } = await twitchUser()
  const page = await browser.open('/account')
  expect(page.data('provider')).toEqual(['twitch', 'google', 'discord'])
  expect(page.data('linked')).toEqual(['yes', 'no', 'no'])
  expect(page.form('/oauth/google/start').fields).toMatchObject({ intent: 'link', scopes: 'identity' })
  expect(page.form('/oauth/twitch/start').fields).toMatchObject({ intent: 'link', scopes: 'chat' })
  expect([page.hasForm('/account/linked/twitch/unlink'), page.hasForm('/account/linked/google/unlink')]).toEqual([
    true,
    false,
  ])
})

test('the only way to sign in cannot be unlinked', async () => {
  const { bearer, browser } = await twitchUser()
  const page = await browser.submit(await browser.open('/account'), '/account/linked/twitch/unlink')
  expect([page.status, page.problem]).toEqual([409, 'last_sign_in_method'])
  expect(linkedProviders(await fetchUser(api, bearer))).toEqual(['twitch'])
})

test('an account without an email address has no link to change a password', async () => {
  const { browser } = await twitchUser(newProviderAccount({ email: null, emailVerified: false }))
  const page = await browser.open('/account')
  expect(page.name).toBe('account')
  expect(page.links).not.toContain('/forgot-password')
})

test('a list that the API does not return fails the page instead of looking empty', async () => {
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
  expect([page.path, page.status, page.notice]).toEqual(['/account?done=unlinked', 200, 'unlinked'])
  expect(linkedProviders(await fetchUser(api, user.bearer))).toEqual([])
  const unknown = await browser.post('/account/linked/nobody/unlink', {})
  expect([unknown.status, unknown.problem]).toEqual([404, 'not_found'])
})

test('other sign-ins can be ended, the current one is marked and has no button', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS at home')
  const browser = browserOf(user)
  const page = await browser.open('/account')
  const sessions = page.data('auth-session').map((id, index) => [id, page.data('current')[index]])
  expect(sessions).toEqual(
    expect.arrayContaining([
      [user.authSessionId, 'yes'],
      [plugin.authSessionId, 'no'],
    ]),
  )
  expect(page.text).toContain('OBS at home at 192.0.2.1')
  expect(page.hasForm(`/account/sessions/${user.authSessionId}/sign-out`)).toBe(false)

  const after = await browser.submit(page, `/account/sessions/${plugin.authSessionId}/sign-out`)
  expect(after.notice).toBe('signed_out')
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(401)
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(200)
})

test('a plugin that is named like a browser is listed as streaming software', async () => {
  const user = await api.given.user()
  await api.given.signIn(user, 'Browser')
  await api.given.signIn(user, 'web')
  const page = await browserOf(user).open('/account')
  expect(page.data('client-kind').toSorted()).toEqual(['plugin', 'plugin', 'web'])
  // The plugins' names are quoted in the activity, the browser's is not.
  expect(page.text.match(/· Browser/g)).toHaveLength(1)
  for (const name of ['“Browser”', '“web”']) expect(page.text).toContain(name)
})

test('repeated sign-up attempts with the address of the account are shown once with their count', async () => {
  const user = await api.given.user()
  const signUp = () =>
    api.post('/auth/signup', { email: user.email, password: 'a password of mine' }, { ip: '198.51.100.1' })
  await signUp()
  const once = await browserOf(user).open('/account')
  expect([once.data('action').filter((action) => action === 'signup_refused'), once.data('times')]).toEqual([
    ['signup_refused'],
    [],
  ])
  expect(once.text).toContain('198.51.100.1')
  await signUp()
  for (const n of [2, 3, 4, 5])
    await api.post('/auth/password/forgot', { email: user.email }, { ip: `198.51.100.${n}` })
  const page = await browserOf(user).open('/account')
  expect(page.data('times')).toEqual(['2', '2'])
  expect(page.data('action').filter((action) => action === 'signup_refused')).toHaveLength(1)
  // The entry for several addresses names none of them.
  expect(page.text).not.toContain('198.51.100.5')
})

test('the sign-in of another account cannot be ended', async () => {
  const other = await api.given.user()
  const browser = browserOf(await api.given.user())
  const page = await browser.post(`/account/sessions/${other.authSessionId}/sign-out`, {})
  expect([page.status, page.problem]).toEqual([404, 'not_found'])
  expect((await browser.post('/account/sessions/nonsense/sign-out', {})).status).toBe(404)
  expect((await api.get('/auth/session', { bearer: other.bearer })).status).toBe(200)
})

test('the verification link can be sent again, within the rate limit', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  const sent = await browser.submit(await browser.open('/account'), '/account/verification')
  expect(sent.notice).toBe('verification_sent')
  expect(mailsTo(api, user.email)).toHaveLength(1)
  await browser.post('/account/verification', {})
  const limited = await browser.post('/account/verification', {})
  expect([limited.status, limited.problem]).toEqual([429, 'rate_limited'])
  expect(limited.text).toMatch(/ [1-9]\d? seconds?\b/)
})

test('activity is listed newest first, and names of plugins are escaped', async () => {
  const user = await api.given.user()
  await api.given.signIn(user, '<img src=x onerror=alert(1)>')
  await api.post('/auth/login', { email: user.email, password: 'wrong, all of it' })
  await recordAuditEntry(api.sql, { initiator: 'operator', action: 'plan_granted', userId: user.userId })
  const page = await browserOf(user).open('/account')
  expect(page.data('action').slice(0, 4)).toEqual(['plan_granted', 'sign_in_failed', 'signed_in', 'signed_in'])
  expect(page.text).toContain('<img src=x onerror=alert(1)>')
  expect(page.html).not.toContain('<img')
})

test('an unknown `done` parameter shows no notice', async () => {
  const browser = browserOf(await api.given.user())
  expect((await browser.open('/account?done=linked')).notice).toBe('linked')
  for (const other of ['Your%20account%20is%20blocked', 'constructor', '__proto__', 'toString'])
    expect((await browser.open(`/account?done=${other}`)).notice).toBeUndefined()
})

test('without a sign-in every form redirects to the login page and changes nothing', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS')
  const anonymous = site.browser()
  expect((await anonymous.open('/account')).path).toBe('/login?next=%2Faccount')
  for (const path of [
    '/account/verification',
    '/account/linked/twitch/unlink',
    `/account/sessions/${plugin.authSessionId}/sign-out`,
  ])
    expect((await anonymous.post(path, {})).name).toBe('login')
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(200)
})
