/** Change of an account's address, which a link to the new address confirms. */
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type GivenUser, startApi, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { mailsTo } from '../../../support/mails.ts'

const api = await startApi({ SVC_SITE_URL: 'https://site.example' })
const freshEmail = () => `${randomUUID()}@example.com`

const request = ({ bearer, password }: GivenUser, email: string, parts: object = {}, at = api) =>
  at.post('/auth/email/change', { email, password, ...parts }, { bearer })
const confirm = (token: unknown) => api.post('/auth/email/change/confirm', { token })
const tokenTo = (email: string) => mailsTo(api, email).findLast(({ subject }) => subject === 'change_email')?.token
const login = (email: string, password: string) => api.post<TokenSet>('/auth/login', { email, password })
const emailOf = async ({ bearer }: GivenUser) => {
  const { body } = await api.get<{ user: { email: string; email_verified: boolean } }>('/auth/session', { bearer })
  return [body.user.email, body.user.email_verified]
}
const actionsOf = async ({ bearer }: GivenUser) =>
  (await api.get<{ entries: { action: string; detail: object }[] }>('/auth/audit', { bearer })).body.entries
const signInSecondsAgo = (user: GivenUser, seconds: number) => api.sql`
  update auth_sessions set created_at = now() - make_interval(secs => ${seconds}) where id = ${user.authSessionId}`

describe('a change of the address', () => {
  test('takes effect when the link in the mail to the new address is confirmed', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    const answer = await request(user, email)
    expect([answer.status, answer.body]).toEqual([202, {}])
    expect(mailsTo(api, email)).toMatchObject([
      {
        subject: 'change_email',
        link: expect.stringMatching(/^https:\/\/site\.example\/confirm-email\?token=[\w-]{43}$/),
      },
    ])
    expect(await emailOf(user)).toEqual([user.email, false])
    expect((await confirm(tokenTo(email))).status).toBe(204)
    expect(await emailOf(user)).toEqual([email, true])
    expect((await login(email, user.password)).status).toBe(200)
    expect((await login(user.email, user.password)).status).toBe(401)
  })

  test('informs the former address, and is in the audit', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await api.sql`update users set email_verified_at = now() where id = ${user.userId}`
    await request(user, email)
    expect(mailsTo(api, user.email)).toEqual([])
    await confirm(tokenTo(email))
    expect(mailsTo(api, user.email)).toMatchObject([{ subject: 'email_changed' }])
    expect((await actionsOf(user)).slice(0, 2)).toMatchObject([
      { action: 'email_changed', detail: { former: user.email } },
      { action: 'email_change_requested', detail: {} },
    ])
  })

  test('invalidates all links that were mailed before', async () => {
    const [user, email, other] = [await api.given.user(), freshEmail(), freshEmail()]
    await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    await api.post('/auth/password/forgot', { email: user.email })
    const [verify, reset] = mailsTo(api, user.email).map(({ token }) => token)
    await request(user, other)
    await request(user, email)
    expect((await confirm(tokenTo(email))).status).toBe(204)
    // The former address back: the links stay invalid.
    await api.sql`update users set email = ${user.email} where id = ${user.userId}`
    const password = 'another good password'
    for (const answer of [
      await api.post('/auth/email/verify', { token: verify }),
      await api.post('/auth/password/reset', { token: reset, password }),
      await confirm(tokenTo(other)),
      await confirm(tokenTo(email)),
    ])
      expect(statusAndCode(answer)).toEqual([400, 'token_invalid'])
  })

  test('makes the first reset afterwards remove everything, since another person may have prepared the account', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await api.sql`update users set owner_proved_at = now(), email_verified_at = now() where id = ${user.userId}`
    await request(user, email)
    await confirm(tokenTo(email))
    await api.post('/auth/password/forgot', { email })
    const token = mailsTo(api, email).at(-1)?.token
    const preview = await api.post('/auth/password/reset/preview', { token })
    expect(preview.body).toMatchObject({ replaces_stream_token: true })
  })

  test('is possible for an hour', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await request(user, email)
    await api.sql`update mail_tokens set expires_at = expires_at - interval '1 hour' where user_id = ${user.userId}`
    expect(statusAndCode(await confirm(tokenTo(email)))).toEqual([400, 'token_invalid'])
    expect(await emailOf(user)).toEqual([user.email, false])
  })

  test('is refused with a wrong password or without one', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    expect(statusAndCode(await request(user, email, { password: 'not it at all' }))).toEqual([
      401,
      'invalid_credentials',
    ])
    expect(statusAndCode(await request(user, email, { password: undefined }))).toEqual([400, 'invalid_request'])
    expect(mailsTo(api, email)).toEqual([])
  })

  test('is a bad request with the present address, and with text that is no address', async () => {
    const user = await api.given.user()
    for (const email of [user.email, 'no address', `a\r\nBcc: b@example.com`, 7, undefined])
      expect(statusAndCode(await request(user, email as string))).toEqual([400, 'invalid_request'])
  })

  test('of an account without a password requires a recent sign-in', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await api.sql`update users set password_hash = null where id = ${user.userId}`
    await signInSecondsAgo(user, 601)
    expect(statusAndCode(await request(user, email))).toEqual([403, 'recent_sign_in_required'])
    await signInSecondsAgo(user, 590)
    expect((await request(user, email, { password: undefined })).status).toBe(202)
    expect((await confirm(tokenTo(email))).status).toBe(204)
  })

  test('gives an account without an address one', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await api.sql`update users set email = null, password_hash = null where id = ${user.userId}`
    expect((await request(user, email)).status).toBe(202)
    expect((await confirm(tokenTo(email))).status).toBe(204)
    expect(await emailOf(user)).toEqual([email, true])
  })

  test.each(['', 'nonsense', 'a\0b', '\ud83d', 'x'.repeat(50_000), randomBytes(32).toString('base64url')])(
    'refuses text that is not a token',
    async (token) => expect(statusAndCode(await confirm(token))).toEqual([400, 'token_invalid']),
  )

  test('does nothing for links of another purpose and for disabled accounts', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await request(user, email)
    const token = tokenTo(email)
    for (const path of ['/auth/email/verify', '/auth/email/verify/preview', '/auth/password/reset/preview'])
      expect(statusAndCode(await api.post(path, { token }))).toEqual([400, 'token_invalid'])
    await api.sql`update users set disabled_at = now() where id = ${user.userId}`
    expect(statusAndCode(await confirm(token))).toEqual([400, 'token_invalid'])
  })

  test('mails at most five valid links, also for concurrent requests, and is limited per account', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    const answers = await Promise.all(Array.from({ length: 8 }, () => request(user, email)))
    for (const { status } of answers) expect(status).toBe(202)
    expect(mailsTo(api, email)).toHaveLength(5)
    const limited = await startApi({ SVC_RATE_LIMITS: highLimits({ forgot: 1 }) })
    const other = await limited.given.user()
    const statuses = [freshEmail(), freshEmail()].map((address) => request(other, address, {}, limited))
    expect((await Promise.all(statuses)).map(({ status }) => status).sort()).toEqual([202, 429])
  })

  test('requires a sign-in that still exists when it is stored', async () => {
    const user = await api.given.user()
    expect((await request({ ...user, bearer: '' }, freshEmail())).status).toBe(401)
  })
})

