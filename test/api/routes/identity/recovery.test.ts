/** The reset of a password: the link, and what it ends and unlinks. */
import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type GivenUser, startApi, statusAndCode, streamTokenOf, type TokenSet } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { mailsTo } from '../../../support/mails.ts'
import { pluginLogins } from '../../../support/plugin-logins.ts'

const api = await startApi({ SVC_SITE_URL: 'https://site.example' })
const chosen = 'another good password'

const forgot = (email: string, at = api) => at.post('/auth/password/forgot', { email })
const reset = (token: unknown, password: unknown = chosen) => api.post('/auth/password/reset', { token, password })
const login = (email: string, password: string) => api.post<TokenSet>('/auth/login', { email, password })
const refresh = (token: string) => api.post<TokenSet>('/auth/refresh', { refresh_token: token })
const isAlive = async (bearer: string) => (await api.get('/auth/sessions', { bearer })).status === 200
const linksTo = (email: string) => mailsTo(api, email).filter((mail) => mail.subject === 'reset_password')
/** The newest link that was mailed after asking for one. */
const linkFor = async (user: Pick<GivenUser, 'email'>) => {
  await forgot(user.email)
  return linksTo(user.email).at(-1)?.token ?? ''
}
const passTime = (userId: string, seconds: number) => api.sql`
  update mail_tokens set expires_at = expires_at - make_interval(secs => ${seconds}) where user_id = ${userId}`
const linkTwitch = async (userId: string) => {
  await api.sql`
    insert into user_oauth_accounts (user_id, provider, provider_user_id)
    values (${userId}, 'twitch', ${randomBytes(8).toString('hex')})`
}
const providersOf = async (userId: string) =>
  (await api.sql`select provider from user_oauth_accounts where user_id = ${userId}`).map((row) => row.provider)

const { startPlugin, pollPlugin, approvePlugin } = pluginLogins(api)

describe('a request for a reset link', () => {
  test('logs one line with the link and the account’s spelling of the address', async () => {
    const user = await api.given.user()
    const answer = await forgot(` ${user.email.toUpperCase()} `)
    expect([answer.status, answer.body]).toEqual([202, {}])
    const [line, ...more] = api.logged.filter((text) => text.includes(user.email) && text.includes('"mail"'))
    expect(more).toEqual([])
    expect(JSON.parse(line ?? '')).toMatchObject({
      level: 'info',
      mail: {
        to: user.email,
        subject: 'reset_password',
        link: expect.stringMatching(/^https:\/\/site\.example\/reset-password\?token=[\w-]{43}$/),
      },
      msg: expect.stringContaining('link'),
    })
  })

  test('gives the same response for an address without an account, and mails nothing', async () => {
    const known = await forgot((await api.given.user()).email)
    const unknown = await forgot('nobody@example.com')
    expect([unknown.status, unknown.body]).toEqual([known.status, known.body])
    const names = (headers: Headers) => [...headers.keys()].sort()
    expect(names(unknown.headers)).toEqual(names(known.headers))
    expect(mailsTo(api, 'nobody@example.com')).toEqual([])
  })

  test('is counted in the audit trail, without the address, also if it has no account', async () => {
    const user = await api.given.user()
    const countOf = async (userId: string | null) => {
      const [row] = await api.sql<{ attempts: number | null; details: string | null }[]>`
        select sum(attempts)::int as attempts, string_agg(detail::text, '') as details from audit_entries
        where action = 'password_reset_requested' and user_id is not distinct from ${userId}`
      return row
    }
    await forgot(user.email)
    expect(await countOf(user.userId)).toEqual({ attempts: 1, details: '{}' })
    const before = (await countOf(null))?.attempts ?? 0
    await forgot('stranger@example.com')
    expect(await countOf(null)).toMatchObject({ attempts: before + 1 })
    expect((await countOf(null))?.details).toMatch(/^(\{\})+$/)
  })

  test('mails at most five valid links, also for concurrent requests', async () => {
    const user = await api.given.user()
    const answers = await Promise.all(Array.from({ length: 12 }, () => forgot(user.email)))
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([202]))
    expect(linksTo(user.email)).toHaveLength(5)
    await passTime(user.userId, 1800)
    await forgot(user.email)
    expect(linksTo(user.email)).toHaveLength(6)
  })

  test('mails nothing for a disabled account', async () => {
    const user = await api.given.user()
    await api.sql`update users set disabled_at = now() where id = ${user.userId}`
    expect((await forgot(user.email)).status).toBe(202)
    expect(linksTo(user.email)).toEqual([])
  })

  test('is limited to five a minute per client address', async () => {
    const limited = await startApi({ SVC_RATE_LIMITS: highLimits({ forgot: 5 }) })
    const statuses = []
    for (let round = 0; round < 6; round += 1) statuses.push((await forgot(`x${round}@example.com`, limited)).status)
    expect(statuses).toEqual([202, 202, 202, 202, 202, 429])
  })

  test('logs neither link nor address where links must not be logged', async () => {
    const discreet = await startApi({ SVC_LOG_LINKS: 'false' })
    const user = await discreet.given.user()
    expect((await forgot(user.email, discreet)).status).toBe(202)
    const log = discreet.logged.join('')
    expect(log).toContain('"mail":{"subject":"reset_password"}')
    expect(log).not.toContain(user.email)
    expect(log).not.toContain('token=')
  })

  test.each(['nobody', '', 7, null, undefined])('with the address %j is a bad request', async (email) => {
    expect(statusAndCode(await api.post('/auth/password/forgot', { email }))).toEqual([400, 'invalid_request'])
  })

  test('stores only the hash of a link', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    const rows = await api.sql`
      select token_hash = sha256(convert_to(${token}, 'UTF8')) as hashed from mail_tokens where user_id = ${user.userId}`
    expect(rows).toEqual([{ hashed: true }])
  })
})

