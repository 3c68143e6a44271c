/** The job that revokes tokens at their provider after an identity was unlinked. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { providerTokenRevocationJobs } from '../../../activities/identity/provider-token-revocation-jobs.ts'
import { secretJobs } from '../../../activities/worker/secret-jobs.ts'
import { createLog } from '../../../platform/log.ts'
import { createSealing, type Sealing } from '../../../platform/sealing.ts'
import { OAuthDeniedError, type OAuthProviderName, oauthProviderNames } from '../../../providers/oauth/provider.ts'
import { createOAuthProviders } from '../../../providers/oauth/providers.ts'
import type { GivenUser } from '../../support/api.ts'
import { mailsTo } from '../../support/mails.ts'
import { newProviderAccount, startOAuthApi } from '../../support/oauth-api.ts'
import type { DoubleAccount } from '../../support/oauth-double.ts'

const { api, providers: doubles, authorize } = await startOAuthApi()
const { config, sealing } = api.services
const providers = createOAuthProviders(config.oauth)
const logged: string[] = []
const log = createLog('worker', 'debug', { write: (line) => void logged.push(line) })

/** Runs the job once, as a newly started worker does. */
const round = async (by: Sealing = sealing, signal?: AbortSignal): Promise<void> => {
  const [job] = providerTokenRevocationJobs({ sql: api.sql, log, sealing: by, providers })
  await job?.run(signal)
}

interface Chat {
  readonly user: GivenUser
  readonly person: DoubleAccount
  readonly accessToken: string
  readonly refreshToken: string
}

async function connectedChat(name: OAuthProviderName, person = newProviderAccount(), given?: GivenUser): Promise<Chat> {
  const user = given ?? (await api.given.user())
  const { body } = await authorize(name, person, { intent: 'link', scopes: 'chat', bearer: user.bearer })
  expect(body).toEqual({ status: 'linked' })
  const { accessToken, refreshToken = '' } = doubles[name].issuedTokens.at(-1) ?? { accessToken: '' }
  return { user, person, accessToken, refreshToken }
}

const unlink = async (name: OAuthProviderName, { user }: Chat) =>
  expect((await api.delete(`/auth/oauth/${name}`, { bearer: user.bearer })).status).toBe(204)
const queued = async () => (await api.sql`select from provider_token_revocations`).length
/** Whether the provider still accepts the chat's tokens. */
const isTaken = (name: OAuthProviderName, { refreshToken }: Chat): Promise<boolean> =>
  (providers.get(name)?.refresh(refreshToken) ?? Promise.reject(new Error('not configured'))).then(
    () => true,
    (error: unknown) => {
      if (error instanceof OAuthDeniedError) return false
      throw error
    },
  )
const pass = (seconds: number) => api.sql`
  update provider_token_revocations set next_attempt_at = next_attempt_at - make_interval(secs => ${seconds}),
    created_at = created_at - make_interval(secs => ${seconds})`

test.each(oauthProviderNames)('unlinking a %s chat revokes its tokens at the provider', async (name) => {
  const chat = await connectedChat(name)
  const requestsBefore = doubles[name].requestCount('revocation')
  await unlink(name, chat)
  await round()
  expect(doubles[name].requestCount('revocation')).toBe(requestsBefore + 2)
  // At Twitch a revocation ends only the access token.
  if (name !== 'twitch') expect(await isTaken(name, chat)).toBe(false)
  expect(await queued()).toBe(0)
  await round()
  expect(doubles[name].requestCount('revocation')).toBe(requestsBefore + 2)
})

test('unlinking an identity without a chat revokes nothing', async () => {
  const { bearer } = await api.given.user()
  await authorize('google', newProviderAccount(), { intent: 'link', bearer })
  const requestsBefore = doubles.google.requestCount('revocation')
  expect((await api.delete('/auth/oauth/google', { bearer })).status).toBe(204)
  await round()
  expect([await queued(), doubles.google.requestCount('revocation')]).toEqual([0, requestsBefore])
})

test('reclaiming an account revokes the tokens of the chat that another person connected', async () => {
  const chat = await connectedChat('discord')
  expect((await authorize('google', newProviderAccount({ email: chat.user.email }))).body.status).toBe('signed_in')
  await round()
  expect(await isTaken('discord', chat)).toBe(false)
})