describe('an address that another account has', () => {
  test('is refused only when the reader of its mail confirms', async () => {
    const [user, owner] = [await api.given.user(), await api.given.user()]
    const [free, taken] = [await request(user, freshEmail()), await request(user, owner.email.toUpperCase())]
    expect([taken.status, taken.body]).toEqual([free.status, free.body])
    expect(statusAndCode(await confirm(tokenTo(owner.email.toUpperCase())))).toEqual([409, 'email_taken'])
    expect(await emailOf(user)).toEqual([user.email, false])
    expect(await emailOf(owner)).toEqual([owner.email, false])
  })

  test('by a sign-up after the request is refused too, and the link works once the address is free', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await request(user, email)
    await api.post('/auth/signup', { email, password: 'a good password of mine' })
    expect(statusAndCode(await confirm(tokenTo(email)))).toEqual([409, 'email_taken'])
    await api.sql`delete from users where email = ${email}`
    expect((await confirm(tokenTo(email))).status).toBe(204)
  })
})

describe('concurrent confirmations', () => {
  test('of one link change the address once', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    await request(user, email)
    const answers = await Promise.all(Array.from({ length: 5 }, () => confirm(tokenTo(email))))
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 400, 400, 400, 400])
    expect((await actionsOf(user)).filter(({ action }) => action === 'email_changed')).toHaveLength(1)
  })

  test('of two accounts for the same address give it to one', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [user, otherUser, email] = [await api.given.user(), await api.given.user(), freshEmail()]
      await request(user, email)
      const first = tokenTo(email)
      await request(otherUser, email)
      const answers = await Promise.all([confirm(first), confirm(tokenTo(email))])
      expect(answers.map(statusAndCode).toSorted()).toEqual([
        [204, undefined],
        [409, 'email_taken'],
      ])
      expect(await api.sql`select from users where email = ${email}`).toHaveLength(1)
    }
  })

  test('with a sign-up for the same address give it to one', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [user, email] = [await api.given.user(), freshEmail()]
      await request(user, email)
      const token = tokenTo(email)
      const [confirmed, signedUp] = await Promise.all([
        confirm(token),
        api.post('/auth/signup', { email, password: 'a good password of mine' }),
      ])
      expect([204, 409]).toContain(confirmed.status)
      expect([201, 409]).toContain(signedUp.status)
      expect(await api.sql`select from users where email = ${email}`).toHaveLength(1)
    }
  })
})

describe('an old verification link', () => {
  const preview = (token: unknown) => api.post('/auth/email/verify/preview', { token })
  const linkFor = async ({ email, bearer }: GivenUser) => {
    await api.post('/auth/email/resend', undefined, { bearer })
    return mailsTo(api, email).at(-1)?.token
  }

  test('is known as verified after its use, and does not verify again', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    expect((await preview(token)).body).toEqual({ already_verified: false })
    expect((await preview(token)).status).toBe(200)
    await api.post('/auth/email/verify', { token })
    expect((await preview(token)).body).toEqual({ already_verified: true })
    expect(statusAndCode(await api.post('/auth/email/verify', { token }))).toEqual([400, 'token_invalid'])
  })

  test('is known as verified when another link was used, or after it expired', async () => {
    const user = await api.given.user()
    const [first, second] = [await linkFor(user), await linkFor(user)]
    await api.post('/auth/email/verify', { token: second })
    await api.sql`update mail_tokens set expires_at = now() where user_id = ${user.userId}`
    expect((await preview(first)).body).toEqual({ already_verified: true })
  })

  test('of an address that is not verified is invalid when it has expired', async () => {
    const user = await api.given.user()
    const token = await linkFor(user)
    await api.sql`update mail_tokens set expires_at = now() where user_id = ${user.userId}`
    expect(statusAndCode(await preview(token))).toEqual([400, 'token_invalid'])
  })

  test('of a former address is invalid', async () => {
    const [user, email] = [await api.given.user(), freshEmail()]
    const token = await linkFor(user)
    await api.post('/auth/email/verify', { token })
    await request(user, email)
    await confirm(tokenTo(email))
    expect(statusAndCode(await preview(token))).toEqual([400, 'token_invalid'])
  })
})
