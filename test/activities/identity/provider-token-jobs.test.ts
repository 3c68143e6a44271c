/** The job that refreshes the stored tokens of chats. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { providerTokenJobs } from '../../../activities/identity/provider-token-jobs.ts'
import { createLog } from '../../../platform/log.ts'
import { createSealing, type Sealing } from '../../../platform/sealing.ts'
import { type OAuthProvider, type OAuthProviderName, oauthProviderNames } from '../../../providers/oauth/provider.ts'
import { createOAuthProviders } from '../../../providers/oauth/providers.ts'
import { type TokenField, tokenPlace } from '../../../providers/oauth/tokens.ts'
import type { GivenUser } from '../../support/api.ts'
import { newProviderAccount, startOAuthApi } from '../../support/oauth-api.ts'
import { eventually } from '../../support/relays.ts'

const { api, providers: doubles, authorize } = await startOAuthApi()
const { config, sealing } = api.services
const real = createOAuthProviders(config.oauth)
const logged: string[] = []
const log = createLog('worker', 'debug', { write: (line) => void logged.push(line) })

interface Round {
  readonly sealing?: Sealing
  /** Wraps the provider. */
  readonly around?: (provider: OAuthProvider) => OAuthProvider
  readonly signal?: AbortSignal
}

/** Runs the job once. */
const round = async ({ around = (provider) => provider, signal, ...needs }: Round = {}): Promise<void> => {
  const providers = new Map([...real].map(([name, provider]) => [name, around(provider)]))
  const [job] = providerTokenJobs({ sql: api.sql, log, sealing, providers, ...needs })
  await job?.run(signal)
}

interface Chat extends GivenUser {
  readonly provider: OAuthProviderName
}

/** Creates a connected chat, by default one whose tokens are due. */
async function connectedChat(provider: OAuthProviderName, isDue = true): Promise<Chat> {
  const user = { ...(await api.given.user()), provider }
  const { body } = await authorize(provider, newProviderAccount(), {
    intent: 'link',
    scopes: 'chat',
    bearer: user.bearer,
  })
  expect(body).toEqual({ status: 'linked' })
  if (isDue) await makeDue(user)
  return user
}

const makeDue = ({ userId }: Chat) =>
  api.sql`update user_oauth_accounts set tokens_checked_at = now() - interval '1 hour' where user_id = ${userId}`

interface Row {
  readonly accessTokenSealed: string
  readonly refreshTokenSealed: string
  readonly tokenExpiresAt: Date
  readonly chatConnectedAt: Date | null
  readonly tokensCheckedAt: Date
}

async function rowOf({ userId, provider }: Chat): Promise<Row> {
  const [row] = await api.sql<Row[]>`
    select access_token_sealed, refresh_token_sealed, token_expires_at, chat_connected_at, tokens_checked_at
    from user_oauth_accounts where user_id = ${userId} and provider = ${provider}`
  if (!row) throw new Error('the identity is gone')
  return row
}

/** Decrypts a token. */
const opened = ({ userId, provider }: Chat, field: TokenField, row: Row, by = sealing) =>
  by.open(
    row[field === 'access_token' ? 'accessTokenSealed' : 'refreshTokenSealed'],
    tokenPlace(userId, provider, field),
  )

const auditOf = ({ userId }: Chat) => api.sql`
  select initiator, action, detail from audit_entries where user_id = ${userId} and action like 'chat_%' order by id`

test.each(oauthProviderNames)('the tokens of a %s chat are refreshed after an hour', async (provider) => {
  const chat = await connectedChat(provider)
  const before = await rowOf(chat)
  await round()
  const after = await rowOf(chat)
  const issued = doubles[provider].issuedTokens.at(-1)
  expect(opened(chat, 'access_token', after).text).toBe(issued?.accessToken)
  expect(opened(chat, 'access_token', before).text).not.toBe(issued?.accessToken)
  if (issued?.refreshToken) expect(opened(chat, 'refresh_token', after).text).toBe(issued.refreshToken)
  expect(after.chatConnectedAt).toEqual(before.chatConnectedAt)
  expect(after.tokensCheckedAt.getTime()).toBeGreaterThan(Date.now() - 60_000)
  expect(after.tokenExpiresAt.getTime()).toBeGreaterThan(Date.now() + 3_000_000)
})

