/** Change of a password by its owner, who is signed in. */
import { describe, expect, test } from 'vitest'
import { type GivenUser, startApi, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { mailsTo } from '../../../support/mails.ts'
import { pluginLogins } from '../../../support/plugin-logins.ts'

const api = await startApi({ SVC_SITE_URL: 'https://site.example' })
const chosen = 'another good password'

const change = ({ bearer, password }: GivenUser, parts: object = {}, at = api) =>
  at.post('/auth/password/change', { current_password: password, new_password: chosen, ...parts }, { bearer })
const login = (email: string, password: string, at = api) => at.post<TokenSet>('/auth/login', { email, password })
const refresh = (token: string) => api.post<TokenSet>('/auth/refresh', { refresh_token: token })
const isAlive = async (bearer: string) => (await api.get('/auth/sessions', { bearer })).status === 200
const actionsOf = async ({ bearer }: GivenUser) =>
  (await api.get<{ entries: { action: string; detail: object }[] }>('/auth/audit', { bearer })).body.entries

describe('a change of the password', () => {
  test('keeps this auth session and ends all others with their tokens', async () => {
    const user = await api.given.user()
    const others = [await api.given.signIn(user), await api.given.signIn(user, 'plugin')]
    expect((await change(user)).status).toBe(204)
    expect(await isAlive(user.bearer)).toBe(true)
    expect((await refresh(user.refreshToken)).status).toBe(200)
    for (const other of others) {
      expect(await isAlive(other.bearer)).toBe(false)
      expect((await refresh(other.refreshToken)).status).toBe(401)
    }
    expect(statusAndCode(await login(user.email, user.password))).toEqual([401, 'invalid_credentials'])
    expect((await login(user.email, chosen)).status).toBe(200)
  })

  test('is in the audit, and the owner is informed by mail', async () => {
    const user = await api.given.user()
    await api.sql`update users set email_verified_at = now() where id = ${user.userId}`
    await api.given.signIn(user)
    await change(user)
    expect((await actionsOf(user))[0]).toMatchObject({ action: 'password_changed', detail: { sign_ins_ended: 1 } })
    expect(mailsTo(api, user.email)).toMatchObject([
      { subject: 'password_changed', link: 'https://site.example/forgot-password' },
    ])
  })

  test('invalidates reset links and approved plugin logins, and keeps a verification link', async () => {
    const user = await api.given.user()
    const { startPlugin, approvePlugin, pollPlugin } = pluginLogins(api)
    const attempt = await startPlugin()
    await approvePlugin(attempt, user)
    await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    await api.post('/auth/password/forgot', { email: user.email })
    const [verify, reset] = mailsTo(api, user.email).map(({ token }) => token)
    expect((await change(user)).status).toBe(204)
    const password = 'a third good password'
    expect(statusAndCode(await api.post('/auth/password/reset', { token: reset, password }))).toEqual([
      400,
      'token_invalid',
    ])
    expect((await pollPlugin(attempt)).body).not.toHaveProperty('cp_access_jwt')
    expect((await api.post('/auth/email/verify', { token: verify })).status).toBe(204)
  })

  test('is refused with a wrong password, which is in the audit and changes nothing', async () => {
    const user = await api.given.user()
    const other = await api.given.signIn(user)
    expect(statusAndCode(await change(user, { current_password: 'not the password' }))).toEqual([
      401,
      'invalid_credentials',
    ])
    expect((await actionsOf(user))[0]).toMatchObject({ action: 'password_check_failed' })
    expect(await isAlive(other.bearer)).toBe(true)
    expect((await login(user.email, user.password)).status).toBe(200)
  })

  test.each([
    ['a short one', { new_password: 'short' }],
    ['a common one', { new_password: 'password123' }],
    ['none', { new_password: undefined }],
    ['no current one', { current_password: undefined }],
  ])('is a bad request with %s', async (_, parts) => {
    const user = await api.given.user()
    expect(statusAndCode(await change(user, parts))).toEqual([400, 'invalid_request'])
  })

  test('is refused for an account without a password, whatever is sent', async () => {
    const user = await api.given.user()
    await api.sql`update users set password_hash = null where id = ${user.userId}`
    expect(statusAndCode(await change(user))).toEqual([409, 'password_not_set'])
  })

  test('requires a sign-in', async () => {
    const user = await api.given.user()
    expect(statusAndCode(await change({ ...user, bearer: '' }))).toEqual([401, 'unauthorized'])
  })

  test('counts wrong passwords together with those at sign-in, and refuses the right one afterwards', async () => {
    const limited = await startApi({ SVC_RATE_LIMITS: highLimits({ login_failures: 3 }) })
    const user = await limited.given.user()
    // From an unfamiliar network, as an attacker with a stolen access token.
    await login(user.email, 'a guess', limited)
    const codes = []
    for (const guess of ['a guess', 'another guess', 'a third guess', user.password])
      codes.push(statusAndCode(await change(user, { current_password: guess }, limited))[0])
    expect(codes).toEqual([401, 401, 429, 429])
    expect((await limited.sql`select from audit_entries where action = 'password_changed'`).length).toBe(0)
  })

  test('is limited per account', async () => {
    const limited = await startApi({ SVC_RATE_LIMITS: highLimits({ login: 2 }) })
    const user = await limited.given.user()
    const statuses = []
    for (const new_password of ['short', 'short', 'short'])
      statuses.push((await change(user, { new_password }, limited)).status)
    expect(statuses).toEqual([400, 400, 429])
  })
})

describe('concurrent requests', () => {
  test('of two changes with the same current password one succeeds', async () => {
    const user = await api.given.user()
    const passwords = ['the first good password', 'the second good password']
    const answers = await Promise.all(passwords.map((new_password) => change(user, { new_password })))
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 401])
    const winner = passwords[answers.findIndex(({ status }) => status === 204)] ?? ''
    expect((await login(user.email, winner)).status).toBe(200)
  })

  test('of other auth sessions that refresh leave no valid token, and this one refreshes on', async () => {
    for (let round = 0; round < 4; round += 1) {
      const user = await api.given.user()
      const other = await api.given.signIn(user)
      const changing = change(user)
      const refreshAll = async (token: string) => {
        for (let newest = { refresh_token: token, cp_access_jwt: '' }; ; ) {
          const { status, body } = await refresh(newest.refresh_token)
          if (status !== 200 || newest.refresh_token === body.refresh_token) return { status, ...newest }
          newest = body
          if (await isOver(changing)) return { status, ...newest }
        }
      }
      const [own, theirs] = await Promise.all([refreshAll(user.refreshToken), refreshAll(other.refreshToken)])
      expect((await changing).status).toBe(204)
      expect(own.status).toBe(200)
      expect((await refresh(own.refresh_token)).status).toBe(200)
      expect((await refresh(theirs.refresh_token)).status).toBe(401)
      if (theirs.cp_access_jwt) expect(await isAlive(theirs.cp_access_jwt)).toBe(false)
    }
  })

  test('with the old password that sign in leave no valid auth session', async () => {
    const user = await api.given.user()
    const [changed, ...logins] = await Promise.all([
      change(user),
      login(user.email, user.password),
      login(user.email, user.password),
    ])
    expect(changed.status).toBe(204)
    for (const { status, body } of logins) {
      expect([200, 401]).toContain(status)
      if (status === 200) expect(await isAlive(body.cp_access_jwt)).toBe(false)
    }
  })
})

