/** The verification of an address by a mailed link. */
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type GivenUser, startApi, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { mailsTo } from '../../../support/mails.ts'

const api = await startApi({ SVC_SITE_URL: 'https://site.example' })
const strict = await startApi({ SVC_REQUIRE_EMAIL_VERIFICATION: 'true' })
const password = 'a password of ours'
const freshEmail = () => `${randomUUID()}@example.com`

const signup = (email: string, at = api) => at.post<TokenSet>('/auth/signup', { email, password })
const login = (email: string, at = api) => at.post<TokenSet>('/auth/login', { email, password })
const verify = (token: unknown, at = api) => at.post('/auth/email/verify', { token })
const resend = (bearer: string, at = api) => at.post('/auth/email/resend', undefined, { bearer })
const isVerified = async (email: string, at = api) =>
  (await at.sql`select from users where email = ${email} and email_verified_at is not null`).length === 1
/** The newest link for an account that has not verified its address. */
const linkFor = async ({ email, bearer }: GivenUser) => {
  await resend(bearer)
  return mailsTo(api, email).at(-1)?.token ?? ''
}

describe('verification of an address', () => {
  test('uses a link that is mailed at sign-up', async () => {
    const email = freshEmail()
    const { body } = await signup(email)
    const [mail, ...more] = mailsTo(api, email)
    expect(more).toEqual([])
    expect(mail).toMatchObject({
      subject: 'verify_email',
      link: expect.stringMatching(/^https:\/\/site\.example\/verify-email\?token=[\w-]{43}$/),
    })
    expect(await isVerified(email)).toBe(false)
    const answer = await verify(mail?.token)
    expect([answer.status, answer.body]).toEqual([204, {}])
    const session = await api.get('/auth/session', { bearer: body.cp_access_jwt })
    expect(session.body).toMatchObject({ user: { email, email_verified: true } })
  })

  test('keeps the auth sessions, password, stream token and other links', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    const secrets = () => api.sql`select stream_token_sealed, password_hash from users where id = ${user.userId}`
    const before = await secrets()
    await api.sql`
      insert into user_oauth_accounts (user_id, provider, provider_user_id) values (${user.userId}, 'twitch', ${user.userId})`
    expect((await verify(token)).status).toBe(204)
    expect((await api.get('/auth/sessions', { bearer: user.bearer })).status).toBe(200)
    expect(await secrets()).toEqual(before)
    expect(await api.sql`select from user_oauth_accounts where user_id = ${user.userId}`).toHaveLength(1)
  })

  test('works once per link, also for concurrent requests', async () => {
    const token = await linkFor(await api.given.user())
    const answers = await Promise.all(Array.from({ length: 5 }, () => verify(token)))
    expect(answers.map((answer) => answer.status).sort()).toEqual([204, 400, 400, 400, 400])
    expect(statusAndCode(await verify(token))).toEqual([400, 'token_invalid'])
  })

  test('is possible for 24 hours', async () => {
    const user = await api.given.user()
    const [late, early] = [await linkFor(user), await linkFor(user)]
    await api.sql`
      update mail_tokens set expires_at = expires_at - interval '24 hours'
      where token_hash = sha256(convert_to(${late}, 'UTF8'))`
    expect(statusAndCode(await verify(late))).toEqual([400, 'token_invalid'])
    await api.sql`update mail_tokens set expires_at = expires_at - interval '86390 seconds' where user_id = ${user.userId}`
    expect((await verify(early)).status).toBe(204)
  })

  test('refuses a link that was mailed to another address', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    await api.sql`update users set email = ${`new-${user.email}`} where id = ${user.userId}`
    expect(statusAndCode(await verify(token))).toEqual([400, 'token_invalid'])
    expect(await isVerified(`new-${user.email}`)).toBe(false)
  })

  test('refuses a password reset link, which stays valid', async () => {
    const user = await api.given.user()
    await api.post('/auth/password/forgot', { email: user.email })
    const token = mailsTo(api, user.email).at(-1)?.token
    expect(statusAndCode(await verify(token))).toEqual([400, 'token_invalid'])
    expect((await api.post('/auth/password/reset', { token, password })).status).toBe(204)
  })

  test('does nothing for a disabled account', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    await api.sql`update users set disabled_at = now() where id = ${user.userId}`
    expect(statusAndCode(await verify(token))).toEqual([400, 'token_invalid'])
  })

  test.each(['', 'nonsense', 'a\0b', '\ud83d', 'x'.repeat(50_000), randomBytes(32).toString('base64url')])(
    'refuses text that is not a token',
    async (token) => expect(statusAndCode(await verify(token))).toEqual([400, 'token_invalid']),
  )

  test.each([undefined, null, 7, ['x']])('with %j as a link is a bad request', async (token) => {
    expect(statusAndCode(await verify(token))).toEqual([400, 'invalid_request'])
  })
})

