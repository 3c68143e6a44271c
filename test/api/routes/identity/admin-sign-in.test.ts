/** Operator sessions: the token that is exchanged for the operator password, and what ends it. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { startApi, statusAndCode, type TestApi } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { operator, operatorPassword } from '../../../support/relays.ts'

const encryptionKey = randomBytes(32).toString('base64')
const variables = {
  SVC_OPERATOR_PASSWORD: operatorPassword,
  OAUTH_ENCRYPTION_KEY: encryptionKey,
  SVC_RATE_LIMITS: highLimits({ operator: 5 }),
}
const api = await startApi(variables)

interface SignedIn {
  operator_token: string
  expires_at: string
}

const signIn = async (at: TestApi = api, ip = '192.0.2.7') => {
  const reply = await at.post<SignedIn>('/admin/sign-in', {}, { headers: operator, ip })
  expect(reply.status).toBe(201)
  return { ...reply.body, headers: { Authorization: `Bearer ${reply.body.operator_token}` } }
}

let addresses = 0
/** A client address without wrong guesses. */
const freshAddress = () => `198.51.100.${++addresses}`

const open = async (headers: Record<string, string>, at: TestApi = api, ip = freshAddress()) =>
  statusAndCode(await at.get('/admin/jobs', { headers, ip }))

const ended = [401, 'invalid_operator']

test('the operator password is exchanged for a token that opens the routes of operators for an hour', async () => {
  const before = Date.now()
  const { headers, expires_at } = await signIn()
  const after = Date.now()
  // Whole seconds, as the times of a JWT.
  expect(Date.parse(expires_at)).toBeGreaterThan(before + 3_599_000)
  expect(Date.parse(expires_at)).toBeLessThanOrEqual(after + 3_601_000)
  expect((await api.get('/admin/jobs', { headers })).status).toBe(200)
  const [entry] =
    await api.sql`select action, ip from audit_entries where action = 'operator_signed_in' order by id desc`
  expect(entry).toMatchObject({ ip: '192.0.2.7' })
})

test('the reply with the token is not cached, and the token is stored as a hash only', async () => {
  const reply = await api.post<SignedIn>('/admin/sign-in', {}, { headers: operator })
  expect(reply.headers.get('cache-control')).toBe('no-store')
  const rows = await api.sql`select row_to_json(operator_sessions)::text as text from operator_sessions`
  for (const { text } of rows) {
    expect(text).not.toContain(reply.body.operator_token)
    expect(text).not.toContain(Buffer.from(reply.body.operator_token).toString('hex'))
    expect(text).not.toContain(operatorPassword)
  }
  expect(api.logged.join('')).not.toContain(reply.body.operator_token)
})

test('a wrong password gets no token and is audited', async () => {
  const headers = { Authorization: `Basic ${Buffer.from('operator:wrong').toString('base64')}` }
  const reply = await api.post('/admin/sign-in', {}, { headers, ip: '192.0.2.8' })
  expect(statusAndCode(reply)).toEqual(ended)
  const entries = await api.sql`select ip from audit_entries where action = 'operator_sign_in_failed'`
  expect(entries.map(({ ip }) => ip)).toContain('192.0.2.8')
})

test('wrong tokens are audited with their address, and counted in one entry a day', async () => {
  const ip = '192.0.2.9'
  for (const character of ['a', 'b', 'c'])
    expect(await open({ Authorization: `Bearer ${character.repeat(43)}` }, api, ip)).toEqual(ended)
  const entries = await api.sql`
    select initiator, user_id, detail, attempts from audit_entries where action = 'operator_sign_in_failed' and ip = ${ip}`
  expect(entries).toEqual([{ initiator: 'operator', userId: null, detail: { credential: 'token' }, attempts: 3 }])
})

test('a token cannot be exchanged for another one', async () => {
  const { headers } = await signIn()
  expect(statusAndCode(await api.post('/admin/sign-in', {}, { headers }))).toEqual(ended)
})

test('a sign-out ends its own session only, and is audited', async () => {
  const [first, second] = [await signIn(), await signIn()]
  expect((await api.post('/admin/sign-out', {}, { headers: first.headers })).status).toBe(204)
  expect(await open(first.headers)).toEqual(ended)
  expect((await api.get('/admin/jobs', { headers: second.headers })).status).toBe(200)
  expect(await api.sql`select from audit_entries where action = 'operator_signed_out'`).toHaveLength(1)
})

test('a session ends at its age, and after 15 minutes without use', async () => {
  const old = await signIn()
  await api.sql`update operator_sessions set expires_at = now()`
  expect(await open(old.headers)).toEqual(ended)
  const unused = await signIn()
  await api.sql`update operator_sessions set last_used_at = now() - interval '14 minutes'`
  expect((await api.get('/admin/jobs', { headers: unused.headers })).status).toBe(200)
  await api.sql`update operator_sessions set last_used_at = last_used_at - interval '14 minutes'`
  expect((await api.get('/admin/jobs', { headers: unused.headers })).status).toBe(200)
  await api.sql`update operator_sessions set last_used_at = now() - interval '15 minutes'`
  expect(await open(unused.headers)).toEqual(ended)
})

test('a request that no person caused does not prolong a session', async () => {
  const { headers } = await signIn()
  await api.sql`update operator_sessions set last_used_at = now() - interval '14 minutes'`
  const reply = await api.get('/admin/jobs', { headers: { ...headers, 'X-Unattended': 'true' } })
  expect(reply.status).toBe(200)
  await api.sql`update operator_sessions set last_used_at = last_used_at - interval '1 minute'`
  expect(await open(headers)).toEqual(ended)
})

/** Another api of the same database. */
const startReplica = (changed: Readonly<Record<string, string>>) =>
  startApi({ ...variables, DATABASE_URL: api.services.config.database.url, ...changed })

test('another operator password ends all sessions', async () => {
  const { headers } = await signIn()
  expect(await open(headers, await startReplica({ SVC_OPERATOR_PASSWORD: 'another password' }))).toEqual(ended)
  expect((await api.get('/admin/jobs', { headers })).status).toBe(200)
})

test('a rotation of the encryption key ends no session', async () => {
  const { headers } = await signIn()
  const keys = `new:${randomBytes(32).toString('base64')},${encryptionKey}`
  const rotated = await startReplica({ OAUTH_ENCRYPTION_KEY: keys })
  expect((await rotated.get('/admin/jobs', { headers })).status).toBe(200)
})

test('wrong tokens are limited like wrong passwords, and do not lock out right ones', async () => {
  const { headers } = await signIn(api, '192.0.2.30')
  const wrong = { Authorization: `Bearer ${'x'.repeat(43)}` }
  for (let index = 0; index < 5; index += 1) expect(await open(wrong, api, '192.0.2.30')).toEqual(ended)
  expect(await open(wrong, api, '192.0.2.30')).toEqual([429, 'rate_limited'])
  const signInAgain = await api.post('/admin/sign-in', {}, { headers: operator, ip: '192.0.2.30' })
  expect(statusAndCode(signInAgain)).toEqual([429, 'rate_limited'])
  expect((await api.get('/admin/jobs', { headers, ip: '192.0.2.30' })).status).toBe(200)
})

test('an access token of a user is no operator token', async () => {
  const user = await api.given.user()
  expect(await open({ Authorization: `Bearer ${user.bearer}` })).toEqual(ended)
})
