/** The approval of a plugin login in a browser. */
import { expect, test } from 'vitest'
import { revokeAllAccess } from '../../../../db/transactions/secure-account.ts'
import { type ErrorBody, startApi, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { waitForBlockedQuery } from '../../../support/locks.ts'

const api = await startApi({ SVC_SITE_URL: 'https://site.example' })

interface Started {
  login_attempt_id: string
  authorize_url: string
  poll_token: string
  user_code: string
  expires_in: number
  interval: number
}
type Polled = Partial<TokenSet & ErrorBody> & { status?: string }

const start = async (body: object = {}) => (await api.post<Started>('/auth/plugin/login/start', body)).body
const poll = (attempt: Pick<Started, 'login_attempt_id' | 'poll_token'>) =>
  api.post<Polled>('/auth/plugin/login/poll', {
    login_attempt_id: attempt.login_attempt_id,
    poll_token: attempt.poll_token,
  })
const decide = (attempt: Started, decision: 'approve' | 'deny', bearer: string) =>
  api.post(`/auth/plugin/login/attempts/${attempt.login_attempt_id}/${decision}`, undefined, { bearer })
const look = (attempt: Started, bearer: string) =>
  api.get<Record<string, unknown>>(`/auth/plugin/login/attempts/${attempt.login_attempt_id}`, { bearer })
const passTime = (attempt: Started, seconds: number) => api.sql`
  update login_attempts set created_at = created_at - make_interval(secs => ${seconds}),
    expires_at = expires_at - make_interval(secs => ${seconds}), last_polled_at = last_polled_at - make_interval(secs => ${seconds})
  where id = ${attempt.login_attempt_id}`
const signInsOf = (userId: string) => api.sql`select from auth_sessions where user_id = ${userId} and client = 'plugin'`

test('a plugin signs in after a user has approved the login with the same code', async () => {
  const user = await api.given.user()
  const attempt = await start({ client_name: 'OBS plugin' })
  expect(attempt).toEqual({
    login_attempt_id: expect.any(String),
    authorize_url: `https://site.example/login?attempt=${attempt.login_attempt_id}`,
    poll_token: expect.stringMatching(/^[\w-]{43}$/),
    user_code: expect.stringMatching(/^[A-HJ-KM-NP-TV-Z2-9]{4}-[A-HJ-KM-NP-TV-Z2-9]{4}$/),
    expires_in: 300,
    interval: 2,
  })
  expect((await poll(attempt)).body).toEqual({ status: 'pending', interval: 2 })
  expect((await look(attempt, user.bearer)).body).toEqual({
    login_attempt_id: attempt.login_attempt_id,
    status: 'pending',
    user_code: attempt.user_code,
    client_name: 'OBS plugin',
    ip: '127.0.0.1',
    user_agent: expect.any(String),
    created_at: expect.any(String),
    expires_at: expect.any(String),
  })
  expect((await decide(attempt, 'approve', user.bearer)).status).toBe(204)
  const { status, body, headers } = await poll(attempt)
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(body).toEqual({
    status: 'complete',
    cp_access_jwt: expect.any(String),
    refresh_token: expect.any(String),
    token_type: 'Bearer',
    expires_in: 720,
  })
  const sessions = await api.get('/auth/sessions', { bearer: body.cp_access_jwt ?? '' })
  expect(sessions.body).toMatchObject({ sessions: [{ client: 'OBS plugin', current: true }, { client: 'web' }] })
})

test('the tokens are issued once, also to concurrent polls', async () => {
  const user = await api.given.user()
  for (let round = 0; round < 5; round += 1) {
    const attempt = await start()
    await decide(attempt, 'approve', user.bearer)
    const polls = await Promise.all(Array.from({ length: 10 }, () => poll(attempt)))
    expect(polls.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(410)])
    expect(statusAndCode(await poll(attempt))).toEqual([410, 'attempt_consumed'])
  }
})

test('reading an attempt does not approve it', async () => {
  const user = await api.given.user()
  const attempt = await start()
  await look(attempt, user.bearer)
  expect((await poll(attempt)).body.status).toBe('pending')
})

test('a denied attempt stays denied', async () => {
  const user = await api.given.user()
  const attempt = await start()
  expect((await decide(attempt, 'deny', user.bearer)).status).toBe(204)
  expect((await decide(attempt, 'deny', user.bearer)).status).toBe(204)
  expect(statusAndCode(await decide(attempt, 'approve', user.bearer))).toEqual([403, 'attempt_denied'])
  expect(statusAndCode(await poll(attempt))).toEqual([403, 'attempt_denied'])
})

