/** A forgotten password, at a browser that runs no script. */
import { expect, test } from 'vitest'
import { highLimits } from '../../support/environment.ts'
import { mailsTo } from '../../support/mails.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite()
const newPassword = 'another few words in a row'

/** Path and query of the newest link that was sent. */
async function askForLink(email: string): Promise<string> {
  await site.browser().post('/forgot-password', { email })
  const link = new URL(mailsTo(api, email).at(-1)?.link ?? '')
  return link.pathname + link.search
}

test('the page for a forgotten password is the same whether the address has an account or not', async () => {
  const user = await api.given.user()
  const known = await site.browser().post('/forgot-password', { email: user.email })
  const unknown = await site.browser().post('/forgot-password', { email: 'nobody@example.com' })
  expect(known).toMatchObject({ status: 200, heading: 'Look into your mail' })
  expect(known.html.replaceAll(user.email, '…')).toBe(unknown.html.replaceAll('nobody@example.com', '…'))
})

test('the link from the mail sets another password, and everything that was signed in is out', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const link = await askForLink(user.email)
  const form = await browser.open(link, { from: 'cross-site' })
  const page = await browser.submit(form, '/reset-password', { password: newPassword })
  expect(page).toMatchObject({ path: '/login?done=reset', status: 200 })
  expect(page.text).toContain('Your new password is set.')
  expect(page.text).not.toContain('Unlinked')
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(401)
  const login = (password: string) => site.browser().post('/login', { email: user.email, password })
  expect((await login(user.password)).status).toBe(401)
  expect((await login(newPassword)).path).toBe('/relays')
})

test('opening the link, even many times, uses nothing up; sending the form does', async () => {
  const user = await api.given.user()
  const link = await askForLink(user.email)
  const browser = site.browser()
  for (let times = 0; times < 3; times += 1) await browser.open(link, { from: 'cross-site' })
  const form = await browser.open(link)
  const weak = await browser.submit(form, '/reset-password', { password: 'password123' })
  expect(weak.problem).toContain('is on the list of common passwords')
  expect((await browser.submit(weak, '/reset-password', { password: newPassword })).path).toBe('/login?done=reset')
  const again = await browser.submit(form, '/reset-password', { password: newPassword })
  expect(again).toMatchObject({ status: 400, heading: 'This link does not work any more' })
})

test('a link that does not work is refused as soon as it is opened', async () => {
  for (const link of ['/reset-password', '/reset-password?token=', '/reset-password?token=made-up']) {
    const page = await site.browser().open(link)
    expect(page).toMatchObject({ status: 400, heading: 'This link does not work any more' })
  }
})

test('the page shows which linked accounts stay, and the next one names those that were unlinked', async () => {
  const user = await api.given.user()
  await api.sql`
    insert into user_oauth_accounts (user_id, provider, provider_user_id, vouched_email)
    values (${user.userId}, 'google', ${user.userId}, ${user.email}), (${user.userId}, 'twitch', ${user.userId}, null),
      (${user.userId}, 'discord', ${user.userId}, 'another@example.com')`
  const browser = site.browser()
  const form = await browser.open(await askForLink(user.email))
  expect(form.text).toContain('Google stays linked')
  for (const name of ['Twitch', 'Discord']) expect(form.text).toContain(`${name} is unlinked`)
  const weak = await browser.submit(form, '/reset-password', { password: 'password123' })
  expect(weak.text).toContain('Twitch is unlinked')
  const page = await browser.submit(weak, '/reset-password', { password: newPassword })
  expect(page.text).toContain('Unlinked: Twitch, Discord.')
  expect(page.text).not.toContain('Google is')
  const signedIn = await browser.post('/login', { email: user.email, password: newPassword })
  expect(signedIn.path).toBe('/relays')
  const account = await browser.open('/account')
  expect(account.text).toContain('Password changed, unlinked: Twitch, Discord')
})

test('the page says whether relays end and stream addresses change, and they do as it says', async () => {
  const user = await api.given.user()
  const first = await site.browser().open(await askForLink(user.email))
  expect(first.text).toContain('you get new stream addresses')
  expect(first.text).not.toContain('A relay on the air goes on')
  await site.browser().submit(first, '/reset-password', { password: newPassword })
  const second = await site.browser().open(await askForLink(user.email))
  expect(second.text).toContain('A relay on the air goes on')
  expect(second.text).not.toContain('new stream addresses')
})

test('the sign-in page names no unlinked account that there is no provider for', async () => {
  const page = await site.browser().open('/login?done=reset&unlinked=twitch,evil,%3Cb%3E,twitch')
  expect(page.text).toContain('Unlinked: Twitch.')
  expect(page.html).not.toContain('evil')
})

test('the secret of the link goes nowhere: not into the title, a link, or another host', async () => {
  const link = await askForLink((await api.given.user()).email)
  const token = new URL(link, site.url).searchParams.get('token') ?? ''
  const page = await site.browser().open(link)
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.html.split(token)).toHaveLength(2)
  expect(page.form('/reset-password').fields.token).toBe(token)
  expect(page.html).not.toMatch(/(src|href)="(https?:)?\/\//)
})

test('another site sets nobody a password', async () => {
  const user = await api.given.user()
  const link = await askForLink(user.email)
  const token = new URL(link, site.url).searchParams.get('token') ?? ''
  const page = await site.browser().post('/reset-password', { token, password: newPassword }, { from: 'cross-site' })
  expect(page.status).toBe(403)
  expect((await site.browser().post('/login', { email: user.email, password: user.password })).path).toBe('/relays')
})

test('an address that is none is said to be none, and who asks too often is told to wait', async () => {
  const wrong = await site.browser().post('/forgot-password', { email: 'nobody' })
  expect(wrong).toMatchObject({ status: 400, problem: 'The email address is not an email address.' })
  const limited = await startApiAndSite({ api: { SVC_RATE_LIMITS: highLimits({ forgot: 1 }) } })
  const ask = () => limited.site.browser().post('/forgot-password', { email: 'someone@example.com' })
  expect((await ask()).status).toBe(200)
  expect((await ask()).problem).toMatch(/^Too many tries/)
})
