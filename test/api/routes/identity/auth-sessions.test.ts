/** Refresh tokens and the list of sign-ins: exchange, lost replies, replays, revocation. */
import { createHash, randomUUID } from 'node:crypto'
import { decodeProtectedHeader, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { startApi, type TokenSet } from '../../../support/api.ts'

const api = await startApi()
/** Another process of the same service. */
const replica = await startApi({
  DATABASE_URL: api.services.config.database.url,
  SVC_JWT_SECRET: api.services.config.jwt.secret,
})

interface Sessions {
  sessions: Array<{
    id: string
    client: string
    current: boolean
    created_at: string
    last_used_at: string
    ip: string
  }>
}

const refresh = (token: unknown, at = api) => at.post<TokenSet>('/auth/refresh', { refresh_token: token })
const hashOf = (token: string) => createHash('sha256').update(token).digest('hex')
const isAlive = async (bearer: string) => (await api.get('/auth/sessions', { bearer })).status === 200
const passTime = (authSessionId: string, seconds: number) => api.sql`
  update refresh_tokens set replaced_at = replaced_at - make_interval(secs => ${seconds}),
    expires_at = expires_at - make_interval(secs => ${seconds})
  where auth_session_id = ${authSessionId}`
const endOf = async (authSessionId: string) =>
  (await api.sql`select revoked_for from auth_sessions where id = ${authSessionId}`)[0]?.revokedFor

test('a refresh returns a new token set that works', async () => {
  const user = await api.given.user()
  const second = await refresh(user.refreshToken)
  expect(second.status).toBe(200)
  expect(second.headers.get('cache-control')).toBe('no-store')
  expect(second.body.refresh_token).not.toBe(user.refreshToken)
  expect(await isAlive(second.body.cp_access_jwt)).toBe(true)
  expect((await refresh(second.body.refresh_token)).status).toBe(200)
})

test('a refresh whose response was lost can be repeated, and only the newest token works', async () => {
  const user = await api.given.user()
  const lost = await refresh(user.refreshToken)
  const again = await refresh(user.refreshToken)
  expect([lost.status, again.status]).toEqual([200, 200])
  expect((await refresh(again.body.refresh_token)).status).toBe(200)
  expect(await endOf(user.authSessionId)).toBeNull()
})

test('use of the token from the lost response revokes the auth session', async () => {
  const user = await api.given.user()
  const lost = await refresh(user.refreshToken)
  const again = await refresh(user.refreshToken)
  const replayed = await refresh(lost.body.refresh_token)
  expect([replayed.status, replayed.body]).toMatchObject([401, { error: { code: 'invalid_refresh_token' } }])
  expect((await refresh(again.body.refresh_token)).status).toBe(401)
  expect(await isAlive(again.body.cp_access_jwt)).toBe(false)
  expect(await endOf(user.authSessionId)).toBe('token_reuse')
})

test('a replaced token whose successor was used revokes the auth session, even within the grace period', async () => {
  const user = await api.given.user()
  const second = await refresh(user.refreshToken)
  const third = await refresh(second.body.refresh_token)
  expect((await refresh(user.refreshToken)).status).toBe(401)
  expect((await refresh(third.body.refresh_token)).status).toBe(401)
  expect(await isAlive(user.bearer)).toBe(false)
})

test('a replaced token is accepted until 15 s after its first exchange', async () => {
  const user = await api.given.user()
  await refresh(user.refreshToken)
  await passTime(user.authSessionId, 10)
  expect((await refresh(user.refreshToken)).status).toBe(200)
  await passTime(user.authSessionId, 6)
  expect((await refresh(user.refreshToken)).status).toBe(401)
  expect(await endOf(user.authSessionId)).toBe('token_reuse')
})

test('a refresh token is valid for 30 days', async () => {
  const user = await api.given.user()
  await passTime(user.authSessionId, 30 * 86_400 - 60)
  const second = await refresh(user.refreshToken)
  expect(second.status).toBe(200)
  await passTime(user.authSessionId, 30 * 86_400)
  expect((await refresh(second.body.refresh_token)).status).toBe(401)
  expect(await endOf(user.authSessionId)).toBeNull()
})

test('fifty concurrent refreshes of one token at two processes leave one valid token', async () => {
  const user = await api.given.user()
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, round) => refresh(user.refreshToken, round % 2 ? replica : api)),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  const live = await api.sql`
    select encode(token_hash, 'hex') as hash from refresh_tokens
    where auth_session_id = ${user.authSessionId} and replaced_at is null and superseded_at is null`
  expect(live).toHaveLength(1)
  expect(await endOf(user.authSessionId)).toBeNull()
  const [newest] = answers.filter(({ body }) => hashOf(body.refresh_token) === live[0]?.hash)
  expect((await refresh(newest?.body.refresh_token, replica)).status).toBe(200)
})

test('a token replayed two generations later revokes the auth session for every process', async () => {
  const user = await api.given.user()
  const second = await refresh(user.refreshToken)
  const third = await refresh(second.body.refresh_token, replica)
  expect((await refresh(user.refreshToken)).status).toBe(401)
  for (const at of [api, replica]) {
    for (const token of [third, second]) expect((await refresh(token.body.refresh_token, at)).status).toBe(401)
    expect((await at.get('/auth/sessions', { bearer: third.body.cp_access_jwt })).status).toBe(401)
  }
  expect(await endOf(user.authSessionId)).toBe('token_reuse')
})

