/** Creating an account and verifying its email address, in a browser without scripts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { mailsTo } from '../../support/mails.ts'
import { startApiAndSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'

const { api, site } = await startApiAndSite()
const password = 'a few words in a row'
const newEmail = () => `${randomUUID()}@example.com`

async function accountOf(browser: Browser) {
  const bearer = browser.cookies.get('svc_session') ?? ''
  return (await api.get<{ user: { email: string; email_verified: boolean } }>('/auth/session', { bearer })).body.user
}

test('signing up signs in and opens the page in `next`', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  const signUp = await browser.open('/sign-up?next=/account')
  expect(signUp.text).toContain('email you a link')
  expect(signUp.html).toMatch(/<input[^>]* name="password"[^>]* aria-describedby="password-rules"/)
  const page = await browser.submit(signUp, '/sign-up', { email, password })
  expect(page.path).toBe('/account')
  expect((await accountOf(browser)).email).toBe(email)
})

test('a rejected password is reported at its field, and the other fields keep their values', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  const signUp = await browser.open('/sign-up?next=/account')
  const short = await browser.submit(signUp, '/sign-up', { email, password: 'short' })
  expect([short.status, short.problem]).toEqual([400, 'invalid_request'])
  expect(short.html).toMatch(
    /<input[^>]* name="password"[^>]* aria-invalid="true"[^>]* aria-describedby="problem password-rules"/,
  )
  expect(short.form('/sign-up').fields).toMatchObject({ email, next: '/account', password: '' })
  const common = await browser.submit(short, '/sign-up', { password: 'password123' })
  expect([common.status, common.problem]).toEqual([400, 'invalid_request'])
})

test('signing up with the email address of an account offers to sign in or to reset the password', async () => {
  const user = await api.given.user()
  const page = await site.browser().post('/sign-up', { email: user.email, password })
  expect([page.status, page.problem]).toEqual([409, 'email_taken'])
  expect(page.links).toEqual(expect.arrayContaining(['/login?next=%2Frelays', '/forgot-password']))
})

test('where email verification is required, the reply does not reveal whether the address has an account', async () => {
  const strict = await startApiAndSite({ api: { SVC_REQUIRE_EMAIL_VERIFICATION: 'true' } })
  const user = await strict.api.given.user()
  const email = newEmail()
  const known = await strict.site.browser().post('/sign-up', { email: user.email, password })
  const unknown = await strict.site.browser().post('/sign-up', { email, password })
  expect(known).toMatchObject({ status: 200, name: 'sign-up-email-sent', notice: 'email_sent' })
  expect(known.html.replaceAll(user.email, '…')).toBe(unknown.html.replaceAll(email, '…'))
})

test('the emailed link verifies the address when its form is submitted, once', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  await browser.post('/sign-up', { email, password })
  const link = new URL(mailsTo(api, email)[0]?.link ?? '')
  const otherBrowser = site.browser()
  const page = await otherBrowser.open(link.pathname + link.search, { from: 'cross-site' })
  expect(page).toMatchObject({ status: 200, name: 'verify-email' })
  expect((await accountOf(browser)).email_verified).toBe(false)
  const done = await otherBrowser.submit(page, '/verify-email')
  expect([done.name, done.notice]).toEqual(['email-verified', 'email_verified'])
  expect((await accountOf(browser)).email_verified).toBe(true)
  const again = await otherBrowser.submit(page, '/verify-email')
  expect(again).toMatchObject({ status: 200, name: 'email-already-verified', notice: 'already_verified' })
})

const stepNames = ['address', 'plan', 'relay', 'phone', 'obs']

test('the relays page of a new account asks to open the emailed link, until the address is verified', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  const page = await browser.post('/sign-up', { email, password })
  expect([page.path, page.data('step'), page.data('done')[0]]).toEqual(['/relays', stepNames, 'false'])
  expect(page.text).toContain(email)
  const hidden = await browser.submit(page, '/relays/hide-first-steps')
  expect([hidden.data('step'), hidden.notice]).toEqual([[], 'email_unverified'])
  expect(hidden.text).toContain(email)
  expect(hidden.links).toContain('/account/security')
  const token = mailsTo(api, email)[0]?.token ?? ''
  await browser.submit(await browser.open(`/verify-email?token=${token}`), '/verify-email')
  expect((await browser.open('/relays')).notice).toBeUndefined()
})

test('a used verification link says that the address is verified, and an expired one that it is invalid', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  await browser.post('/sign-up', { email, password })
  const token = mailsTo(api, email)[0]?.token ?? ''
  const used = await browser.submit(await browser.open(`/verify-email?token=${token}`), '/verify-email')
  expect(used.name).toBe('email-verified')
  const again = await browser.open(`/verify-email?token=${token}`)
  expect([again.status, again.name, again.hasForm('/verify-email')]).toEqual([200, 'email-already-verified', false])

  const [other, otherEmail] = [site.browser(), newEmail()]
  await other.post('/sign-up', { email: otherEmail, password })
  await api.sql`update mail_tokens set expires_at = now() where email = ${otherEmail}`
  const expired = await other.open(`/verify-email?token=${mailsTo(api, otherEmail)[0]?.token}`)
  expect(expired).toMatchObject({ status: 400, problem: 'token_invalid' })
})

test('a verification link without a token has no form', async () => {
  const page = await site.browser().open('/verify-email')
  expect(page).toMatchObject({ status: 400, problem: 'token_invalid' })
  expect(page.hasForm('/verify-email')).toBe(false)
})
