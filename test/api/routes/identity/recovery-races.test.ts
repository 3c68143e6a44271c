/** Requests that run concurrently with a password reset must not leave any valid access. */
import { Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type GivenUser, startApi, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { mailsTo } from '../../../support/mails.ts'
import { type PluginLogin, pluginLogins } from '../../../support/plugin-logins.ts'
import { propertyRuns } from '../../../support/property-runs.ts'

const api = await startApi()
const chosen = 'another good password'

const reset = (token: string) => api.post('/auth/password/reset', { token, password: chosen })
const login = (email: string, password: string) => api.post<TokenSet>('/auth/login', { email, password })
const refresh = (token: string) => api.post<TokenSet>('/auth/refresh', { refresh_token: token })
const isAlive = async (bearer: string) => (await api.get('/auth/sessions', { bearer })).status === 200
const linkFor = async ({ email }: GivenUser) => {
  await api.post('/auth/password/forgot', { email })
  return mailsTo(api, email).at(-1)?.token ?? ''
}

const { startPlugin, pollPlugin, approvePlugin } = pluginLogins(api)

const liveSignIns = (userId: string) =>
  api.sql`select from auth_sessions where user_id = ${userId} and revoked_at is null`

test('a reset concurrent with a sign-in by the old password leaves no valid auth session', async () => {
  for (let round = 0; round < propertyRuns(2, 6); round += 1) {
    const user = await api.given.user()
    const token = await linkFor(user)
    const [done, ...logins] = await Promise.all([
      reset(token),
      login(user.email, user.password),
      login(user.email, user.password),
    ])
    expect(done.status).toBe(204)
    for (const signedIn of logins) {
      expect([200, 401]).toContain(signedIn.status)
      if (signedIn.status === 200) expect(await isAlive(signedIn.body.cp_access_jwt)).toBe(false)
    }
    expect(await liveSignIns(user.userId)).toHaveLength(0)
  }
})

test('a sign-in whose password was changed after it was compared is refused', async () => {
  const user = await api.given.user()
  const token = await linkFor(user)
  const { passwords } = api.services
  const matches = passwords.matches.bind(passwords)
  // The whole reset falls between the comparison and the sign-in.
  Object.assign(passwords, {
    matches: async (...typed: Parameters<typeof matches>) => {
      Object.assign(passwords, { matches })
      const same = await matches(...typed)
      expect([same, (await reset(token)).status]).toEqual([true, 204])
      return same
    },
  })
  const signingIn = login(user.email, user.password)
  expect(statusAndCode(await signingIn)).toEqual([401, 'invalid_credentials'])
  expect(await liveSignIns(user.userId)).toHaveLength(0)
})

test('a reset concurrent with refreshes invalidates their new tokens', async () => {
  for (let round = 0; round < propertyRuns(2, 6); round += 1) {
    const user = await api.given.user()
    const token = await linkFor(user)
    const done = reset(token)
    let newest = user.refreshToken
    let bearer = user.bearer
    // On and on until it is over, so that some refresh falls into each moment of the reset.
    for (;;) {
      const { status, body } = await refresh(newest)
      expect([200, 401]).toContain(status)
      if (status === 401) break
      newest = body.refresh_token
      bearer = body.cp_access_jwt
    }
    expect((await done).status).toBe(204)
    expect(await isAlive(bearer)).toBe(false)
    expect(await liveSignIns(user.userId)).toHaveLength(0)
  }
})

test('a reset concurrent with approvals and polls of plugin logins leaves no valid plugin session', async () => {
  const passwordHash = await api.services.passwords.hash(chosen, { ip: '192.0.2.1', socket: new Socket() })
  const { hash } = api.services.passwords
  // Without the time that hashing takes the reset falls among the others.
  Object.assign(api.services.passwords, { hash: async () => passwordHash })
  onTestFinished(() => void Object.assign(api.services.passwords, { hash }))
  for (let round = 0; round < propertyRuns(4, 20); round += 1) {
    const user = await api.given.user()
    const token = await linkFor(user)
    const attempts = await Promise.all(Array.from({ length: 6 }, startPlugin))
    const approve = (attempt: PluginLogin) => approvePlugin(attempt, user)
    await Promise.all(attempts.slice(0, 3).map(approve))
    const answers = await Promise.all([
      ...attempts.slice(0, 3).flatMap((attempt) => [pollPlugin(attempt), approve(attempt)]),
      reset(token),
      ...attempts.slice(3).flatMap((attempt) => [approve(attempt), pollPlugin(attempt)]),
    ])
    for (const { status } of answers) expect([200, 204, 401, 403, 410, 429]).toContain(status)
    await api.sql`update login_attempts set last_polled_at = null`
    for (const attempt of attempts) expect((await pollPlugin(attempt)).body).not.toHaveProperty('cp_access_jwt')
    expect(await liveSignIns(user.userId)).toHaveLength(0)
  }
})