test('the tokens of a chat are refreshed 15 minutes before they expire', async () => {
  const soon = await connectedChat('google', false)
  const later = await connectedChat('google', false)
  const [ends, endsLater] = [new Date(Date.now() + 14 * 60_000), new Date(Date.now() + 16 * 60_000)]
  await api.sql`update user_oauth_accounts set token_expires_at = ${ends} where user_id = ${soon.userId}`
  await api.sql`update user_oauth_accounts set token_expires_at = ${endsLater} where user_id = ${later.userId}`
  await round()
  expect((await rowOf(soon)).tokenExpiresAt.getTime()).toBeGreaterThan(ends.getTime())
  expect((await rowOf(later)).tokenExpiresAt).toEqual(endsLater)
})

test('tokens that are not due are not refreshed, and neither are identities without a chat', async () => {
  const fresh = await connectedChat('twitch', false)
  const unconnected = { ...(await api.given.user()), provider: 'discord' as const }
  await authorize('discord', newProviderAccount(), { intent: 'link', bearer: unconnected.bearer })
  await makeDue(unconnected)
  const before = await Promise.all([rowOf(fresh), rowOf(unconnected)])
  await round()
  expect(await Promise.all([rowOf(fresh), rowOf(unconnected)])).toEqual(before)
})

test('refreshed tokens are sealed with the new key', async () => {
  const chat = await connectedChat('twitch')
  const added = { id: 'new', key: randomBytes(32).toString('base64') }
  await round({ sealing: createSealing([added, ...config.oauthEncryptionKeys]) })
  const [row, onlyNew] = [await rowOf(chat), createSealing([added])]
  const issued = doubles.twitch.issuedTokens.at(-1)
  expect(opened(chat, 'access_token', row, onlyNew)).toEqual({ text: issued?.accessToken, isStale: false })
  expect(opened(chat, 'refresh_token', row, onlyNew)).toEqual({ text: issued?.refreshToken, isStale: false })
})

test.each(oauthProviderNames)(
  'a grant that was withdrawn at %s disconnects the chat and writes an audit entry',
  async (provider) => {
    const chat = await connectedChat(provider)
    await doubles[provider].withdrawGrants()
    await round()
    expect(await rowOf(chat)).toMatchObject({
      chatConnectedAt: null,
      accessTokenSealed: null,
      refreshTokenSealed: null,
      tokenExpiresAt: null,
    })
    expect(await auditOf(chat)).toMatchObject([
      { initiator: 'system', action: 'chat_disconnected', detail: { provider } },
    ])
    await round()
    expect(await auditOf(chat)).toHaveLength(1)
  },
)

test('a failing provider changes nothing, and the next run refreshes the tokens', async () => {
  const chat = await connectedChat('discord')
  const before = await rowOf(chat)
  doubles.discord.failWith('status 500')
  await round()
  expect(await rowOf(chat)).toEqual(before)
  expect(await auditOf(chat)).toEqual([])
  doubles.discord.recover()
  await round()
  expect((await rowOf(chat)).accessTokenSealed).not.toBe(before.accessTokenSealed)
})

test('a provider that fails repeatedly is skipped until the next run, and does not delay others', async () => {
  const chats: Chat[] = []
  for (let count = 0; count < 20; count += 1) chats.push(await connectedChat('discord'))
  const other = await connectedChat('twitch')
  const before = await rowOf(other)
  doubles.discord.failWith('status 500')
  const requestsBefore = doubles.discord.requestCount('token')
  await round()
  doubles.discord.recover()
  expect(doubles.discord.requestCount('token') - requestsBefore).toBeLessThan(chats.length)
  expect((await rowOf(other)).accessTokenSealed).not.toBe(before.accessTokenSealed)
  await round()
  for (const chat of chats) expect((await rowOf(chat)).tokensCheckedAt.getTime()).toBeGreaterThan(Date.now() - 60_000)
})

