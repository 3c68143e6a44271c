/** Sign-up and sign-in with a password, and the limits of wrong guesses. */
import { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createPasswords } from '../../../../api/identity/passwords.ts'
import { type Client, type ErrorBody, startApi, type TokenSet } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { fetchUser } from '../../../support/oauth-api.ts'

const api = await startApi()
const password = 'a password of ours'
let count = 0
const freshEmail = () => `someone${count++}@example.com`

const codeOf = (answer: { body: unknown }) => (answer.body as ErrorBody).error?.code
const login = (email: string, typed: string, ip = '192.0.2.7', at: Client = api) =>
  at.post<TokenSet & Partial<ErrorBody>>('/auth/login', { email, password: typed }, { ip })
const signup = (email: string, chosen: unknown = password, at: Client = api) =>
  at.post<TokenSet & Partial<ErrorBody>>('/auth/signup', { email, password: chosen })

describe('sign-up', () => {
  test('creates an account and signs in to it', async () => {
    const answer = await signup(freshEmail())
    expect(answer.status).toBe(201)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toEqual({
      cp_access_jwt: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      refresh_token: expect.stringMatching(/^[\w-]{43}$/),
      token_type: 'Bearer',
      expires_in: 720,
    })
    const sessions = await api.get('/auth/sessions', { bearer: answer.body.cp_access_jwt })
    expect(sessions.body).toMatchObject({ sessions: [{ client: 'web', current: true }] })
  })

  test('gives each account a stream token of 8 letters and digits', async () => {
    const { body } = await signup(freshEmail())
    expect((await fetchUser(api, body.cp_access_jwt)).stream_token).toMatch(/^[A-Za-z0-9]{8}$/)
  })

  test('refuses an address that has an account, regardless of case and surrounding spaces', async () => {
    const email = freshEmail()
    await signup(email)
    const again = await signup(` ${email.toUpperCase()} `)
    expect([again.status, codeOf(again)]).toEqual([409, 'email_taken'])
  })

  test('creates one account for concurrent requests', async () => {
    const email = freshEmail()
    const answers = await Promise.all(Array.from({ length: 8 }, () => signup(email)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
  })

  test.each([
    ['nine char', /at least 10 characters/],
    ['🐎🐎🐎🐎🐎🐎🐎🐎🐎', /at least 10 characters/],
    ['é'.repeat(37), /at most 72 bytes/],
    ['a password\0 with a NUL', /invalid characters/],
    ['half a pair \ud83d of it', /invalid characters/],
    ['password123', /common/],
    ['PassWord123', /common/],
    ['1234567890', /common/],
  ])('refuses the password %j with the reason', async (chosen, reason) => {
    const answer = await signup(freshEmail(), chosen)
    expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_request'])
    expect(answer.body.error?.message).toMatch(reason)
  })

  test('accepts a password of exactly 72 bytes', async () => {
    expect((await signup(freshEmail(), 'é'.repeat(36))).status).toBe(201)
  })

  test.each([
    'nobody',
    '@example.com',
    'two@at@example.com',
    'with space@example.com',
    'nul\0@example.com',
    'half\ud83d@example.com',
    // Compared as an i, or normalised to a K: mail would go to another address.
    'someone@gİthub.example',
    'admİn@example.com',
    'admI\u0307n@example.com',
    'mi\u212ae@example.com',
    'someone@\u212aaufhaus.example',
    'a\u037eb@example.com',
    'a\u1fefb@example.com',
    `${'a'.repeat(64)}@${'b'.repeat(190)}.com`,
    '',
    7,
    null,
  ])('refuses %j as an address', async (email) => {
    const answer = await api.post('/auth/signup', { email, password })
    expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_request'])
  })
})

describe('sign-in', () => {
  test('accepts the address in any case and the password in either Unicode form', async () => {
    const email = freshEmail()
    await signup(email, 'crème brûlée au café'.normalize('NFC'))
    const answer = await login(email.toUpperCase(), 'crème brûlée au café'.normalize('NFD'))
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('gives the same response to a wrong password and an unknown address', async () => {
    const { email } = await api.given.user()
    const wrong = await login(email, 'not the password')
    const unknown = await login(freshEmail(), 'not the password')
    expect([wrong.status, unknown.status]).toEqual([401, 401])
    expect(wrong.body).toEqual(unknown.body)
    expect(codeOf(wrong)).toBe('invalid_credentials')
  })

  test('refuses a password that only starts with the right one', async () => {
    const email = freshEmail()
    const longest = 'x'.repeat(71).concat('y')
    await signup(email, longest)
    expect((await login(email, `${longest}z`)).status).toBe(401)
    expect((await login(email, longest)).status).toBe(200)
  })

  test.each(['', 'a\0b', 'half \ud83d', 'x'.repeat(60_000)])(
    'refuses an impossible password like a wrong one',
    async (typed) => {
      const { email } = await api.given.user()
      expect(codeOf(await login(email, typed))).toBe('invalid_credentials')
    },
  )

  test('reveals that an account is disabled only with its password', async () => {
    const user = await api.given.user()
    await api.sql`update users set disabled_at = now() where id = ${user.userId}`
    expect(codeOf(await login(user.email, 'not the password'))).toBe('invalid_credentials')
    const answer = await login(user.email, user.password)
    expect([answer.status, codeOf(answer)]).toEqual([403, 'account_disabled'])
  })

  test('logs neither passwords nor tokens, and records failures in the audit trail', async () => {
    const user = await api.given.user()
    await login(user.email, 'not the password')
    const { body } = await login(user.email, user.password)
    const log = api.logged.join('')
    expect(log).toContain('/auth/login')
    for (const secret of ['not the password', user.password, body.cp_access_jwt, body.refresh_token])
      expect(log).not.toContain(secret)
    const entries = await api.sql`select action from audit_entries where user_id = ${user.userId} order by id`
    expect(entries.map((entry) => entry.action)).toEqual(['signed_in', 'sign_in_failed', 'signed_in'])
  })
})

describe('the limit on wrong passwords of an account', async () => {
  const braked = await startApi({ SVC_RATE_LIMITS: highLimits({ login_failures: 3 }) })
  const failThrice = async (email: string, ip: (round: number) => string) => {
    for (let round = 0; round < 3; round += 1)
      expect((await login(email, 'a wrong guess', ip(round), braked)).status).toBe(401)
  }

  test('also refuses the right password, from every unfamiliar address, until the minute ends', async () => {
    const user = await braked.given.user()
    await failThrice(user.email, (round) => `203.0.113.${round}`)
    const limited = await login(user.email, user.password, '203.0.113.9', braked)
    expect([limited.status, codeOf(limited)]).toEqual([429, 'rate_limited'])
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
    await braked.sql`update rate_limit_windows set opened_at = opened_at - interval '60 seconds'`
    expect((await login(user.email, user.password, '203.0.113.9', braked)).status).toBe(200)
  })

  test('does not block the owner at an address from which they have signed in', async () => {
    const user = await braked.given.user()
    expect((await login(user.email, user.password, '2001:db8:1:2::9', braked)).status).toBe(200)
    await failThrice(user.email, (round) => `203.0.113.${round}`)
    expect((await login(user.email, user.password, '2001:db8:1:3::1', braked)).status).toBe(429)
    expect((await login(user.email, user.password, '2001:db8:1:2::1', braked)).status).toBe(200)
  })

  test('also applies to email addresses without an account, in any case', async () => {
    const email = freshEmail()
    await failThrice(email, () => '203.0.113.1')
    expect((await login(email.toUpperCase(), 'a wrong guess', '203.0.113.1', braked)).status).toBe(429)
  })

  test('counts concurrent attempts and refunds those with the right password', async () => {
    const user = await braked.given.user()
    for (let round = 0; round < 4; round += 1)
      expect((await login(user.email, user.password, '203.0.113.1', braked)).status).toBe(200)
    const guesses = await Promise.all(
      Array.from({ length: 10 }, () => login(user.email, 'a wrong guess', '203.0.113.1', braked)),
    )
    expect(guesses.filter(({ status }) => status === 401)).toHaveLength(3)
  })
})

describe('where verification of addresses is required', async () => {
  const strict = await startApi({ SVC_REQUIRE_EMAIL_VERIFICATION: 'true' })

  test('a sign-up gives the same response with and without an existing account', async () => {
    const { email } = await strict.given.user()
    const taken = await signup(email, password, strict)
    const free = await signup(freshEmail(), password, strict)
    expect([taken.status, free.status]).toEqual([202, 202])
    expect([taken.body, free.body]).toEqual([{}, {}])
  })

  /** Everything that an answer says, but for what is new in each. */
  const said = ({ status, body, headers }: Awaited<ReturnType<typeof login>>) => ({
    status,
    body,
    headers: [...headers].filter(([name]) => !['x-request-id', 'date', 'ratelimit'].includes(name)),
  })

  test('no sign-in after a sign-up reveals whether the address was free', async () => {
    const verified = await strict.given.user()
    await strict.sql`update users set email_verified_at = now() where id = ${verified.userId}`
    const pending = await strict.given.user()
    const free = freshEmail()
    const own = 'a password of the stranger'
    for (const email of [verified.email, pending.email, free, free.toUpperCase()]) {
      const answer = await signup(email, email === free ? own : 'another password of theirs', strict)
      expect([answer.status, answer.body]).toEqual([202, {}])
    }
    const answers = []
    for (const [email, typed] of [
      [free, own],
      [free, 'another password of theirs'],
      [verified.email, own],
      [pending.email, own],
      [pending.email, pending.password],
      [freshEmail(), own],
    ] as const)
      answers.push(said(await login(email, typed, undefined, strict)))
    expect(answers[0]).toMatchObject({ status: 401, body: { error: { code: 'invalid_credentials' } } })
    for (const answer of answers) expect(answer).toEqual(answers[0])
  })

  test('the number of allowed attempts does not reveal it either', async () => {
    const limited = await startApi({
      SVC_REQUIRE_EMAIL_VERIFICATION: 'true',
      SVC_RATE_LIMITS: highLimits({ login_failures: 3 }),
      DATABASE_URL: strict.services.config.database.url,
    })
    const free = freshEmail()
    const { email: taken } = await limited.given.user()
    for (const email of [free, taken]) {
      await signup(email, password, limited)
      const statuses = []
      for (let round = 0; round < 5; round += 1)
        statuses.push((await login(email, password, `203.0.113.${round}`, limited)).status)
      expect([email, statuses]).toEqual([email, [401, 401, 401, 429, 429]])
    }
  })

  test('the right password signs in once the address is verified', async () => {
    const user = await strict.given.user()
    expect((await login(user.email, user.password, undefined, strict)).status).toBe(401)
    await strict.sql`update users set email_verified_at = now() where id = ${user.userId}`
    expect((await login(user.email, user.password, undefined, strict)).status).toBe(200)
  })
})

test('sign-ins are limited to 5 a minute per address, regardless of forged X-Forwarded-For entries', async () => {
  const limited = await startApi({ SVC_RATE_LIMITS: 'login_failures=1000' })
  const statuses = []
  for (let round = 0; round < 6; round += 1)
    statuses.push((await login(freshEmail(), 'a wrong guess', `198.51.100.${round}, 192.0.2.1`, limited)).status)
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
})

test('password hashing beyond the queue limit is refused with 503', async () => {
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const hashing = { hash: (text: string) => finished.then(() => `hash of ${text}`), compare: async () => false }
  const passwords = createPasswords({ runningMax: 1, waitingMax: 1 }, hashing)
  const hashes = ['one', 'two', 'three', 'four'].map((text) =>
    passwords.hash(text, { ip: '192.0.2.1', socket: new Socket() }),
  )
  finish()
  const results = await Promise.allSettled(hashes)
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
  const [, , refused] = results
  expect(refused).toMatchObject({ reason: { code: 'temporarily_unavailable', headers: { 'Retry-After': '1' } } })
})
