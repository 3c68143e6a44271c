/**
 * The job that refreshes the tokens of connected chats: before they expire, and at least every hour, which also shows
 * whether a grant was withdrawn.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { recordAuditEntry } from '../../db/audit.ts'
import type { Database, Sql } from '../../db/connection.ts'
import {
  type ChatTokens,
  type DueChat,
  disconnectChat,
  listDueChats,
  lockDueChat,
  type RenewedTokens,
  replaceTokens,
} from '../../db/identity/provider-tokens.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import {
  OAuthDeniedError,
  type OAuthProvider,
  OAuthProviderError,
  type OAuthProviderName,
  type OAuthTokens,
} from '../../providers/oauth/provider.ts'
import { tokenPlace } from '../../providers/oauth/tokens.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
  readonly providers: ReadonlyMap<OAuthProviderName, OAuthProvider>
}

const everySeconds = 300
/** Chats in one run. With more of them a random part is chosen. */
const chatsMax = 1000
/** Concurrent refreshes. Each holds a connection to Postgres during its call to the provider. */
const refreshesMax = 4
/** After so many failures a provider is not called again in the same run. */
const failuresMax = 10

export const providerTokenJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'tend_provider_tokens',
    everySeconds,
    runSecondsMax: 2 * everySeconds,
    run: (signal) => refreshDueChats(deps, signal),
  },
]

async function refreshDueChats(deps: Deps, signal?: AbortSignal): Promise<void> {
  const { sql, log, providers } = deps
  const until = Date.now() + everySeconds * 1000
  const failures = new Map<OAuthProviderName, number>()
  const failuresOf = (provider: OAuthProviderName) => failures.get(provider) ?? 0

  const refresh = async ({ id, provider }: DueChat) => {
    if (signal?.aborted || Date.now() > until || failuresOf(provider) >= failuresMax) return
    try {
      await refreshChat(deps, id)
    } catch (error) {
      // The chat stays as it is until the next run. A row that cannot be decrypted does not stop the others.
      if (error instanceof OAuthProviderError) failures.set(provider, failuresOf(provider) + 1)
      log.warn({ err: error, provider, oauth_account_id: id }, 'the tokens of a chat could not be refreshed')
    }
  }
  const due = await listDueChats(sql, [...providers.keys()], chatsMax)
  await pLimit(refreshesMax).map(due, refresh)
}

/**
 * Locks the row during the call to the provider: of two workers with the same refresh token, the slower one would take
 * its refusal for a withdrawn grant. Throws {@link OAuthProviderError}.
 */
async function refreshChat(deps: Deps, id: string): Promise<void> {
  const call: { chat?: ChatTokens; result?: Promise<RenewedTokens | 'denied'> } = {}
  try {
    await deps.sql.begin(async (tx) => {
      const chat = await lockDueChat(tx, id)
      const provider = chat && deps.providers.get(chat.provider)
      if (!provider) return
      const result = requestTokens(deps.sealing, provider, chat)
      Object.assign(call, { chat, result })
      const renewed = await result
      if (renewed === 'denied') await endChat(tx, deps.log, chat)
      else await replaceTokens(tx, chat, renewed)
    })
  } catch (error) {
    // The transaction may fail before the provider answers. The answer may contain a new refresh token that must not be
    // lost.
    const [{ chat }, renewed] = [call, await call.result]
    if (!chat || !renewed || renewed === 'denied') throw error
    await retry(() => replaceTokens(deps.sql, chat, renewed))
  }
}

async function requestTokens(
  sealing: Sealing,
  provider: OAuthProvider,
  { userId, refreshTokenSealed }: ChatTokens,
): Promise<RenewedTokens | 'denied'> {
  // Without a refresh token the grant can be neither kept alive nor checked.
  if (refreshTokenSealed === null) return 'denied'
  const place = (field: 'access_token' | 'refresh_token') => tokenPlace(userId, provider.name, field)
  const { text } = sealing.open(refreshTokenSealed, place('refresh_token'))
  const tokens = await refreshOrDenied(provider, text)
  if (tokens === 'denied') return tokens
  return {
    accessTokenSealed: sealing.seal(tokens.accessToken, place('access_token')),
    refreshTokenSealed: sealing.seal(tokens.refreshToken ?? text, place('refresh_token')),
    expiresAt: tokens.expiresAt,
  }
}

const refreshOrDenied = (provider: OAuthProvider, refreshToken: string): Promise<OAuthTokens | 'denied'> =>
  provider.refresh(refreshToken).catch((error: unknown) => {
    if (error instanceof OAuthDeniedError) return 'denied' as const
    throw error
  })

async function endChat(sql: Sql, log: Logger, { id, userId, provider }: ChatTokens): Promise<void> {
  await disconnectChat(sql, id)
  await recordAuditEntry(sql, { initiator: 'system', action: 'chat_disconnected', userId, detail: { provider } })
  log.info({ user_id: userId, provider }, 'a chat was disconnected because its grant was withdrawn')
}

const retryMillis = [100, 1000, 5000, 10_000]

/** Outlasts a short loss of the connection to Postgres. */
async function retry(work: () => Promise<void>): Promise<void> {
  for (const millis of retryMillis) {
    try {
      return await work()
    } catch {
      await sleep(millis)
    }
  }
  return work()
}