test('a refresh concurrent with a logout leaves no valid token', async () => {
  for (let round = 0; round < 50; round += 1) {
    const user = await api.given.user()
    const [refreshed, loggedOut] = await Promise.all([
      refresh(user.refreshToken, replica),
      api.post('/auth/logout', undefined, { bearer: user.bearer }),
    ])
    expect(loggedOut.status).toBe(204)
    expect([200, 401]).toContain(refreshed.status)
    if (refreshed.status !== 200) continue
    expect(await isAlive(refreshed.body.cp_access_jwt)).toBe(false)
    expect((await refresh(refreshed.body.refresh_token)).status).toBe(401)
  }
})

test('a disabled account cannot refresh', async () => {
  const user = await api.given.user()
  await api.sql`update users set disabled_at = now() where id = ${user.userId}`
  expect((await refresh(user.refreshToken)).status).toBe(401)
})

test.each(['', 'nonsense', 'a\0b', '\ud83d', 'x'.repeat(50_000)])(
  'text that is not a refresh token is refused',
  async (token) => {
    const answer = await refresh(token)
    expect([answer.status, answer.body]).toMatchObject([401, { error: { code: 'invalid_refresh_token' } }])
  },
)

test.each([undefined, null, 7, ['x']])('%j as a refresh token is a bad request', async (token) => {
  expect((await refresh(token)).status).toBe(400)
})

test('only the hash of a refresh token is stored', async () => {
  const user = await api.given.user()
  const [row] = await api.sql`
    select encode(sha256(${user.refreshToken}::bytea), 'hex') = encode(token_hash, 'hex') as hashed from refresh_tokens
    where auth_session_id = ${user.authSessionId}`
  expect(row?.hashed).toBe(true)
})

test('an access token issued more than a minute in the future is refused, also when it is sent again', async () => {
  const user = await api.given.user()
  const { jwt, apiUrl } = api.services.config
  const secret = new TextEncoder().encode(jwt.secret)
  const { kid = '' } = decodeProtectedHeader(user.bearer)
  const issuedAhead = (seconds: number) => {
    const iat = Math.floor(Date.now() / 1000) + seconds
    return new SignJWT({ uid: user.userId, sid: user.authSessionId })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid })
      .setIssuer(apiUrl)
      .setAudience('svc-api')
      .setSubject(user.userId)
      .setIssuedAt(iat)
      .setExpirationTime(iat + 720)
      .setJti(randomUUID())
      .sign(secret)
  }
  const early = await issuedAhead(120)
  expect([await isAlive(early), await isAlive(early)]).toEqual([false, false])
  const skewed = await issuedAhead(30)
  expect([await isAlive(skewed), await isAlive(skewed)]).toEqual([true, true])
})

test('a logout revokes only its own auth session, at once', async () => {
  const user = await api.given.user()
  const elsewhere = await api.given.signIn(user)
  expect((await api.post('/auth/logout', undefined, { bearer: user.bearer })).status).toBe(204)
  expect(await isAlive(user.bearer)).toBe(false)
  expect((await refresh(user.refreshToken)).status).toBe(401)
  expect(await isAlive(elsewhere.bearer)).toBe(true)
})

test('the list shows the auth sessions of the account and marks the current one', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS plugin')
  await api.given.user()
  await api.sql`update auth_sessions set last_used_at = now() - interval '1 day' where user_id = ${user.userId}`
  await refresh(plugin.refreshToken)
  const { body } = await api.get<Sessions>('/auth/sessions', { bearer: user.bearer })
  expect(body.sessions).toEqual([
    expect.objectContaining({ id: plugin.authSessionId, client: 'OBS plugin', current: false }),
    expect.objectContaining({ id: user.authSessionId, client: 'web', current: true, ip: '192.0.2.1' }),
  ])
  const [first] = body.sessions
  expect(Date.now() - Date.parse(first?.last_used_at ?? '')).toBeLessThan(60_000)
})

test('a user can revoke their own auth sessions, repeatedly, and no others', async () => {
  const user = await api.given.user()
  const lost = await api.given.signIn(user, 'a lost laptop')
  const otherUser = await api.given.user()
  const end = (id: string, bearer: string) => api.delete(`/auth/sessions/${id}`, { bearer })
  expect((await end(lost.authSessionId, otherUser.bearer)).status).toBe(404)
  expect((await end('00000000-0000-4000-8000-000000000000', user.bearer)).status).toBe(404)
  expect((await end('nonsense', user.bearer)).status).toBe(404)
  expect(await isAlive(lost.bearer)).toBe(true)
  expect((await end(lost.authSessionId, user.bearer)).status).toBe(204)
  expect((await end(lost.authSessionId, user.bearer)).status).toBe(204)
  expect(await isAlive(lost.bearer)).toBe(false)
  const { body } = await api.get<Sessions>('/auth/sessions', { bearer: user.bearer })
  expect(body.sessions.map(({ id }) => id)).toEqual([user.authSessionId])
})
