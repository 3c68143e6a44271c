/** The forms that change the password and the address of an account, and delete it, in a browser without scripts. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { GivenUser } from '../../support/api.ts'
import { mailsTo } from '../../support/mails.ts'
import { startApiAndSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'

const { api, site } = await startApiAndSite()
const chosen = 'another good password'
const freshEmail = () => `${randomUUID()}@example.com`

function browserOf({ bearer }: Pick<GivenUser, 'bearer'>): Browser {
  const browser = site.browser()
  browser.cookies.set('svc_session', bearer)
  return browser
}

const removePassword = ({ userId }: GivenUser) => api.sql`update users set password_hash = null where id = ${userId}`
const makeSignInOld = ({ authSessionId }: GivenUser) =>
  api.sql`update auth_sessions set created_at = now() - interval '1 hour' where id = ${authSessionId}`

describe('the password form', () => {
  const path = '/account/security/password'

  test('changes the password, and the browser stays signed in', async () => {
    const user = await api.given.user()
    const other = await api.given.signIn(user)
    const browser = browserOf(user)
    const page = await browser.open(path)
    const fields = { current_password: user.password, new_password: chosen }
    const done = await browser.submit(page, path, fields)
    expect([done.name, done.notice]).toEqual(['account-security', 'password_changed'])
    expect(done.data('auth-session')).toEqual([user.authSessionId])
    expect((await api.get('/auth/session', { bearer: other.bearer })).status).toBe(401)
    expect((await api.post('/auth/login', { email: user.email, password: chosen })).status).toBe(200)
  })

  test.each([
    ['a wrong current password', { current_password: 'not it at all', new_password: chosen }, 'invalid_credentials'],
    ['a short new password', { new_password: 'short' }, 'invalid_request'],
  ])('marks the field of %s', async (_, fields, code) => {
    const user = await api.given.user()
    const browser = browserOf(user)
    const page = await browser.submit(await browser.open(path), path, { current_password: user.password, ...fields })
    expect([page.problem, page.name]).toEqual([code, 'account-password'])
    const [invalid] = /<input[^>]*aria-invalid="true"[^>]*>/.exec(page.html) ?? []
    expect(invalid).toContain(code === 'invalid_request' ? 'name="new_password"' : 'name="current_password"')
    // No password is sent back.
    expect(page.html).not.toContain(fields.new_password)
  })

  test('of an account without a password leads to a reset link', async () => {
    const user = await api.given.user()
    await removePassword(user)
    const page = await browserOf(user).open(path)
    expect(page.hasForm(path)).toBe(false)
    expect(page.links).toContain('/forgot-password')
  })
})

describe('the email form', () => {
  const path = '/account/security/email'

  test('mails a link whose page changes the address only with its button', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    const browser = browserOf(user)
    const sent = await browser.submit(await browser.open(path), path, { email, password: user.password })
    expect([sent.name, sent.notice]).toEqual(['account-security', 'email_change_sent'])
    const link = new URL(mailsTo(api, email)[0]?.link ?? '')
    const reader = site.browser()
    const page = await reader.open(link.pathname + link.search, { from: 'cross-site' })
    expect(page).toMatchObject({ status: 200, name: 'confirm-email' })
    expect((await browser.open('/account/security')).text).toContain(user.email)
    const done = await reader.submit(page, '/confirm-email')
    expect([done.name, done.notice]).toEqual(['email-changed', 'email_changed'])
    const security = await browser.open('/account/security')
    expect([security.text.includes(email), security.data('email-verified')]).toEqual([true, ['yes']])
    const again = await reader.submit(page, '/confirm-email')
    expect(again).toMatchObject({ status: 400, name: 'confirm-email-link-invalid', problem: 'token_invalid' })
  })

  test('keeps the entered address when it is refused, as text', async () => {
    const user = await api.given.user()
    const browser = browserOf(user)
    const email = '" autofocus onfocus="alert(1)'
    const page = await browser.submit(await browser.open(path), path, { email, password: user.password })
    expect([page.status, page.problem]).toEqual([400, 'invalid_request'])
    expect(page.form(path).fields.email).toBe(email)
    expect(page.html).not.toContain('onfocus="')
  })

  test('says on confirmation that another account has the address', async () => {
    const [user, owner] = [await api.given.user(), await api.given.user()]
    const browser = browserOf(user)
    const sent = await browser.submit(await browser.open(path), path, { email: owner.email, password: user.password })
    expect(sent.notice).toBe('email_change_sent')
    const token = mailsTo(api, owner.email).at(-1)?.token
    const page = await browser.submit(await browser.open(`/confirm-email?token=${token}`), '/confirm-email')
    expect([page.status, page.problem]).toEqual([409, 'email_taken'])
  })

  test('of an account without a password needs a recent sign-in instead', async () => {
    const user = await api.given.user()
    await removePassword(user)
    const browser = browserOf(user)
    const recent = await browser.open(path)
    expect(recent.form(path).fields).not.toHaveProperty('password')
    const email = freshEmail()
    expect((await browser.submit(recent, path, { email })).notice).toBe('email_change_sent')
    await makeSignInOld(user)
    const old = await browser.open(path)
    expect([old.data('needs-sign-in'), old.html.includes('type="submit"')]).toEqual([['yes'], true])
    expect((await browser.post(path, { email: freshEmail() })).problem).toBe('recent_sign_in_required')
  })

  test('without a token in the link has no button', async () => {
    const page = await site.browser().open('/confirm-email')
    expect([page.status, page.hasForm('/confirm-email')]).toEqual([400, false])
  })
})

describe('the deletion form', () => {
  const path = '/account/security/delete'

  test('schedules the deletion, which every page of the account shows until it is withdrawn', async () => {
    const user = await api.given.user()
    const browser = browserOf(user)
    const done = await browser.submit(await browser.open(path), path, { password: user.password })
    expect([done.name, done.notice]).toEqual(['account-security', 'deletion_scheduled'])
    for (const shown of ['/account', '/account/security', '/account/activity', '/account/notifications']) {
      const page = await browser.open(shown)
      expect([shown, page.data('alert').filter((alert) => alert === 'deletion_scheduled')]).toEqual([
        shown,
        ['deletion_scheduled'],
      ])
    }
    expect(done.links).not.toContain(path)
    const kept = await browser.submit(await browser.open('/account'), '/account/security/restore')
    expect([kept.notice, kept.data('alert')]).toEqual(['restored', []])
    expect(kept.links).toContain(path)
  })

  test('is refused with a wrong password', async () => {
    const user = await api.given.user()
    const browser = browserOf(user)
    const page = await browser.submit(await browser.open(path), path, { password: 'not it at all' })
    expect([page.name, page.problem]).toEqual(['account-delete', 'invalid_credentials'])
    expect((await browser.open('/account/security')).data('alert')).toEqual([])
  })
})

test('“Sign out everywhere else” is offered where there is another sign-in, and ends it', async () => {
  const user = await api.given.user()
  const browser = browserOf(user)
  expect((await browser.open('/account/security')).hasForm('/account/sign-out-elsewhere')).toBe(false)
  const other = await api.given.signIn(user, 'OBS')
  const done = await browser.submit(await browser.open('/account/security'), '/account/sign-out-elsewhere')
  expect([done.notice, done.data('auth-session')]).toEqual(['signed_out_elsewhere', [user.authSessionId]])
  expect((await api.get('/auth/session', { bearer: other.bearer })).status).toBe(401)
})

test('without a sign-in the forms redirect to the login page and change nothing', async () => {
  const anonymous = site.browser()
  for (const path of [
    '/account/security/password',
    '/account/security/email',
    '/account/security/delete',
    '/account/security/restore',
    '/account/sign-out-elsewhere',
  ])
    expect((await anonymous.post(path, {})).name, path).toBe('login')
})

test('a sign-in of a browser is named by browser and system', async () => {
  const user = await api.given.user()
  const agent =
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'
  await api.sql`update auth_sessions set user_agent = ${agent} where id = ${user.authSessionId}`
  expect((await browserOf(user).open('/account/security')).text).toContain('Chrome on Windows')
})