const isOver = (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), new Promise<false>((resolve) => setImmediate(() => resolve(false)))])

describe('signing out everywhere else', () => {
  const revokeOthers = (bearer: string) =>
    api.post<{ revoked: number }>('/auth/sessions/revoke-others', undefined, { bearer })

  test('ends all other auth sessions of the account only, and can be repeated', async () => {
    const [user, stranger] = [await api.given.user(), await api.given.user()]
    const others = [await api.given.signIn(user), await api.given.signIn(user, 'plugin')]
    expect((await revokeOthers(user.bearer)).body).toEqual({ revoked: 2 })
    expect((await revokeOthers(user.bearer)).body).toEqual({ revoked: 0 })
    for (const other of others) expect(await isAlive(other.bearer)).toBe(false)
    expect([await isAlive(user.bearer), await isAlive(stranger.bearer)]).toEqual([true, true])
    expect((await actionsOf(user)).filter(({ action }) => action === 'signed_out_elsewhere')).toMatchObject([
      { detail: { sign_ins_ended: 2 } },
    ])
  })

  test('of two auth sessions at once leaves exactly one of them', async () => {
    const user = await api.given.user()
    const other = await api.given.signIn(user)
    const answers = await Promise.all([revokeOthers(user.bearer), revokeOthers(other.bearer)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
    expect([await isAlive(user.bearer), await isAlive(other.bearer)].toSorted()).toEqual([false, true])
  })

  test('requires a sign-in', async () => {
    expect(statusAndCode(await revokeOthers(''))).toEqual([401, 'unauthorized'])
  })
})

test('the list of auth sessions names browser and system of browsers, and of nothing else', async () => {
  const { email, password } = await api.given.user()
  const chrome =
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'
  const { body } = await api.post<TokenSet>('/auth/login', { email, password }, { headers: { 'User-Agent': chrome } })
  const list = await api.get<{ sessions: object[] }>('/auth/sessions', { bearer: body.cp_access_jwt })
  expect(list.body.sessions).toMatchObject([
    { current: true, browser: 'Chrome', system: 'Windows' },
    { current: false, browser: null, system: null },
  ])
})
