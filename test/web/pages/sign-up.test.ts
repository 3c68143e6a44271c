/** Opening an account, and confirming its address, at a browser that runs no script. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { mailsTo } from '../../support/mails.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite()
const password = 'a few words in a row'
const newEmail = () => `${randomUUID()}@example.com`

test('somebody who opens an account is signed in and comes to where they wanted to go', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  const signUp = await browser.open('/sign-up?next=/account')
  expect(signUp.text).toContain('At least 10 characters')
  const page = await browser.submit(signUp, '/sign-up', { email, password })
  expect(page.path).toBe('/account')
  const { body } = await api.get<{ user: { email: string } }>('/auth/session', {
    bearer: browser.cookies.get('svc_session') ?? '',
  })
  expect(body.user.email).toBe(email)
})

test('a password that will not do is explained, and nothing else has to be typed again', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  const signUp = await browser.open('/sign-up?next=/account')
  const short = await browser.submit(signUp, '/sign-up', { email, password: 'short' })
  expect(short.status).toBe(400)
  expect(short.problem).toBe('The password is shorter than 10 characters: choose a longer one.')
  expect(short.form('/sign-up').fields).toMatchObject({ email, next: '/account', password: '' })
  const common = await browser.submit(short, '/sign-up', { password: 'password123' })
  expect(common.problem).toContain('is on the list of common passwords')
})

test('who has an account with that address is shown the ways into it', async () => {
  const user = await api.given.user()
  const page = await site.browser().post('/sign-up', { email: user.email, password })
  expect(page.status).toBe(409)
  expect(page.problem).toBe('An account with this email address already exists.')
  expect(page.html).toContain('href="/forgot-password"')
})

test('where addresses have to be confirmed first, the page tells nobody who has an account', async () => {
  const strict = await startApiAndSite({ api: { SVC_REQUIRE_EMAIL_VERIFICATION: 'true' } })
  const user = await strict.api.given.user()
  const email = newEmail()
  const known = await strict.site.browser().post('/sign-up', { email: user.email, password })
  const unknown = await strict.site.browser().post('/sign-up', { email, password })
  expect(known).toMatchObject({ status: 200, heading: 'Look into your mail' })
  expect(known.html.replaceAll(user.email, '…')).toBe(unknown.html.replaceAll(email, '…'))
})

test('the link from the mail confirms the address by its button only, once', async () => {
  const [browser, email] = [site.browser(), newEmail()]
  await browser.post('/sign-up', { email, password })
  const isVerified = async () =>
    (
      await api.get<{ user: { email_verified: boolean } }>('/auth/session', {
        bearer: browser.cookies.get('svc_session') ?? '',
      })
    ).body.user.email_verified
  const link = new URL(mailsTo(api, email)[0]?.link ?? '')
  const scanner = site.browser()
  const page = await scanner.open(link.pathname + link.search, { from: 'cross-site' })
  expect(page.text).toContain('Confirm only if that was you.')
  expect(await isVerified()).toBe(false)
  const done = await scanner.submit(page, '/verify-email')
  expect(done.heading).toBe('Your address is confirmed')
  expect(await isVerified()).toBe(true)
  const again = await scanner.submit(page, '/verify-email')
  expect(again).toMatchObject({ status: 400, heading: 'This link does not work any more' })
})

test('a link without its secret is no form', async () => {
  const page = await site.browser().open('/verify-email')
  expect(page).toMatchObject({ status: 400, heading: 'This link does not work any more' })
})
