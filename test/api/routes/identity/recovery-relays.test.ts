/** Relays and stream token of an account that the owner of its address takes over from an attacker. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import type { SessionView } from '../../../../api/views/relay-session.ts'
import { lockUser } from '../../../../db/identity/users.ts'
import { findEndpoint, replaceEndpoint } from '../../../../db/notifications/endpoints.ts'
import { revokeAllAccess } from '../../../../db/transactions/secure-account.ts'
import { givePlan, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { waitForBlockedQuery } from '../../../support/locks.ts'
import { mailsTo } from '../../../support/mails.ts'
import { fetchUser, newProviderAccount } from '../../../support/oauth-api.ts'
import type { OAuthDouble } from '../../../support/oauth-double.ts'
import { startGoogle } from '../../../support/oauth-google.ts'
import { eventually, type RelayUser, startService, type TestService } from '../../../support/relays.ts'

const chosen = 'another good password'

let google: OAuthDouble
let service: TestService
beforeAll(async () => {
  google = await startGoogle()
  service = await startService({ variables: google.variables })
})

async function resetPassword(email: string): Promise<string> {
  await service.api.post('/auth/password/forgot', { email })
  const token = mailsTo(service.api, email).at(-1)?.token
  expect((await service.api.post('/auth/password/reset', { token, password: chosen })).status).toBe(204)
  const { body } = await service.api.post<TokenSet>('/auth/login', { email, password: chosen })
  return body.cp_access_jwt
}

async function confirmAddress({ email, bearer }: RelayUser): Promise<void> {
  await service.api.post('/auth/email/resend', undefined, { bearer })
  const token = mailsTo(service.api, email).findLast((mail) => mail.subject === 'verify_email')?.token
  expect((await service.api.post('/auth/email/verify', { token })).status).toBe(204)
}

/** Signs in at Google as the owner of this address. */
async function signInThroughGoogle(email: string): Promise<string> {
  const { body: begun } = await service.api.post<{ authorization_url: string; binding: string }>(
    '/auth/oauth/google/start',
    { intent: 'sign_in' },
  )
  google.account = newProviderAccount({ email })
  const callbackParams = await google.visit(begun.authorization_url)
  const { binding } = begun
  const { body } = await service.api.post<TokenSet>('/auth/oauth/google/callback', { ...callbackParams, binding })
  return body.cp_access_jwt
}

const streamTokenOf = async (bearer: string) => (await fetchUser(service.api, bearer)).stream_token

/** The system ends the session, and its relay with it. */
async function expectEnded({ session_id: id }: SessionView): Promise<void> {
  const { transitions } = await eventually(
    () => service.history(id),
    ({ session }) => session.state === 'stopped',
  )
  expect(transitions.at(-1)).toMatchObject({ to: 'stopped', reason: 'force_disconnected', initiator: 'system' })
  await eventually(
    () => service.relaysOf(id),
    (relays) => relays.length === 0,
  )
}

const startAs = (bearer: string) =>
  service.api.post<{ session: SessionView }>(
    '/relay/start',
    {},
    { bearer, headers: { 'Idempotency-Key': randomUUID() } },
  )

/** A new relay of the account is for the account's present stream token. */
async function expectNewRelay(bearer: string): Promise<void> {
  const started = await startAs(bearer)
  expect(started.status).toBe(201)
  const { session_id: id } = started.body.session
  const active = () =>
    service.api.get<{ sessions: SessionView[] }>('/relay/active', { bearer }).then(({ body }) => body.sessions)
  const [session] = await eventually(active, ([first]) => first?.session_id === id && first.state === 'active')
  expect(session?.connect?.srt_url).toMatch(new RegExp(`publish/live/${await streamTokenOf(bearer)}$`))
}

test('the first reset that proves the address ends live relays and replaces the stream token', async () => {
  const { user, session } = await service.activeRelay()
  const before = await streamTokenOf(user.bearer)
  const bearer = await resetPassword(user.email)
  expect(await streamTokenOf(bearer)).not.toBe(before)
  await expectEnded(session)
  await expectNewRelay(bearer)
})

