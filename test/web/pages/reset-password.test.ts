/** Requesting and completing a password reset, in a browser without scripts. */
import { expect, test } from 'vitest'
import { highLimits } from '../../support/environment.ts'
import { mailsTo } from '../../support/mails.ts'
import { startApiAndSite } from '../../support/site.ts'
import type { Page } from '../../support/site-page.ts'

const { api, site } = await startApiAndSite()
const newPassword = 'another few words in a row'
const invalidLink = { status: 400, name: 'reset-password-link-invalid', problem: 'token_invalid' }

/** Path and query of the latest emailed link. */
async function requestLink(email: string): Promise<string> {
  await site.browser().post('/forgot-password', { email })
  const link = new URL(mailsTo(api, email).at(-1)?.link ?? '')
  return link.pathname + link.search
}

/** The linked accounts on the page, and whether each stays linked. */
const linkedAccounts = (page: Page) =>
  Object.fromEntries(page.data('provider').map((provider, index) => [provider, page.data('linked')[index]]))

test('the reply to a reset request does not reveal whether the address has an account', async () => {
  const user = await api.given.user()
  const known = await site.browser().post('/forgot-password', { email: user.email })
  const unknown = await site.browser().post('/forgot-password', { email: 'nobody@example.com' })
  expect(known).toMatchObject({ status: 200, name: 'forgot-password-email-sent', notice: 'email_sent' })
  expect(known.html.replaceAll(user.email, '…')).toBe(unknown.html.replaceAll('nobody@example.com', '…'))
})

test('the emailed link sets a new password and ends all sign-ins', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const form = await browser.open(await requestLink(user.email), { from: 'cross-site' })
  const page = await browser.submit(form, '/reset-password', { password: newPassword })
  expect(page).toMatchObject({ path: '/login?done=reset', status: 200, notice: 'password_reset' })
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(401)
  const login = (password: string) => site.browser().post('/login', { email: user.email, password })
  expect((await login(user.password)).status).toBe(401)
  expect((await login(newPassword)).path).toBe('/relays')
})

test('opening the link does not use it up, submitting the form does', async () => {
  const user = await api.given.user()
  const link = await requestLink(user.email)
  const browser = site.browser()
  for (let times = 0; times < 3; times += 1) await browser.open(link, { from: 'cross-site' })
  const form = await browser.open(link)
  const weak = await browser.submit(form, '/reset-password', { password: 'password123' })
  expect([weak.status, weak.problem]).toEqual([400, 'invalid_request'])
  expect((await browser.submit(weak, '/reset-password', { password: newPassword })).path).toBe('/login?done=reset')
  const again = await browser.submit(form, '/reset-password', { password: newPassword })
  expect(again).toMatchObject(invalidLink)
})

test('an invalid link is refused when it is opened', async () => {
  for (const link of ['/reset-password', '/reset-password?token=', '/reset-password?token=made-up'])
    expect(await site.browser().open(link)).toMatchObject(invalidLink)
})

test('the form shows which linked accounts stay, and the login page names those that were unlinked', async () => {
  const user = await api.given.user()
  await api.sql`
    insert into user_oauth_accounts (user_id, provider, provider_user_id, provider_verified_email)
    values (${user.userId}, 'google', ${user.userId}, ${user.email}), (${user.userId}, 'twitch', ${user.userId}, null),
      (${user.userId}, 'discord', ${user.userId}, 'another@example.com')`
  const browser = site.browser()
  const form = await browser.open(await requestLink(user.email))
  expect(linkedAccounts(form)).toEqual({ google: 'yes', twitch: 'no', discord: 'no' })
  const weak = await browser.submit(form, '/reset-password', { password: 'password123' })
  expect(linkedAccounts(weak)).toEqual(linkedAccounts(form))
  const page = await browser.submit(weak, '/reset-password', { password: newPassword })
  expect(page.notice).toBe('password_reset')
  expect(page.text).toContain('Twitch, Discord')
  expect((await browser.post('/login', { email: user.email, password: newPassword })).path).toBe('/relays')
  const account = await browser.open('/account/activity')
  expect(account.data('action')).toContain('password_reset')
  expect(account.text).toContain('Twitch, Discord')
})

test('the form shows whether the reset replaces stream addresses', async () => {
  const user = await api.given.user()
  const first = await site.browser().open(await requestLink(user.email))
  expect(first.data('replaces-stream-token')).toEqual(['yes'])
  await site.browser().submit(first, '/reset-password', { password: newPassword })
  const second = await site.browser().open(await requestLink(user.email))
  expect(second.data('replaces-stream-token')).toEqual(['no'])
})

test('the login page names known providers only as unlinked', async () => {
  const page = await site.browser().open('/login?done=reset&unlinked=twitch,evil,%3Cb%3E,twitch')
  expect(page.text.match(/Twitch/g)).toHaveLength(1)
  expect(page.html).not.toContain('evil')
})

test('the token of the link appears in its form only, and is sent to no other host', async () => {
  const link = await requestLink((await api.given.user()).email)
  const token = new URL(link, site.url).searchParams.get('token') ?? ''
  const page = await site.browser().open(link)
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.html.split(token)).toHaveLength(2)
  expect(page.form('/reset-password').fields.token).toBe(token)
  expect(page.html).not.toMatch(/(src|href)="(https?:)?\/\//)
})

test('a cross-origin form does not reset a password', async () => {
  const user = await api.given.user()
  const link = await requestLink(user.email)
  const token = new URL(link, site.url).searchParams.get('token') ?? ''
  const page = await site.browser().post('/reset-password', { token, password: newPassword }, { from: 'cross-site' })
  expect(page.status).toBe(403)
  expect((await site.browser().post('/login', { email: user.email, password: user.password })).path).toBe('/relays')
})

test('a reset request with an invalid address, or too many of them, is refused', async () => {
  const wrong = await site.browser().post('/forgot-password', { email: 'nobody' })
  expect(wrong).toMatchObject({ status: 400, problem: 'invalid_request' })
  expect(wrong.html).toMatch(/<input[^>]* name="email"[^>]* aria-invalid="true"/)
  const limited = await startApiAndSite({ api: { SVC_RATE_LIMITS: highLimits({ forgot: 1 }) } })
  const request = () => limited.site.browser().post('/forgot-password', { email: 'someone@example.com' })
  expect((await request()).status).toBe(200)
  expect(await request()).toMatchObject({ status: 429, problem: 'rate_limited' })
})