describe('a repeated request for the link', () => {
  test('mails another link, at most five valid ones, also for concurrent requests', async () => {
    const user = await api.given.user()
    const answers = await Promise.all(Array.from({ length: 9 }, () => resend(user.bearer)))
    for (const answer of answers) expect([answer.status, answer.body]).toEqual([202, {}])
    const mails = mailsTo(api, user.email)
    expect(mails).toHaveLength(5)
    for (const mail of mails) expect((await verify(mail.token)).status).toBe(204)
  })

  test('mails nothing if the address is verified or missing', async () => {
    const [verified, without] = [await api.given.user(), await api.given.user()]
    await api.sql`update users set email_verified_at = now() where id = ${verified.userId}`
    await api.sql`update users set email = null where id = ${without.userId}`
    for (const { bearer } of [verified, without]) expect((await resend(bearer)).status).toBe(202)
    const tokens = await api.sql`select from mail_tokens where user_id in (${verified.userId}, ${without.userId})`
    expect(tokens).toHaveLength(0)
  })

  test('is limited per account and requires a sign-in', async () => {
    const limited = await startApi({ SVC_RATE_LIMITS: highLimits({ forgot: 2 }) })
    const [user, other] = [await limited.given.user(), await limited.given.user()]
    const statuses = []
    for (const { bearer } of [user, user, user, other]) statuses.push((await resend(bearer, limited)).status)
    expect(statuses).toEqual([202, 202, 429, 202])
    expect((await resend('', limited)).status).toBe(401)
  })
})

describe('where verification is required', () => {
  test('a sign-up mails the link, and sign-in is refused until it is used', async () => {
    const email = freshEmail()
    const signedUp = await signup(email, strict)
    expect([signedUp.status, signedUp.body]).toEqual([202, {}])
    expect(statusAndCode(await login(email, strict))).toEqual([401, 'invalid_credentials'])
    expect((await verify(mailsTo(strict, email)[0]?.token, strict)).status).toBe(204)
    expect((await login(email, strict)).status).toBe(200)
  })

  test('a sign-up with a taken address mails nothing and changes nothing', async () => {
    const email = freshEmail()
    await signup(email, strict)
    const before = await strict.sql`select * from users where email = ${email}`
    expect((await signup(email.toUpperCase(), strict)).status).toBe(202)
    expect(mailsTo(strict, email)).toHaveLength(1)
    expect(await strict.sql`select * from users where email = ${email}`).toEqual(before)
  })

  test('a sign-in with the right password mails a new link, at most five, and with a wrong one nothing', async () => {
    const email = freshEmail()
    await signup(email, strict)
    await strict.post('/auth/login', { email, password: 'not the password' })
    expect(mailsTo(strict, email)).toHaveLength(1)
    for (let round = 0; round < 6; round += 1)
      expect(statusAndCode(await login(email, strict))).toEqual([401, 'invalid_credentials'])
    expect(mailsTo(strict, email)).toHaveLength(5)
    expect((await verify(mailsTo(strict, email).at(-1)?.token, strict)).status).toBe(204)
    expect((await login(email, strict)).status).toBe(200)
  })

  test('a password reset also verifies the address', async () => {
    const email = freshEmail()
    await signup(email, strict)
    await strict.post('/auth/password/forgot', { email })
    const token = mailsTo(strict, email).at(-1)?.token
    expect((await strict.post('/auth/password/reset', { token, password })).status).toBe(204)
    expect((await login(email, strict)).status).toBe(200)
  })
})