test('a password reset revokes the tokens of the chats that it unlinks, and of no others', async () => {
  const user = await api.given.user()
  const dropped = await connectedChat('discord', newProviderAccount(), user)
  const kept = await connectedChat('google', newProviderAccount({ email: user.email }), user)
  await api.post('/auth/password/forgot', { email: user.email })
  const token = mailsTo(api, user.email).at(-1)?.token
  expect((await api.post('/auth/password/reset', { token, password: 'another good password' })).status).toBe(204)
  await round()
  expect([await isTaken('discord', dropped), await isTaken('google', kept)]).toEqual([false, true])
})

test('revocation is retried with backoff while the provider is unavailable', async () => {
  const chat = await connectedChat('discord')
  doubles.discord.failWith('status 500', 'revocation')
  await unlink('discord', chat)
  const countRequests = () => doubles.discord.requestCount('revocation')
  const before = countRequests()
  await round()
  expect(countRequests()).toBe(before + 2)
  await round()
  expect(countRequests()).toBe(before + 2)
  for (const seconds of [10, 20, 40]) {
    await pass(seconds - 5)
    await round()
    const unchanged = countRequests()
    await pass(5)
    await round()
    expect(countRequests()).toBe(unchanged + 2)
  }
  doubles.discord.recover()
  expect(await isTaken('discord', { ...chat })).toBe(true)
  const issued = doubles.discord.issuedTokens.at(-1)?.refreshToken ?? ''
  await pass(3600)
  await round()
  expect(await queued()).toBe(0)
  expect(await isTaken('discord', { ...chat, refreshToken: issued })).toBe(false)
})

test('tokens that cannot be revoked within a day are deleted, with a log entry', async () => {
  const chat = await connectedChat('google')
  doubles.google.failWith('status 500', 'revocation')
  await unlink('google', chat)
  await pass(86_390)
  await round()
  expect(await queued()).toBe(2)
  await pass(3600)
  await round()
  doubles.google.recover()
  expect(await queued()).toBe(0)
  expect(logged.join('')).toContain('could not be revoked within a day')
})

test('a chat that is connected again in the meantime keeps its new tokens', async () => {
  const first = await connectedChat('discord')
  doubles.discord.failWith('status 500', 'revocation')
  await unlink('discord', first)
  await round()
  doubles.discord.recover()
  const again = await connectedChat('discord', first.person)
  await pass(3600)
  await round()
  expect(await queued()).toBe(0)
  expect(await isTaken('discord', again)).toBe(true)
})

test('queued tokens are sealed, and sealed again with the new key during a rotation', async () => {
  const chat = await connectedChat('google')
  await unlink('google', chat)
  const rows = async () => JSON.stringify(await api.sql`select * from provider_token_revocations`)
  for (const token of [chat.accessToken, chat.refreshToken]) expect(await rows()).not.toContain(token)
  const added = { id: 'new', key: randomBytes(32).toString('base64') }
  const rotating = createSealing([added, ...config.oauthEncryptionKeys])
  const [job] = secretJobs({ sql: api.sql, log, sealing: rotating })
  await job?.run()
  await round(createSealing([added]))
  expect([await queued(), await isTaken('google', chat)]).toEqual([0, false])
})

test('a row that no key decrypts does not stop the others', async () => {
  const broken = await connectedChat('google')
  await unlink('google', broken)
  await api.sql`update provider_token_revocations set token_sealed = 'v1.gone.AAAA.AAAA.AAAA'`
  const well = await connectedChat('discord')
  await unlink('discord', well)
  await round()
  expect(await isTaken('discord', well)).toBe(false)
  expect(await queued()).toBe(2)
  await api.sql`delete from provider_token_revocations`
})

test('a stopping worker starts no further revocations, and the next worker continues', async () => {
  const chat = await connectedChat('google')
  await unlink('google', chat)
  await round(sealing, AbortSignal.abort())
  expect([await queued(), await isTaken('google', chat)]).toEqual([2, true])
  await round()
  expect([await queued(), await isTaken('google', chat)]).toEqual([0, false])
})

test('the log contains no token', () => {
  const tokens = Object.values(doubles).flatMap(({ issuedTokens }) =>
    issuedTokens.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken ?? []].flat()),
  )
  expect(tokens.length).toBeGreaterThan(20)
  expect(logged.length).toBeGreaterThan(5)
  expect(tokens.filter((token) => logged.join('').includes(token))).toEqual([])
})