test('the first reset that proves the address removes the endpoint for notifications, and a later one keeps it', async () => {
  const user = await service.user()
  const { sql, services } = service.api
  const save = () =>
    replaceEndpoint(sql, services.sealing, user.userId, { type: 'discord', url: 'https://discord.com/', secret: null })
  await save()
  await resetPassword(user.email)
  expect(await findEndpoint(sql, user.userId)).toBeUndefined()
  await save()
  await resetPassword(user.email)
  expect(await findEndpoint(sql, user.userId)).toMatchObject({ type: 'discord' })
})

test('the first reset that proves the address turns mails about payments on that the creator of the account turned off', async () => {
  const user = await service.user()
  const turnOff = (bearer: string) =>
    service.api.post(
      '/notifications/settings',
      { kind: 'payment_failed', channel: 'email', enabled: false },
      { bearer },
    )
  const isOn = async (bearer: string) => {
    const { body } = await service.api.get<{ kinds: { kind: string; email: boolean }[] }>('/notifications', { bearer })
    return body.kinds.find(({ kind }) => kind === 'payment_failed')?.email
  }
  expect((await turnOff(user.bearer)).status).toBe(204)
  const owner = await resetPassword(user.email)
  expect(await isOn(owner)).toBe(true)
  await turnOff(owner)
  expect(await isOn(await resetPassword(user.email))).toBe(false)
})

test('reclaiming an account through a provider ends live relays and replaces the stream token', async () => {
  const { user, session } = await service.activeRelay()
  const before = await streamTokenOf(user.bearer)
  const bearer = await signInThroughGoogle(user.email)
  expect((await fetchUser(service.api, bearer)).id).toBe(user.userId)
  expect(await streamTokenOf(bearer)).not.toBe(before)
  await expectEnded(session)
  await expectNewRelay(bearer)
})

test('verifying the address by mail keeps relays and stream token; the first reset replaces them', async () => {
  const { user, session } = await service.activeRelay()
  const before = await streamTokenOf(user.bearer)
  await confirmAddress(user)
  expect(await streamTokenOf(user.bearer)).toBe(before)
  expect((await user.active()).session).toMatchObject({ session_id: session.session_id, state: 'active' })
  const bearer = await resetPassword(user.email)
  expect(await streamTokenOf(bearer)).not.toBe(before)
  await expectEnded(session)
})

test.each([
  ['a reset', resetPassword],
  ['a reclaim through a provider', signInThroughGoogle],
])('an account taken over by %s keeps relay and stream token at later resets', async (_, own) => {
  const attacker = await service.api.given.user()
  await givePlan(service.api.sql, attacker.userId)
  const owner = await own(attacker.email)
  const { session } = (await startAs(owner)).body
  const before = await streamTokenOf(owner)
  const bearer = await resetPassword(attacker.email)
  expect(await streamTokenOf(bearer)).toBe(before)
  const { body } = await service.api.get<{ sessions: SessionView[] }>('/relay/active', { bearer })
  expect(body.sessions.map(({ session_id }) => session_id)).toEqual([session.session_id])
  const [row] = await service.api.sql`select command from relay_sessions where id = ${session.session_id}`
  expect(row).toEqual({ command: 'run' })
})

test('an account created through a provider that verified its address keeps both at its first reset', async () => {
  const { email } = newProviderAccount()
  const before = await streamTokenOf(await signInThroughGoogle(email ?? ''))
  expect(await streamTokenOf(await resetPassword(email ?? ''))).toBe(before)
})

test('a start whose auth session is revoked before it locks the account starts no relay', async () => {
  const user = await service.user()
  const { starting } = await service.api.sql.begin(async (tx) => {
    await lockUser(tx, user.userId)
    const starting = user.start()
    await waitForBlockedQuery(service.api.sql, tx)
    await revokeAllAccess(tx, user.userId, 'password_reset')
    return { starting }
  })
  expect(statusAndCode(await starting)).toEqual([401, 'unauthorized'])
  expect(await service.api.sql`select from relay_sessions where user_id = ${user.userId}`).toHaveLength(0)
})
