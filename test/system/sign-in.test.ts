/** Signing in in Chromium: what depends on its cookies, redirects, forms and scripts. */
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { mailsTo } from '../support/mails.ts'
import { userWithProvedAddress } from '../support/merges.ts'
import { newProviderAccount } from '../support/oauth-api.ts'
import { startOAuthSite } from '../support/site-oauth.ts'
import {
  type Device,
  devices,
  expectUsable,
  otherHost,
  signIn,
  stopClock,
  submitButton,
  type Visitor,
  visitor,
  waitForNotice,
  waitForPage,
} from './browser.ts'

const oauth = await startOAuthSite()
const { api, site } = oauth
const password = 'a few words in a row'

const at = (path: string) => new URL(path, site.url).href

async function signInAt(page: Page, user: { email: string; password: string }, path = '/login') {
  await page.goto(at(path))
  await signIn(page, user)
}

const emailInput = (page: Page) => page.locator('input[name="email"]')
const passwordInput = (page: Page) => page.locator('input[name="password"]')
const signInWithGoogle = (page: Page) => submitButton(page, '/oauth/google/start').click()

interface Started {
  readonly login_attempt_id: string
  readonly authorize_url: string
  readonly poll_token: string
  readonly user_code: string
}

/** Starts the sign-in of a plugin. */
async function startPluginLogin(client_name = 'OBS on my PC') {
  const { body } = await api.post<Started>('/auth/plugin/login/start', { client_name })
  const { login_attempt_id, poll_token, authorize_url: url, user_code: code } = body
  type PollReply = { status?: string; cp_access_jwt?: string; error?: { code: string } }
  const poll = async () => (await api.post<PollReply>('/auth/plugin/login/poll', { login_attempt_id, poll_token })).body
  return { id: login_attempt_id, url, code, poll }
}

const browsers = (Object.keys(devices) as Device[]).flatMap((device) =>
  [true, false].map((script) => ({ device, script })),
)

test.for(browsers)('signing in at a plugin’s link and approving signs the plugin in: %o', async (look) => {
  const [user, attempt, { page, faults }] = [await api.given.user(), await startPluginLogin(), await visitor(look)]
  await signInAt(page, user, attempt.url)
  await expect.poll(() => page.locator('.matching-code').textContent()).toBe(attempt.code)
  expect((await attempt.poll()).status).toBe('pending')
  await submitButton(page, '/login/approve').click()
  await waitForPage(page, 'approval-approved')
  const { cp_access_jwt: bearer = '' } = await attempt.poll()
  expect((await api.get('/auth/session', { bearer })).status).toBe(200)
  expect(faults).toEqual([])
})

test('an account can be created with the keyboard alone, and scripts cannot read the cookie', async () => {
  const { page, context, faults } = await visitor()
  const email = `${randomUUID()}@example.com`
  await page.goto(at('/sign-up?next=/verify-email'))
  await emailInput(page).focus()
  for (const key of [email, 'Tab', 'Tab', password, 'Enter'])
    await (/^(Tab|Enter)$/.test(key) ? page.keyboard.press(key) : page.keyboard.type(key))
  await page.waitForURL(at('/verify-email'))
  const cookie = (await context.cookies(at('/'))).find(({ name }) => name === 'svc_session')
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Strict', domain: 'localhost', path: '/' })
  expect(await page.evaluate('document.cookie')).toBe('')
  expect(faults).toEqual([])
})

test('a password can be shown and hidden while it is typed', async () => {
  const { page } = await visitor({ device: 'phone' })
  await page.goto(at('/login'))
  await passwordInput(page).fill('secret')
  const toggle = page.locator('button[data-shows="password"]')
  await toggle.click()
  expect(await passwordInput(page).getAttribute('type')).toBe('text')
  await toggle.click()
  expect(await passwordInput(page).getAttribute('type')).toBe('password')
})

test('a form whose button is clicked twice is submitted once', async () => {
  const { page } = await visitor()
  await page.goto(at('/sign-up?next=/verify-email'))
  await emailInput(page).fill(`${randomUUID()}@example.com`)
  await passwordInput(page).fill(password)
  const posts: string[] = []
  page.on('request', (request) => request.method() === 'POST' && posts.push(request.url()))
  // The API needs longer for the password's hash than the time between the clicks.
  await page.evaluate(`const button = document.querySelector('form.fields [type="submit"]')
    button.click()
    setTimeout(() => button.click(), 50)`)
  await page.waitForURL(at('/verify-email'))
  expect(posts).toHaveLength(1)
})