test('an approval can be withdrawn until the plugin has collected the tokens', async () => {
  const user = await api.given.user()
  const attempt = await start()
  await decide(attempt, 'approve', user.bearer)
  expect((await decide(attempt, 'deny', user.bearer)).status).toBe(204)
  expect(statusAndCode(await poll(attempt))).toEqual([403, 'attempt_denied'])

  const used = await start()
  await decide(used, 'approve', user.bearer)
  await poll(used)
  expect(statusAndCode(await decide(used, 'deny', user.bearer))).toEqual([410, 'attempt_consumed'])
})

test('a repeated approval changes nothing, also after the tokens were collected', async () => {
  const user = await api.given.user()
  const attempt = await start()
  expect((await decide(attempt, 'approve', user.bearer)).status).toBe(204)
  expect((await decide(attempt, 'approve', user.bearer)).status).toBe(204)
  await poll(attempt)
  expect((await decide(attempt, 'approve', user.bearer)).status).toBe(204)
  expect(statusAndCode(await poll(attempt))).toEqual([410, 'attempt_consumed'])
})

test('a decided attempt is not found by other users', async () => {
  const [owner, stranger] = [await api.given.user(), await api.given.user()]
  const attempt = await start()
  await decide(attempt, 'approve', owner.bearer)
  expect((await look(attempt, stranger.bearer)).status).toBe(404)
  expect((await decide(attempt, 'approve', stranger.bearer)).status).toBe(404)
  expect((await decide(attempt, 'deny', stranger.bearer)).status).toBe(404)
  const { body } = await poll(attempt)
  const [row] = await api.sql`select user_id from auth_sessions where client = 'plugin' and user_id = ${owner.userId}`
  expect([body.status, row?.userId]).toEqual(['complete', owner.userId])
})

test('of two concurrent approvals by different users one succeeds', async () => {
  const [first, second] = [await api.given.user(), await api.given.user()]
  const attempt = await start()
  const answers = await Promise.all([
    decide(attempt, 'approve', first.bearer),
    decide(attempt, 'approve', second.bearer),
  ])
  expect(answers.map((answer) => answer.status).sort()).toEqual([204, 404])
})

test('after 300 s the attempt is expired and issues no tokens, even if it was approved at 299 s', async () => {
  const user = await api.given.user()
  const attempt = await start()
  await passTime(attempt, 299)
  expect((await decide(attempt, 'approve', user.bearer)).status).toBe(204)
  for (const seconds of [1, 1]) {
    await passTime(attempt, seconds)
    expect(statusAndCode(await poll(attempt))).toEqual([410, 'attempt_expired'])
    expect(statusAndCode(await decide(attempt, 'approve', user.bearer))).toEqual([410, 'attempt_expired'])
    expect(statusAndCode(await decide(attempt, 'deny', user.bearer))).toEqual([410, 'attempt_expired'])
  }
  expect((await look(attempt, user.bearer)).body.status).toBe('expired')
  expect(await signInsOf(user.userId)).toHaveLength(0)
})

test('an approval at 301 s is refused', async () => {
  const user = await api.given.user()
  const attempt = await start()
  await passTime(attempt, 301)
  expect(statusAndCode(await decide(attempt, 'approve', user.bearer))).toEqual([410, 'attempt_expired'])
  expect(statusAndCode(await poll(attempt))).toEqual([410, 'attempt_expired'])
  const [row] = await api.sql`select status, user_id from login_attempts where id = ${attempt.login_attempt_id}`
  expect(row).toEqual({ status: 'pending', userId: null })
  expect(await signInsOf(user.userId)).toHaveLength(0)
})

test('a user whose auth session was revoked cannot approve', async () => {
  for (let round = 0; round < 20; round += 1) {
    const user = await api.given.user()
    const attempt = await start()
    const [approved] = await Promise.all([
      decide(attempt, 'approve', user.bearer),
      api.sql.begin(async (tx) => {
        await tx`select from users where id = ${user.userId} for no key update`
        await revokeAllAccess(tx, user.userId, 'password_reset')
      }),
    ])
    expect([204, 401]).toContain(approved.status)
    expect((await poll(attempt)).body).not.toHaveProperty('cp_access_jwt')
  }
})