describe('a password reset', () => {
  test('accepts the new password and refuses the old one', async () => {
    const user = await api.given.user()
    const answer = await reset(await linkFor(user))
    expect([answer.status, answer.body]).toEqual([204, {}])
    expect(statusAndCode(await login(user.email, user.password))).toEqual([401, 'invalid_credentials'])
    expect((await login(user.email, chosen)).status).toBe(200)
  })

  test('revokes every auth session at once, at every process', async () => {
    const user = await api.given.user()
    const plugin = await api.given.signIn(user, 'OBS plugin')
    expect(await isAlive(plugin.bearer)).toBe(true)
    await reset(await linkFor(user))
    for (const { bearer, refreshToken } of [user, plugin]) {
      expect(await isAlive(bearer)).toBe(false)
      expect((await refresh(refreshToken)).status).toBe(401)
    }
    const ends = await api.sql`select distinct revoked_for from auth_sessions where user_id = ${user.userId}`
    expect(ends).toEqual([{ revokedFor: 'password_reset' }])
    expect(
      await api.sql`select detail from audit_entries where user_id = ${user.userId} and action = 'password_reset'`,
    ).toEqual([{ detail: { sign_ins_ended: 2, unlinked: '' } }])
  })

  test('works once per link and invalidates the other links of the account', async () => {
    const user = await api.given.user()
    const [first, second] = [await linkFor(user), await linkFor(user)]
    expect((await reset(first)).status).toBe(204)
    expect(statusAndCode(await reset(first))).toEqual([400, 'token_invalid'])
    expect(statusAndCode(await reset(second))).toEqual([400, 'token_invalid'])
  })

  test('works once for concurrent requests with one link', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    const answers = await Promise.all(['one', 'two', 'three'].map((name) => reset(token, `the password of ${name}`)))
    expect(answers.map((answer) => answer.status).sort()).toEqual([204, 400, 400])
  })

  test('is possible for 30 minutes', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    await passTime(user.userId, 1800)
    expect(statusAndCode(await reset(token))).toEqual([400, 'token_invalid'])
    expect((await login(user.email, user.password)).status).toBe(200)
    const fresh = await linkFor(user)
    await passTime(user.userId, 1790)
    expect((await reset(fresh)).status).toBe(204)
  })

  test('refuses a verification link', async () => {
    const user = await api.given.user()
    await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    const [verification] = mailsTo(api, user.email)
    expect(statusAndCode(await reset(verification?.token))).toEqual([400, 'token_invalid'])
  })

  test('refuses a link that was mailed to a previous address of the account', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    await api.sql`update users set email = ${`new-${user.email}`} where id = ${user.userId}`
    expect(statusAndCode(await reset(token))).toEqual([400, 'token_invalid'])
  })

  test('does nothing for a disabled account', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    await api.sql`update users set disabled_at = now() where id = ${user.userId}`
    expect(statusAndCode(await reset(token))).toEqual([400, 'token_invalid'])
    await api.sql`update users set disabled_at = null where id = ${user.userId}`
    expect((await login(user.email, user.password)).status).toBe(200)
  })

  test.each(['', 'nonsense', 'a\0b', '\ud83d', 'x'.repeat(50_000), randomBytes(32).toString('base64url')])(
    'refuses text that is not a token before any hashing',
    async (token) => {
      const { passwords } = api.services
      const { hash } = passwords
      Object.assign(passwords, { hash: () => Promise.reject(new Error('hashed for nobody')) })
      onTestFinished(() => void Object.assign(passwords, { hash }))
      expect(statusAndCode(await reset(token))).toEqual([400, 'token_invalid'])
    },
  )

  test.each(['short', 'password123', 'é'.repeat(37), 7, null])(
    'to the password %j is refused, and the link stays valid',
    async (password) => {
      const user = await api.given.user()
      const token = await linkFor(user)
      expect(statusAndCode(await reset(token, password))).toEqual([400, 'invalid_request'])
      expect((await reset(token)).status).toBe(204)
    },
  )
})