test('a click right after the approval page appears decides nothing', async () => {
  const [user, attempt, { page }] = [await api.given.user(), await startPluginLogin(), await visitor()]
  await signInAt(page, user)
  await stopClock(page)
  await page.goto(attempt.url)
  const approve = submitButton(page, '/login/approve')
  await page.locator('button[aria-disabled="true"]').first().waitFor()
  await approve.click({ force: true })
  await waitForPage(page, 'approval')
  expect((await attempt.poll()).status).toBe('pending')
  await page.clock.runFor(1000)
  await approve.click()
  await waitForPage(page, 'approval-approved')
})

test('the approval page counts down correctly with a wrong clock, until the attempt expires', async () => {
  const [user, attempt, { page }] = [await api.given.user(), await startPluginLogin(), await visitor()]
  await signInAt(page, user)
  await page.clock.install({ time: Date.now() + 3_600_000 })
  await page.goto(attempt.url)
  const timeLeft = page.locator('time[data-expired-text]')
  await page.clock.runFor(2000)
  expect(await timeLeft.textContent()).toMatch(/^4:\d\d /)
  await page.clock.runFor(301_000)
  expect(await timeLeft.textContent()).toBe(await timeLeft.getAttribute('data-expired-text'))
})

test('signing in with a provider at a plugin’s link returns to the approval', async () => {
  oauth.providers.google.account = newProviderAccount()
  oauth.providers.google.asksForConsent = true
  const [attempt, { page, faults }] = [await startPluginLogin(), await visitor({ device: 'phone' })]
  await page.goto(attempt.url)
  await signInWithGoogle(page)
  await page.getByRole('button', { name: /^Continue as/ }).click()
  await waitForPage(page, 'approval')
  expect((await attempt.poll()).status).toBe('pending')
  await submitButton(page, '/login/deny').click()
  await waitForPage(page, 'approval-denied')
  expect((await attempt.poll()).error?.code).toBe('attempt_denied')
  expect(faults).toEqual([])
})

test('cancelling at the provider changes nothing and leads back to the login page', async () => {
  oauth.providers.google.asksForConsent = true
  const { page } = await visitor({ script: false })
  await page.goto(at('/login'))
  await signInWithGoogle(page)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await waitForPage(page, 'oauth-cancelled')
  await page.locator('main a[href^="/login"]').click()
  await waitForPage(page, 'login')
})

test('linking a provider keeps the sign-in', async () => {
  oauth.providers.google.asksForConsent = false
  oauth.providers.google.account = newProviderAccount()
  const [user, { page }] = [await api.given.user(), await visitor()]
  await signInAt(page, user, '/login?next=/account/security')
  await submitButton(page, '/oauth/google/start').click()
  await page.waitForURL(at('/account/security?done=linked'))
  expect(await page.locator('main').textContent()).toContain(user.email)
})

test.for([true, false])(
  'a provider is linked to the account with its email address, with scripts: %s',
  async (script) => {
    const user = await userWithProvedAddress(oauth)
    oauth.providers.google.asksForConsent = false
    oauth.providers.google.account = newProviderAccount({ email: user.email })
    const { page, faults } = await visitor({ device: 'phone', script })
    await page.goto(at('/login?next=/verify-email'))
    await signInWithGoogle(page)
    await waitForPage(page, 'merge-ownership')
    await passwordInput(page).fill(user.password)
    await submitButton(page, '/merge').click()
    await page.waitForURL(at('/verify-email'))
    expect(faults).toEqual([])
  },
)

test('a forgotten password is reset with the emailed link', async () => {
  const user = await api.given.user()
  const { page, faults } = await visitor({ device: 'phone' })
  await page.goto(at('/login'))
  await page.locator('a[href="/forgot-password"]').click()
  await emailInput(page).fill(user.email)
  await submitButton(page, '/forgot-password').click()
  await waitForNotice(page, 'email_sent')
  await page.goto(mailsTo(api, user.email).at(-1)?.link ?? '')
  await passwordInput(page).fill(password)
  await submitButton(page, '/reset-password').click()
  await page.waitForURL(at('/login?done=reset'))
  await signInAt(page, { email: user.email, password }, '/login?next=/verify-email')
  await page.waitForURL(at('/verify-email'))
  expect(faults).toEqual([])
})

