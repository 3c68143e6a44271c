/** Signing in with a real browser: cookies, redirects, forms and scripts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { mailsTo } from '../support/mails.ts'
import { userWithProvedAddress } from '../support/merges.ts'
import { newProviderAccount } from '../support/oauth-api.ts'
import { startOAuthSite } from '../support/site-oauth.ts'
import { type Device, devices, expectUsable, type Visitor, visitor } from './browser.ts'

const oauth = await startOAuthSite()
const { api, site } = oauth
const password = 'a few words in a row'

const at = (path: string) => new URL(path, site.url).href
const heading = ({ page }: Visitor) => page.locator('h1')

async function signIn({ page }: Visitor, user: { email: string; password: string }, path = '/login') {
  await page.goto(at(path))
  await page.getByLabel('Email address').fill(user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

interface Started {
  readonly login_attempt_id: string
  readonly authorize_url: string
  readonly poll_token: string
  readonly user_code: string
}

async function plugin(client_name = 'OBS on my PC') {
  const { body } = await api.post<Started>('/auth/plugin/login/start', { client_name })
  const { login_attempt_id, poll_token, authorize_url: url, user_code: code } = body
  type Polled = { status?: string; cp_access_jwt?: string; error?: { code: string } }
  const poll = async () => (await api.post<Polled>('/auth/plugin/login/poll', { login_attempt_id, poll_token })).body
  return { id: login_attempt_id, url, code, poll }
}

const kinds = (Object.keys(devices) as Device[]).flatMap((device) =>
  [true, false].map((script) => ({ device, script })),
)

test.for(kinds)('a plugin’s link leads through the sign-in to its tokens: %o', async (kind) => {
  const [user, asking, person] = [await api.given.user(), await plugin(), await visitor(kind)]
  await signIn(person, user, asking.url)
  await expect.poll(() => person.page.locator('.matching-code').textContent()).toBe(asking.code)
  expect((await asking.poll()).status).toBe('pending')
  await person.page.getByRole('button', { name: 'Approve' }).click()
  await person.page.getByRole('heading', { name: 'Approved' }).waitFor()
  const { cp_access_jwt: bearer = '' } = await asking.poll()
  expect((await api.get('/auth/session', { bearer })).status).toBe(200)
  expect(person.faults).toEqual([])
})

test('an account can be created with the keyboard only, and scripts cannot read the sign-in', async () => {
  const person = await visitor()
  const { page, context } = person
  const email = `${randomUUID()}@example.com`
  await page.goto(at('/sign-up?next=/verify-email'))
  await page.getByLabel('Email address').focus()
  for (const key of [email, 'Tab', 'Tab', password, 'Enter'])
    await (/^(Tab|Enter)$/.test(key) ? page.keyboard.press(key) : page.keyboard.type(key))
  await page.waitForURL(at('/verify-email'))
  const kept = (await context.cookies(at('/'))).find((one) => one.name === 'svc_session')
  expect(kept).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Strict', domain: 'localhost', path: '/' })
  expect(await page.evaluate('document.cookie')).toBe('')
  expect(person.faults).toEqual([])
})

test('a password can be shown while it is typed, and is sent as a password', async () => {
  const { page } = await visitor({ device: 'phone' })
  await page.goto(at('/login'))
  const input = page.locator('#password')
  await input.fill('secret')
  await page.getByRole('button', { name: 'Show password' }).click()
  expect(await input.getAttribute('type')).toBe('text')
  await page.getByRole('button', { name: 'Hide password' }).click()
  expect(await input.getAttribute('type')).toBe('password')
})

test('a form that is submitted by a double tap is sent once', async () => {
  const { page } = await visitor()
  await page.goto(at('/sign-up?next=/verify-email'))
  await page.getByLabel('Email address').fill(`${randomUUID()}@example.com`)
  await page.getByLabel('New password').fill(password)
  const sent: string[] = []
  page.on('request', (request) => request.method() === 'POST' && sent.push(request.url()))
  // Hashing the password takes longer than the time between the taps.
  await page.evaluate(`const button = document.querySelector('form.fields [type="submit"]')
    button.click()
    setTimeout(() => button.click(), 50)`)
  await page.waitForURL(at('/verify-email'))
  expect(sent).toHaveLength(1)
})

test('a click at the moment when the approval appears is ignored', async () => {
  const [user, asking, person] = [await api.given.user(), await plugin(), await visitor()]
  await signIn(person, user)
  await person.page.clock.install()
  await person.page.goto(asking.url)
  const approve = person.page.getByRole('button', { name: 'Approve' })
  await person.page.locator('button[aria-disabled="true"]').first().waitFor()
  await approve.click({ force: true })
  expect(await heading(person).textContent()).toBe('Let this program in?')
  expect((await asking.poll()).status).toBe('pending')
  await person.page.clock.runFor(1000)
  await approve.click()
  await person.page.getByRole('heading', { name: 'Approved' }).waitFor()
})

test('the approval shows the time left independently of the local clock, and that it has expired', async () => {
  const [user, asking, person] = [await api.given.user(), await plugin(), await visitor()]
  await signIn(person, user)
  await person.page.clock.install({ time: Date.now() + 3_600_000 })
  await person.page.goto(asking.url)
  const left = person.page.locator('time[data-until]')
  await person.page.clock.runFor(2000)
  expect(await left.textContent()).toMatch(/^4:\d\d minutes$/)
  await person.page.clock.runFor(301_000)
  expect(await left.textContent()).toBe('over: start it again in your streaming software')
})

test('a user who signs in through a provider returns signed in and can approve the plugin', async () => {
  oauth.providers.google.account = newProviderAccount()
  oauth.providers.google.asksForConsent = true
  const [asking, person] = [await plugin(), await visitor({ device: 'phone' })]
  const { page } = person
  await page.goto(asking.url)
  await page.getByRole('button', { name: 'Continue with Google' }).click()
  await page.getByRole('button', { name: /^Continue as/ }).click()
  await page.getByRole('heading', { name: 'Let this program in?' }).waitFor()
  expect((await asking.poll()).status).toBe('pending')
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByRole('heading', { name: 'Denied' }).waitFor()
  expect((await asking.poll()).error?.code).toBe('attempt_denied')
  expect(person.faults).toEqual([])
})

test('cancelling at the provider returns to the site without a change', async () => {
  oauth.providers.google.asksForConsent = true
  const { page } = await visitor({ script: false })
  await page.goto(at('/login'))
  await page.getByRole('button', { name: 'Continue with Google' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('heading', { name: 'Nothing was done' }).waitFor()
  await page.getByRole('link', { name: 'Back to the sign-in' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('linking a provider keeps the user signed in to the same account', async () => {
  oauth.providers.google.asksForConsent = false
  oauth.providers.google.account = newProviderAccount()
  const [user, person] = [await api.given.user(), await visitor()]
  await signIn(person, user, '/login?next=/account')
  await person.page.getByRole('button', { name: /Google/ }).click()
  await person.page.waitForURL(at('/account?done=linked'))
  expect(await person.page.locator('main').textContent()).toContain(user.email)
})

test.for([true, false])('an account and a provider with its address become one, with script: %s', async (script) => {
  const user = await userWithProvedAddress(oauth)
  oauth.providers.google.asksForConsent = false
  oauth.providers.google.account = newProviderAccount({ email: user.email })
  const person = await visitor({ device: 'phone', script })
  const { page } = person
  await page.goto(at('/login?next=/verify-email'))
  await page.getByRole('button', { name: 'Continue with Google' }).click()
  await page.getByRole('heading', { name: 'Is this your account?' }).waitFor()
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await page.getByRole('button', { name: 'Prove it and link Google' }).click()
  await page.waitForURL(at('/verify-email'))
  expect(person.faults).toEqual([])
})

test('the link from the email sets another password, which signs in', async () => {
  const user = await api.given.user()
  const person = await visitor({ device: 'phone' })
  const { page } = person
  await page.goto(at('/login'))
  await page.getByRole('link', { name: 'Forgot your password?' }).click()
  await page.getByLabel('Email address').fill(user.email)
  await page.getByRole('button', { name: 'Send the link' }).click()
  await page.getByRole('heading', { name: 'Look into your mail' }).waitFor()
  await page.goto(mailsTo(api, user.email).at(-1)?.link ?? '')
  await page.getByLabel('New password').fill(password)
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.waitForURL(at('/login?done=reset'))
  await signIn(person, { email: user.email, password }, '/login?next=/verify-email')
  await page.waitForURL(at('/verify-email'))
  expect(person.faults).toEqual([])
})

/** A visitor on each sign-in page, by the name of its screenshot. */
const pages: Readonly<Record<string, (person: Visitor) => Promise<unknown>>> = {
  login: ({ page }) => page.goto(at('/login')),
  'login-for-plugin': async ({ page }) => page.goto((await plugin()).url),
  'login-after-reset': ({ page }) => page.goto(at('/login?done=reset')),
  'login-wrong': async (person) => {
    await signIn(person, { email: 'somebody.with.a.long.name@example.com', password: 'not the right one' })
    await person.page.getByRole('alert').waitFor()
  },
  'sign-up': ({ page }) => page.goto(at('/sign-up')),
  'sign-up-taken': async ({ page }) => {
    const user = await api.given.user()
    await page.goto(at('/sign-up'))
    await page.getByLabel('Email address').fill(user.email)
    await page.getByLabel('New password').fill(password)
    await page.getByRole('button', { name: 'Open the account' }).click()
    await page.getByRole('alert').waitFor()
  },
  forgot: ({ page }) => page.goto(at('/forgot-password')),
  'forgot-sent': async ({ page }) => {
    await page.goto(at('/forgot-password'))
    await page.getByLabel('Email address').fill(`${'somebody'.repeat(8)}@${'example'.repeat(8)}.com`)
    await page.getByRole('button', { name: 'Send the link' }).click()
    await page.getByRole('status').waitFor()
  },
  reset: async ({ page }) => {
    const { userId, email } = await api.given.user()
    await api.sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id, provider_verified_email)
      values (${userId}, 'google', ${userId}, ${email}), (${userId}, 'twitch', ${userId}, null)`
    await api.post('/auth/password/forgot', { email })
    await page.goto(mailsTo(api, email).at(-1)?.link ?? '')
    await page.getByText('Twitch is unlinked').waitFor()
  },
  'reset-over': ({ page }) => page.goto(at('/reset-password')),
  verify: ({ page }) => page.goto(at('/verify-email?token=something')),
  'verify-done': ({ page }) => page.goto(at('/verify-email?done=verified')),
  'verify-over': ({ page }) => page.goto(at('/verify-email')),
  approval: async (person) => {
    await signIn(person, await api.given.user(), (await plugin()).url)
    await person.page.getByRole('heading', { name: 'Let this program in?' }).waitFor()
  },
  approved: async (person) => {
    await signIn(person, await api.given.user(), (await plugin('w'.repeat(64))).url)
    await person.page.getByRole('button', { name: 'Approve' }).click()
    await person.page.getByRole('heading', { name: 'Approved' }).waitFor()
  },
  'approved-and-used': async (person) => {
    const asking = await plugin()
    await signIn(person, await api.given.user(), asking.url)
    await person.page.getByRole('button', { name: 'Approve' }).click()
    await person.page.getByRole('heading', { name: 'Approved' }).waitFor()
    await asking.poll()
    await person.page.reload()
  },
  denied: async (person) => {
    await signIn(person, await api.given.user(), (await plugin()).url)
    await person.page.getByRole('button', { name: 'Deny' }).click()
    await person.page.getByRole('heading', { name: 'Denied' }).waitFor()
  },
  'approval-over': async (person) => {
    const asking = await plugin()
    await api.sql`
      update login_attempts set created_at = now() - interval '301 s', expires_at = now() - interval '1 s'
      where id = ${asking.id}`
    await signIn(person, await api.given.user(), asking.url)
    await person.page.getByRole('heading', { name: 'This sign-in is over' }).waitFor()
  },
  'approval-unknown': ({ page }) => page.goto(at('/login?attempt=none')),
  'provider-cancelled': ({ page }) => page.goto(at('/oauth/google/callback?error=access_denied')),
  'provider-elsewhere': ({ page }) => page.goto(at('/oauth/google/callback?code=x&state=y')),
  merge: async ({ page }) => {
    const user = await userWithProvedAddress(oauth)
    await api.sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id)
      values (${user.userId}, 'twitch', ${randomUUID()})`
    oauth.providers.google.asksForConsent = false
    oauth.providers.google.account = newProviderAccount({ email: user.email })
    await page.goto(at('/login'))
    await page.getByRole('button', { name: 'Continue with Google' }).click()
    await page.getByRole('heading', { name: 'Is this your account?' }).waitFor()
  },
  'merge-over': ({ page }) => page.goto(at('/merge')),
  'not-found': ({ page }) => page.goto(at('/nowhere')),
}

test.for(Object.keys(pages))('everybody can read and use the page: %s', async (name) => {
  const person = await visitor({ device: 'phone' })
  await pages[name]?.(person)
  await expectUsable(person, name)
})
