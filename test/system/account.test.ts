/** Changing an account in Chromium: password, address, sign-ins, deletion. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { GivenUser } from '../support/api.ts'
import { mailsTo } from '../support/mails.ts'
import { startApiAndSite } from '../support/site.ts'
import {
  type Device,
  devices,
  expectUsable,
  signIn,
  submitButton,
  type Visitor,
  visitor,
  waitForNotice,
  waitForPage,
} from './browser.ts'

const { api, site } = await startApiAndSite()
const chosen = 'another good password'
const at = (path: string) => new URL(path, site.url).href

/** A new account, signed in on its security page. */
async function owner(look: Parameters<typeof visitor>[0] = {}): Promise<Visitor & { user: GivenUser }> {
  const user = await api.given.user()
  const visit = await visitor(look)
  await visit.page.goto(at('/login?next=/account/security'))
  await signIn(visit.page, user)
  await waitForPage(visit.page, 'account-security')
  return { ...visit, user }
}

const browsers = (Object.keys(devices) as Device[]).flatMap((device) =>
  [true, false].map((script) => ({ device, script })),
)

test.for(browsers)('password and address can be changed, and the account deleted and kept: %o', async (look) => {
  const { page, user, faults } = await owner(look)

  await page.locator('main a[href="/account/security/password"]').click()
  await page.locator('input[name="current_password"]').fill(user.password)
  await page.locator('input[name="new_password"]').fill(chosen)
  await submitButton(page, '/account/security/password').click()
  await waitForNotice(page, 'password_changed')
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(401)

  const email = `${randomUUID()}@example.com`
  await page.locator('main a[href="/account/security/email"]').click()
  await page.locator('input[name="email"]').fill(email)
  await page.locator('input[name="password"]').fill(chosen)
  await submitButton(page, '/account/security/email').click()
  await waitForNotice(page, 'email_change_sent')
  await page.goto(mailsTo(api, email)[0]?.link ?? '')
  await submitButton(page, '/confirm-email').click()
  await waitForNotice(page, 'email_changed')
  await page.locator('main a[href="/account/security"]').click()
  expect(await page.locator('[data-email-verified="yes"]').textContent()).toContain(email)

  const other = await api.given.signIn(user, 'OBS')
  await page.reload()
  await submitButton(page, '/account/sign-out-elsewhere').click()
  await waitForNotice(page, 'signed_out_elsewhere')
  expect((await api.get('/auth/session', { bearer: other.bearer })).status).toBe(401)

  await page.locator('main a[href="/account/security/delete"]').click()
  await page.locator('input[name="password"]').fill(chosen)
  await submitButton(page, '/account/security/delete').click()
  await waitForNotice(page, 'deletion_scheduled')
  await submitButton(page, '/account/security/restore').click()
  await waitForNotice(page, 'restored')
  expect(faults).toEqual([])
})

test('the password can be changed with the keyboard alone', async () => {
  const { page, user } = await owner()
  await page.goto(at('/account/security/password'))
  await page.locator('input[name="current_password"]').focus()
  await page.keyboard.type(user.password)
  // Past the button that shows the new password.
  for (const key of ['Tab', 'Tab']) await page.keyboard.press(key)
  await page.keyboard.type(chosen)
  await page.keyboard.press('Enter')
  await waitForNotice(page, 'password_changed')
})

/** Fills the account's pages: entries of every kind, and another sign-in. */
async function fillAccount({ user }: { user: GivenUser }): Promise<void> {
  await api.given.signIn(user, 'OBS at home, on the big machine under the desk')
  await api.post('/auth/login', { email: user.email, password: 'a wrong password' })
  await api.sql`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    values (${user.userId}, ${'w'.repeat(64)}, 'local', 'user')`
  for (const action of ['email_changed', 'password_changed', 'plan_changed', 'x'.repeat(60)])
    await api.sql`
      insert into audit_entries (initiator, action, user_id, detail)
      values ('user', ${action}, ${user.userId}, ${api.sql.json({ former: `${'a'.repeat(200)}@example.com` })})`
}

const pages: Readonly<Record<string, (visit: Visitor & { user: GivenUser }) => Promise<unknown>>> = {
  'account-security': async (visit) => {
    await fillAccount(visit)
    await visit.page.goto(at('/account/security?done=signed_out'))
  },
  'account-keys': async ({ page, user }) => {
    for (const name of ['Studio PC', 'Co-host']) await api.post('/relay/play-keys', { name }, { bearer: user.bearer })
    await page.goto(at('/account/keys'))
  },
  'account-keys-empty': ({ page }) => page.goto(at('/account/keys')),
  'account-key-delete': async ({ page, user }) => {
    const { body } = await api.post<{ id: string }>('/relay/play-keys', { name: 'Studio PC' }, { bearer: user.bearer })
    await page.goto(at(`/account/keys/${body.id}/delete`))
  },
  'account-activity': async (visit) => {
    await fillAccount(visit)
    await visit.page.goto(at('/account/activity'))
  },
  'account-activity-empty': ({ page }) => page.goto(at('/account/activity?group=plan')),
  'account-password': ({ page }) => page.goto(at('/account/security/password')),
  'account-password-refused': async ({ page, user }) => {
    await page.goto(at('/account/security/password'))
    await page.locator('input[name="current_password"]').fill('not it at all')
    await page.locator('input[name="new_password"]').fill(user.password)
    await submitButton(page, '/account/security/password').click()
    await page.getByRole('alert').waitFor()
  },
  'account-email': ({ page }) => page.goto(at('/account/security/email')),
  'account-email-needs-sign-in': async ({ page, user }) => {
    await api.sql`update users set password_hash = null where id = ${user.userId}`
    await api.sql`update auth_sessions set created_at = now() - interval '1 hour' where user_id = ${user.userId}`
    await page.goto(at('/account/security/email'))
  },
  'account-delete': ({ page }) => page.goto(at('/account/security/delete')),
  'account-deletion-scheduled': async ({ page, user }) => {
    await page.goto(at('/account/security/delete'))
    await page.locator('input[name="password"]').fill(user.password)
    await submitButton(page, '/account/security/delete').click()
    await waitForNotice(page, 'deletion_scheduled')
  },
  'confirm-email': ({ page }) => page.goto(at('/confirm-email?token=x')),
  'confirm-email-invalid': ({ page }) => page.goto(at('/confirm-email')),
  'email-changed': ({ page }) => page.goto(at('/confirm-email?done=changed')),
  'email-already-verified': async ({ page, user }) => {
    await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    const token = mailsTo(api, user.email).at(-1)?.token
    await api.post('/auth/email/verify', { token })
    await page.goto(at(`/verify-email?token=${token}`))
    await waitForPage(page, 'email-already-verified')
  },
}

test.for(Object.keys(pages))('the page %s is accessible and fits small phones', async (name) => {
  const visit = await owner({ device: 'phone' })
  await pages[name]?.(visit)
  await expectUsable(visit, name)
})

test.for(Object.keys(devices) as Device[])(
  'on a %s there is one button to sign out, and it is not beside Account on a phone',
  async (device) => {
    const { page, context } = await owner({ device })
    const button = page.locator('form[action="/sign-out"] button:visible')
    expect(await button.count()).toBe(1)
    expect(await page.locator('.destinations form[action="/sign-out"]').isVisible()).toBe(device === 'desktop')
    await button.click()
    await page.waitForURL((url) => url.pathname !== '/account/security')
    expect((await context.cookies()).map(({ name }) => name)).not.toContain('svc_session')
  },
)
