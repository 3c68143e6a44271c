/**
 * Keeps the tokens of connected chats alive: renewed before they end, and at least every hour, which is also how we learn
 * that a grant was withdrawn.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { audit } from '../../db/audit.ts'
import type { Database, Sql } from '../../db/connection.ts'
import {
  type ChatTokens,
  type DueChat,
  disconnectChat,
  dueChats,
  lockDueChat,
  type RenewedTokens,
  replaceTokens,
} from '../../db/provider-tokens.ts'
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
import type { Job } from './jobs.ts'

interface Needs {
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
  readonly providers: ReadonlyMap<OAuthProviderName, OAuthProvider>
}

const everySeconds = 300
/** So many at most are looked at in a round; who is left out has the same chance in the next. */
const roundMax = 1000
/** Refreshes under way at once; each holds a connection to Postgres while its provider is asked. */
const refreshesMax = 4
/** A provider that failed so often in a round is not asked again before the next one. */
const troublesMax = 10

export const providerTokenJobs = (needs: Needs): readonly Job[] => [
  {
    name: 'tend_provider_tokens',
    everySeconds,
    roundSecondsMax: 2 * everySeconds,
    run: (signal) => tendProviderTokens(needs, signal),
  },
]

async function tendProviderTokens(needs: Needs, signal?: AbortSignal): Promise<void> {
  const { sql, log, providers } = needs
  const until = Date.now() + everySeconds * 1000
  const limit = pLimit(refreshesMax)
  const troubles = new Map<OAuthProviderName, number>()
  const troublesOf = (provider: OAuthProviderName) => troubles.get(provider) ?? 0

  const tend = async ({ id, provider }: DueChat) => {
    if (signal?.aborted || Date.now() > until || troublesOf(provider) >= troublesMax) return
    try {
      await renewTokens(needs, id)
    } catch (error) {
      // All is left as it was, for the next round. A row that is broken in itself stops no other.
      if (error instanceof OAuthProviderError) troubles.set(provider, troublesOf(provider) + 1)
      log.warn({ err: error, provider, oauth_account_id: id }, 'the tokens of a chat could not be renewed yet')
    }
  }
  const due = await dueChats(sql, [...providers.keys()], roundMax)
  await Promise.all(due.map((chat) => limit(() => tend(chat))))
}

/**
 * The row stays locked while the provider is asked: two workers with one refresh token, and the slower one would take its
 * refusal for a withdrawn grant. Throws {@link OAuthProviderError}.
 */
async function renewTokens(needs: Needs, id: string): Promise<void> {
  const asked: { chat?: ChatTokens; answer?: Promise<RenewedTokens | 'denied'> } = {}
  try {
    await needs.sql.begin(async (tx) => {
      const chat = await lockDueChat(tx, id)
      const provider = chat && needs.providers.get(chat.provider)
      if (!provider) return
      const answer = tokensAnew(needs.sealing, provider, chat)
      Object.assign(asked, { chat, answer })
      const renewed = await answer
      if (renewed === 'denied') await endChat(tx, needs.log, chat)
      else await replaceTokens(tx, chat, renewed)
    })
  } catch (error) {
    // The transaction may have failed before the provider answered. The answer may hold a new refresh token that only we have.
    const [{ chat }, renewed] = [asked, await asked.answer]
    if (!chat || !renewed || renewed === 'denied') throw error
    await insist(() => replaceTokens(needs.sql, chat, renewed))
  }
}

async function tokensAnew(
  sealing: Sealing,
  provider: OAuthProvider,
  { userId, refreshTokenSealed }: ChatTokens,
): Promise<RenewedTokens | 'denied'> {
  // Nothing can keep such a grant alive, or tell whether it still holds.
  if (refreshTokenSealed === null) return 'denied'
  const place = (field: 'access_token' | 'refresh_token') => tokenPlace(userId, provider.name, field)
  const { text } = sealing.open(refreshTokenSealed, place('refresh_token'))
  const tokens = await refreshed(provider, text)
  if (tokens === 'denied') return tokens
  return {
    accessTokenSealed: sealing.seal(tokens.accessToken, place('access_token')),
    refreshTokenSealed: sealing.seal(tokens.refreshToken ?? text, place('refresh_token')),
    expiresAt: tokens.expiresAt,
  }
}

const refreshed = (provider: OAuthProvider, refreshToken: string): Promise<OAuthTokens | 'denied'> =>
  provider.refresh(refreshToken).catch((error: unknown) => {
    if (error instanceof OAuthDeniedError) return 'denied' as const
    throw error
  })

async function endChat(sql: Sql, log: Logger, { id, userId, provider }: ChatTokens): Promise<void> {
  await disconnectChat(sql, id)
  await audit(sql, { actor: 'system', action: 'chat_disconnected', userId, detail: { provider } })
  log.info({ user_id: userId, provider }, 'a chat is disconnected: its grant was withdrawn')
}

const insistingMillis = [100, 1000, 5000, 10_000]

/** For what is worth more than a lost connection to Postgres. */
async function insist(work: () => Promise<void>): Promise<void> {
  for (const millis of insistingMillis) {
    try {
      return await work()
    } catch {
      await sleep(millis)
    }
  }
  return work()
}