/** Opens each page of signing in; the keys name the screenshots. */
const pages: Readonly<Record<string, (visitor: Visitor) => Promise<unknown>>> = {
  login: ({ page }) => page.goto(at('/login')),
  'login-for-plugin': async ({ page }) => page.goto((await startPluginLogin()).url),
  'login-after-reset': ({ page }) => page.goto(at('/login?done=reset')),
  'login-wrong-password': async ({ page }) => {
    await signInAt(page, { email: 'somebody.with.a.long.name@example.com', password: 'not the right one' })
    await page.getByRole('alert').waitFor()
  },
  'sign-up': ({ page }) => page.goto(at('/sign-up')),
  'sign-up-email-taken': async ({ page }) => {
    const user = await api.given.user()
    await page.goto(at('/sign-up'))
    await emailInput(page).fill(user.email)
    await passwordInput(page).fill(password)
    await submitButton(page, '/sign-up').click()
    await page.getByRole('alert').waitFor()
  },
  'forgot-password': ({ page }) => page.goto(at('/forgot-password')),
  'forgot-password-sent': async ({ page }) => {
    await page.goto(at('/forgot-password'))
    await emailInput(page).fill(`${'somebody'.repeat(8)}@${'example'.repeat(8)}.com`)
    await submitButton(page, '/forgot-password').click()
    await waitForNotice(page, 'email_sent')
  },
  'reset-password': async ({ page }) => {
    const { userId, email } = await api.given.user()
    await api.sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id, provider_verified_email)
      values (${userId}, 'google', ${userId}, ${email}), (${userId}, 'twitch', ${userId}, null)`
    await api.post('/auth/password/forgot', { email })
    await page.goto(mailsTo(api, email).at(-1)?.link ?? '')
    await page.locator('[data-provider="twitch"][data-linked="no"]').waitFor()
  },
  'reset-password-link-invalid': ({ page }) => page.goto(at('/reset-password')),
  'verify-email': ({ page }) => page.goto(at('/verify-email?token=something')),
  'email-verified': ({ page }) => page.goto(at('/verify-email?done=verified')),
  'verify-email-link-invalid': ({ page }) => page.goto(at('/verify-email')),
  approval: async ({ page }) => {
    await signInAt(page, await api.given.user(), (await startPluginLogin()).url)
    await waitForPage(page, 'approval')
  },
  'approval-approved': async ({ page }) => {
    await signInAt(page, await api.given.user(), (await startPluginLogin('w'.repeat(64))).url)
    await submitButton(page, '/login/approve').click()
    await waitForPage(page, 'approval-approved')
  },
  'approval-consumed': async ({ page }) => {
    const attempt = await startPluginLogin()
    await signInAt(page, await api.given.user(), attempt.url)
    await submitButton(page, '/login/approve').click()
    await waitForPage(page, 'approval-approved')
    await attempt.poll()
    await page.reload()
  },
  'approval-denied': async ({ page }) => {
    await signInAt(page, await api.given.user(), (await startPluginLogin()).url)
    await submitButton(page, '/login/deny').click()
    await waitForPage(page, 'approval-denied')
  },
  'approval-expired': async ({ page }) => {
    const attempt = await startPluginLogin()
    await api.sql`
      update login_attempts set created_at = now() - interval '301 s', expires_at = now() - interval '1 s'
      where id = ${attempt.id}`
    await signInAt(page, await api.given.user(), attempt.url)
    await waitForPage(page, 'approval-expired')
  },
  'approval-unknown': ({ page }) => page.goto(at('/login?attempt=none')),
  'oauth-cancelled': ({ page }) => page.goto(at('/oauth/google/callback?error=access_denied')),
  'oauth-expired': ({ page }) => page.goto(at('/oauth/google/callback?code=x&state=y')),
  'merge-ownership': async ({ page }) => {
    const user = await userWithProvedAddress(oauth)
    await api.sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id)
      values (${user.userId}, 'twitch', ${randomUUID()})`
    oauth.providers.google.asksForConsent = false
    oauth.providers.google.account = newProviderAccount({ email: user.email })
    await page.goto(at('/login'))
    await signInWithGoogle(page)
    await waitForPage(page, 'merge-ownership')
  },
  'merge-expired': ({ page }) => page.goto(at('/merge')),
  'not-found': ({ page }) => page.goto(at('/nowhere')),
}

test.for(Object.keys(pages))('the page %s is accessible and fits small phones', async (name) => {
  const phone = await visitor({ device: 'phone' })
  await pages[name]?.(phone)
  await expectUsable(phone, name)
})

test('Chromium keeps no cookies at an http: address of another machine, and the pages there name the right one', async () => {
  const { page } = await visitor()
  const elsewhere = new URL(site.url)
  elsewhere.hostname = otherHost
  await page.goto(new URL('/account', elsewhere).href)
  await waitForPage(page, 'cookies-refused')
  expect(await page.locator('[data-advice="address"] a').getAttribute('href')).toBe(at('/account'))
  await page.goto(new URL('/login', elsewhere).href)
  await signIn(page, { email: 'somebody@example.com', password })
  await waitForPage(page, 'other-address')
  await page.locator('[data-advice="address"] a').click()
  await waitForPage(page, 'landing')
  expect(new URL(page.url()).origin).toBe(new URL(site.url).origin)
})