test('a row that no key decrypts does not stop the others, and is logged', async () => {
  const [broken, well] = [await connectedChat('twitch'), await connectedChat('twitch')]
  const gone = createSealing([{ id: 'gone', key: randomBytes(32).toString('base64') }])
  const sealed = gone.seal('token', tokenPlace(broken.userId, 'twitch', 'refresh_token'))
  await api.sql`update user_oauth_accounts set refresh_token_sealed = ${sealed} where user_id = ${broken.userId}`
  const before = await rowOf(well)
  await round()
  expect((await rowOf(well)).accessTokenSealed).not.toBe(before.accessTokenSealed)
  expect(await rowOf(broken)).toMatchObject({ refreshTokenSealed: sealed, chatConnectedAt: expect.any(Date) })
  expect(logged.join('')).toContain('sealed with the key gone')
  await api.sql`delete from user_oauth_accounts where user_id = ${broken.userId}`
})

test('of concurrent runs one uses the refresh token, and no chat is disconnected', async () => {
  const chat = await connectedChat('discord')
  const issued = doubles.discord.issuedTokens.length
  await Promise.all(Array.from({ length: 5 }, () => round()))
  expect(doubles.discord.issuedTokens.length).toBe(issued + 1)
  const row = await rowOf(chat)
  expect(opened(chat, 'refresh_token', row).text).toBe(doubles.discord.issuedTokens.at(-1)?.refreshToken)
  expect(await auditOf(chat)).toEqual([])
})

/** Terminates all transactions that wait for a provider, as a restart of Postgres does. */
const loseTransactions = () =>
  eventually(
    () => api.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction'`,
    (lost) => lost.length === 0,
  )

test.each(['before', 'after'])(
  'a new refresh token is kept even when the connection to Postgres is lost %s it comes',
  async (when) => {
    const chat = await connectedChat('discord')
    const losing = (provider: OAuthProvider): OAuthProvider => ({
      ...provider,
      refresh: async (refreshToken) => {
        if (when === 'before') await loseTransactions()
        const tokens = await provider.refresh(refreshToken)
        if (when === 'after') await loseTransactions()
        return tokens
      },
    })
    const issued = doubles.discord.issuedTokens.length
    await round({ around: losing })
    expect(doubles.discord.issuedTokens.length).toBe(issued + 1)
    const row = await rowOf(chat)
    expect(opened(chat, 'refresh_token', row).text).toBe(doubles.discord.issuedTokens.at(-1)?.refreshToken)
    expect(row.chatConnectedAt).not.toBeNull()
  },
)

test('a stopping worker starts no further refreshes', async () => {
  const chat = await connectedChat('twitch')
  const before = await rowOf(chat)
  await round({ signal: AbortSignal.abort() })
  expect(await rowOf(chat)).toEqual(before)
})

test('neither the log nor the audit entries contain a token', async () => {
  const [renewed, withdrawn] = [await connectedChat('twitch'), await connectedChat('google')]
  await doubles.google.withdrawGrants()
  await round()
  await makeDue(renewed)
  doubles.twitch.failWith('status 500')
  await round()
  doubles.twitch.recover()
  const entries = await api.sql`select action, detail from audit_entries where user_id = ${withdrawn.userId}`
  const output = logged.join('') + JSON.stringify(entries)
  for (const event of ['chat_disconnected', 'a chat was disconnected', 'twitch answered 500'])
    expect(output).toContain(event)
  const tokens = Object.values(doubles).flatMap(({ issuedTokens }) =>
    issuedTokens.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken ?? []].flat()),
  )
  expect(tokens.length).toBeGreaterThanOrEqual(5)
  expect(tokens.filter((token) => output.includes(token))).toEqual([])
})