test('an approval whose auth session is revoked concurrently is refused with unauthorized', async () => {
  const user = await api.given.user()
  const attempt = await start()
  const approved = await api.sql
    .begin(async (tx) => {
      await tx`select from users where id = ${user.userId} for no key update`
      await revokeAllAccess(tx, user.userId, 'password_reset')
      const answer = decide(attempt, 'approve', user.bearer)
      await waitForBlockedQuery(api.sql, tx)
      return { answer }
    })
    .then(({ answer }) => answer)
  expect([approved.status, approved.body.error?.code]).toEqual([401, 'unauthorized'])
  expect(approved.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
})

test('polling faster than once a second is refused, and the attempt stays valid', async () => {
  const user = await api.given.user()
  const attempt = await start()
  expect((await poll(attempt)).status).toBe(200)
  const tooSoon = await poll(attempt)
  expect(statusAndCode(tooSoon)).toEqual([429, 'rate_limited'])
  expect(tooSoon.headers.get('retry-after')).toBe('1')
  await passTime(attempt, 1)
  expect((await poll(attempt)).body.status).toBe('pending')
  await decide(attempt, 'approve', user.bearer)
  expect((await poll(attempt)).body.status).toBe('complete')
})

test('a wrong poll token and an unknown attempt give the same response', async () => {
  const attempt = await start()
  const unknown = '00000000-0000-4000-8000-000000000000'
  const answers = await Promise.all([
    poll({ ...attempt, poll_token: 'wrong' }),
    poll({ ...attempt, poll_token: 'a\0b' }),
    poll({ ...attempt, login_attempt_id: unknown }),
    poll({ ...attempt, login_attempt_id: 'no\0uuid' }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
})

test('an approval is void after the account was disabled', async () => {
  const user = await api.given.user()
  const attempt = await start()
  await decide(attempt, 'approve', user.bearer)
  await api.sql`update users set disabled_at = now() where id = ${user.userId}`
  expect(statusAndCode(await poll(attempt))).toEqual([403, 'account_disabled'])
  expect(await signInsOf(user.userId)).toHaveLength(0)
})

test('reading and deciding require a sign-in', async () => {
  const attempt = await start()
  for (const answer of [
    await look(attempt, ''),
    await decide(attempt, 'approve', ''),
    await decide(attempt, 'deny', ''),
  ])
    expect(answer.status).toBe(401)
})

test('a plugin with the name of a browser is listed as a plugin in auth sessions and audit entries', async () => {
  const user = await api.given.user()
  for (const client_name of ['Browser', 'web', ' Web']) {
    const attempt = await start({ client_name })
    await decide(attempt, 'approve', user.bearer)
    expect((await poll(attempt)).status).toBe(200)
  }
  const { body } = await api.get<{ sessions: { client: string; kind: string }[] }>('/auth/sessions', user)
  const kinds = body.sessions.map(({ client, kind }) => `${client}: ${kind}`)
  expect(kinds.toSorted()).toEqual(['Browser: plugin', 'Web: plugin', 'web: plugin', 'web: web'])
  const trail = await api.get<{ entries: { action: string; client: string; client_kind: string }[] }>(
    '/auth/audit',
    user,
  )
  const byBrowsers = trail.body.entries.filter((entry) => entry.client_kind === 'web')
  expect(byBrowsers).toMatchObject([{ action: 'signed_in', client: 'web' }])
  expect(trail.body.entries).toHaveLength(7)
})

test('invisible and reordering characters are removed from a plugin’s name, which must not become empty', async () => {
  const user = await api.given.user()
  const attempt = await start({ client_name: ' \u202eOBS\u0000\u200b plugin\n ' })
  expect((await look(attempt, user.bearer)).body.client_name).toBe('OBS plugin')
  for (const client_name of ['', ' \n ', '\u3164', '\u2800', '\u115f\u1160', 'x'.repeat(65), 7, null])
    expect((await api.post('/auth/plugin/login/start', { client_name })).status).toBe(400)
  expect((await api.post('/auth/plugin/login/start', { client_name: '🐎'.repeat(64) })).status).toBe(201)
})

test.each([{}, { login_attempt_id: 7, poll_token: 'x' }, { login_attempt_id: 'x' }, '[]', '{'])(
  'polling with %j is a bad request',
  async (body) => {
    expect((await api.post('/auth/plugin/login/poll', body)).status).toBe(400)
  },
)
