/** The security page: address, linked accounts and sign-ins, in a browser without scripts. */
import { expect, test } from 'vitest'
import type { GivenUser } from '../../support/api.ts'
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

test('the security page shows the email address and whether it is verified', async () => {
  const user = await api.given.user()
  const page = await browserOf(user).open('/account/security')
  expect(page.text).toContain(user.email)
  expect(page.data('email-verified')).toEqual(['no'])
})

test('unlinked providers can be linked, and linked ones can connect their chat', async () => {
  const { browser } = await twitchUser()
  const page = await browser.open('/account/security')
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
  const page = await browser.submit(await browser.open('/account/security'), '/account/linked/twitch/unlink')
  expect([page.status, page.problem]).toEqual([409, 'last_sign_in_method'])
  expect(linkedProviders(await fetchUser(api, bearer))).toEqual(['twitch'])
})

test('an account without an email address has no link to change a password', async () => {
  const { browser } = await twitchUser(newProviderAccount({ email: null, emailVerified: false }))
  const page = await browser.open('/account/security')
  expect(page.name).toBe('account-security')
  expect(page.links).not.toContain('/account/security/password')
})

test('a list that the API does not return fails the page instead of looking empty', async () => {
  const user = await api.given.user()
  const { body: summary } = await api.get<object>('/auth/session?view=dock', { bearer: user.bearer })
  const double = await startApiDouble()
  double.respondWith(({ url }) => (url.includes('/auth/sessions') ? { status: 503, body: {} } : { body: summary }))
  const browser = (await startSite(double)).browser()
  browser.cookies.set('svc_session', user.bearer)
  expect((await browser.open('/account/security')).status).toBe(503)
})

test('one of several ways to sign in can be unlinked', async () => {
  const user = await api.given.user()
  await authorize('twitch', newProviderAccount(), { intent: 'link', bearer: user.bearer })
  const browser = browserOf(user)
  const page = await browser.submit(await browser.open('/account/security'), '/account/linked/twitch/unlink')
  expect([page.path, page.status, page.notice]).toEqual(['/account/security?done=unlinked', 200, 'unlinked'])
  expect(linkedProviders(await fetchUser(api, user.bearer))).toEqual([])
  const unknown = await browser.post('/account/linked/nobody/unlink', {})
  expect([unknown.status, unknown.problem]).toEqual([404, 'not_found'])
})

test('other sign-ins can be ended, the current one is marked and has no button', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS at home')
  const browser = browserOf(user)
  const page = await browser.open('/account/security')
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
  const page = await browserOf(user).open('/account/security')
  expect(page.data('client-kind').toSorted()).toEqual(['plugin', 'plugin', 'web'])
  const activity = await browserOf(user).open('/account/activity')
  // The plugins' names are quoted in the activity, the browser's is not.
  expect(activity.text.match(/· Browser/g)).toHaveLength(1)
  for (const name of ['“Browser”', '“web”']) expect(activity.text).toContain(name)
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
  const sent = await browser.submit(await browser.open('/account/security'), '/account/verification')
  expect(sent.notice).toBe('verification_sent')
  expect(mailsTo(api, user.email)).toHaveLength(1)
  await browser.post('/account/verification', {})
  const limited = await browser.post('/account/verification', {})
  expect([limited.status, limited.problem]).toEqual([429, 'rate_limited'])
  expect(limited.text).toMatch(/ [1-9]\d? seconds?\b/)
})

test('an unknown `done` parameter shows no notice', async () => {
  const browser = browserOf(await api.given.user())
  expect((await browser.open('/account/security?done=linked')).notice).toBe('linked')
  for (const other of ['Your%20account%20is%20blocked', 'constructor', '__proto__', 'toString'])
    expect((await browser.open(`/account/security?done=${other}`)).notice).toBeUndefined()
})

test('without a sign-in every form redirects to the login page and changes nothing', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS')
  const anonymous = site.browser()
  expect((await anonymous.open('/account/security')).path).toBe('/login?next=%2Faccount%2Fsecurity')
  for (const path of [
    '/account/verification',
    '/account/linked/twitch/unlink',
    `/account/sessions/${plugin.authSessionId}/sign-out`,
  ])
    expect((await anonymous.post(path, {})).name).toBe('login')
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(200)
})

test('the data of the account can be downloaded as a file', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  expect((await browser.open('/account/security')).links).toContain('/account/security/export')
  const reply = await browser.request('GET', '/account/security/export')
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
  expect(reply.headers.get('content-disposition')).toMatch(/^attachment; filename="account-\d{4}-\d\d-\d\d\.json"$/)
  const { user_id, tables } = JSON.parse(reply.text) as { user_id: string; tables: { users: object[] } }
  expect([user_id, tables.users]).toMatchObject([user.userId, [{ email: user.email }]])
})

test('a download with an old sign-in asks for a new one', async () => {
  const user = await api.given.user()
  await api.sql`update auth_sessions set created_at = now() - interval '11 minutes' where id = ${user.authSessionId}`
  const page = await browserOf(user).open('/account/security/export')
  expect([page.status, page.name, page.problem]).toEqual([403, 'account-export', 'recent_sign_in_required'])
  expect(page.links).toContain('/account/security')
})