describe('an attacker with access to the account before the reset', () => {
  test('loses a plugin login that was approved and not collected', async () => {
    const user = await api.given.user()
    const attempt = await startPlugin()
    await approvePlugin(attempt, user)
    await reset(await linkFor(user))
    expect(statusAndCode(await pollPlugin(attempt))).toEqual([403, 'attempt_denied'])
  })

  test('loses linked identities of an unproved address, and the stream token is replaced', async () => {
    const user = await api.given.user()
    await linkTwitch(user.userId)
    const before = await streamTokenOf(api, user.userId)
    await reset(await linkFor(user))
    expect(await providersOf(user.userId)).toEqual([])
    const [row] = await api.sql`select email_verified_at from users where id = ${user.userId}`
    expect(row).toEqual({ emailVerifiedAt: expect.any(Date) })
    expect(await streamTokenOf(api, user.userId)).not.toBe(before)
  })

  test('loses an identity without the verified address; the owner keeps the others and the stream token', async () => {
    const user = await api.given.user()
    const before = await streamTokenOf(api, user.userId)
    await api.sql`
      update users set email_verified_at = now() - interval '1 minute', owner_proved_at = now() - interval '1 minute'
      where id = ${user.userId}`
    await linkTwitch(user.userId)
    await api.sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id, provider_verified_email)
      values (${user.userId}, 'google', ${user.userId}, ${user.email}), (${user.userId}, 'discord', ${user.userId}, 'x@example.com')`
    await reset(await linkFor(user))
    expect(await providersOf(user.userId)).toEqual(['google'])
    expect(await streamTokenOf(api, user.userId)).toBe(before)
  })

  test('loses pending authorization requests and merge requests', async () => {
    const user = await api.given.user()
    await api.sql`
      insert into oauth_authorization_requests (state_hash, binding_hash, provider, intent, scopes, user_id, auth_session_id, expires_at)
      values (sha256(${user.userId}::bytea), sha256('x'), 'twitch', 'link', 'identity', ${user.userId}, ${user.authSessionId},
        now() + interval '10 minutes')`
    await api.sql`
      insert into merge_requests (user_id, email, provider, provider_user_id, merge_token_hash, expires_at)
      values (${user.userId}, ${user.email}, 'google', 'g', sha256('x'), now() + interval '10 minutes')`
    await reset(await linkFor(user))
    const left = await api.sql`
      select user_id from oauth_authorization_requests where user_id = ${user.userId}
      union all select user_id from merge_requests where user_id = ${user.userId}`
    expect(left).toEqual([])
  })
})
