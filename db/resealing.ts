/**
 * Secrets that have to be sealed again: with a key that is being replaced, or in plain text as an older version wrote them.
 * Each page begins after an id, so that a row which can't be opened is passed by. Each write names what was read: a value that
 * was replaced meanwhile is left alone.
 */
import type { Sql } from './connection.ts'
import type { Provider } from './oauth-accounts.ts'
import type { Revocation } from './provider-token-revocations.ts'
import type { SealedToken, StoredSessionTokens, StoredStreamToken } from './sealed-tokens.ts'

/** Which rows: of one key, from an id on, so many at most. */
export interface Page {
  /** Of the key that seals now. */
  readonly keyId: string
  readonly afterId: string
  readonly rowsMax: number
}

/** The key's id stands behind the first dot. Nothing sealed is not sealed with another key. */
const isOfOtherKey = (sql: Sql, column: string, keyId: string) => sql`split_part(${sql(column)}, '.', 2) <> ${keyId}`

export type StaleStreamToken = StoredStreamToken & { id: string }

export const staleStreamTokens = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<StaleStreamToken[]> =>
  sql<StaleStreamToken[]>`
    select id, stream_token, stream_token_sealed from users
    where id > ${afterId} and (stream_token is not null or ${isOfOtherKey(sql, 'stream_token_sealed', keyId)})
    order by id limit ${rowsMax}`

export const replaceStreamToken = async (sql: Sql, read: StaleStreamToken, token: SealedToken): Promise<void> => {
  await sql`
    update users set stream_token = null, stream_token_sealed = ${token.sealed}, stream_token_hash = ${token.hash}
    where id = ${read.id} and stream_token is not distinct from ${read.streamToken}
      and stream_token_sealed is not distinct from ${read.streamTokenSealed}`
}

export const staleSessionTokens = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<StoredSessionTokens[]> =>
  sql<StoredSessionTokens[]>`
    select id, pair_token, pair_token_sealed, relay_ws_token, relay_ws_token_sealed from relay_sessions
    where state <> 'stopped' and id > ${afterId} and (pair_token is not null or relay_ws_token is not null
      or ${isOfOtherKey(sql, 'pair_token_sealed', keyId)} or ${isOfOtherKey(sql, 'relay_ws_token_sealed', keyId)})
    order by id limit ${rowsMax}`

interface SealedSessionTokens {
  readonly pairToken: SealedToken | null
  readonly relayWsToken: SealedToken | null
}

export const replaceSessionTokens = async (
  sql: Sql,
  read: StoredSessionTokens,
  { pairToken, relayWsToken }: SealedSessionTokens,
): Promise<void> => {
  await sql`
    update relay_sessions set pair_token = null, relay_ws_token = null,
      pair_token_sealed = ${pairToken?.sealed ?? null}, pair_token_hash = ${pairToken?.hash ?? null},
      relay_ws_token_sealed = ${relayWsToken?.sealed ?? null}, relay_ws_token_hash = ${relayWsToken?.hash ?? null}
    where id = ${read.id} and state <> 'stopped' and pair_token is not distinct from ${read.pairToken}
      and pair_token_sealed is not distinct from ${read.pairTokenSealed}
      and relay_ws_token is not distinct from ${read.relayWsToken}
      and relay_ws_token_sealed is not distinct from ${read.relayWsTokenSealed}`
}

export interface StaleProviderTokens {
  readonly id: string
  readonly userId: string
  readonly provider: Provider
  readonly accessTokenSealed: string | null
  readonly refreshTokenSealed: string | null
}

export const staleProviderTokens = async (
  sql: Sql,
  { keyId, afterId, rowsMax }: Page,
): Promise<StaleProviderTokens[]> =>
  sql<StaleProviderTokens[]>`
    select id, user_id, provider, access_token_sealed,
      refresh_token_sealed
    from user_oauth_accounts
    where id > ${afterId} and (${isOfOtherKey(sql, 'access_token_sealed', keyId)}
      or ${isOfOtherKey(sql, 'refresh_token_sealed', keyId)})
    order by id limit ${rowsMax}`

type SealedProviderTokens = Pick<StaleProviderTokens, 'accessTokenSealed' | 'refreshTokenSealed'>

export const replaceSealedProviderTokens = async (
  sql: Sql,
  read: StaleProviderTokens,
  resealed: SealedProviderTokens,
): Promise<void> => {
  await sql`
    update user_oauth_accounts set access_token_sealed = ${resealed.accessTokenSealed},
      refresh_token_sealed = ${resealed.refreshTokenSealed}
    where id = ${read.id} and access_token_sealed is not distinct from ${read.accessTokenSealed}
      and refresh_token_sealed is not distinct from ${read.refreshTokenSealed}`
}

export const staleRevocations = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<Revocation[]> =>
  sql<Revocation[]>`
    select id, provider, user_id, field, token_sealed from provider_token_revocations
    where id > ${afterId} and ${isOfOtherKey(sql, 'token_sealed', keyId)} order by id limit ${rowsMax}`

export const replaceRevocation = async (sql: Sql, { id }: Revocation, tokenSealed: string): Promise<void> => {
  await sql`update provider_token_revocations set token_sealed = ${tokenSealed} where id = ${id}`
}
