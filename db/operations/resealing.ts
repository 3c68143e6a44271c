/**
 * Secrets of a previous key, to encrypt again with the current one.
 * Pages start after an id, so that a row which cannot be decrypted is skipped. Each write compares with the value that
 * was read: a value that changed in the meantime is kept.
 */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import type { Sql } from '../connection.ts'
import type { SealedToken, StoredPlayKey, StoredSessionTokens, StoredStreamToken } from '../sealed-tokens.ts'

export interface Page {
  /** The current key. Rows with another key are listed. */
  readonly keyId: string
  readonly afterId: string
  readonly rowsMax: number
}

/** Sealed text is `v1.<key id>.…`. Null for a null column. */
const hasOtherKey = (sql: Sql, column: string, keyId: string) => sql`split_part(${sql(column)}, '.', 2) <> ${keyId}`

export type StaleStreamToken = StoredStreamToken & { id: string }

export const listStaleStreamTokens = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<StaleStreamToken[]> =>
  sql<StaleStreamToken[]>`
    select id, stream_token_sealed from users
    where id > ${afterId} and ${hasOtherKey(sql, 'stream_token_sealed', keyId)}
    order by id limit ${rowsMax}`

export const replaceStreamToken = async (sql: Sql, read: StaleStreamToken, token: SealedToken): Promise<void> => {
  await sql`
    update users set stream_token_sealed = ${token.sealed}, stream_token_hash = ${token.hash}
    where id = ${read.id} and stream_token_sealed = ${read.streamTokenSealed}`
}

export const listStalePlayKeys = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<StoredPlayKey[]> =>
  sql<StoredPlayKey[]>`
    select id, key_sealed from play_keys
    where id > ${afterId} and ${hasOtherKey(sql, 'key_sealed', keyId)} order by id limit ${rowsMax}`

export const replacePlayKey = async (sql: Sql, read: StoredPlayKey, keySealed: string): Promise<void> => {
  await sql`update play_keys set key_sealed = ${keySealed} where id = ${read.id} and key_sealed = ${read.keySealed}`
}

export const listStaleSessionTokens = async (
  sql: Sql,
  { keyId, afterId, rowsMax }: Page,
): Promise<StoredSessionTokens[]> =>
  sql<StoredSessionTokens[]>`
    select id, pair_token_sealed, relay_ws_token_sealed from relay_sessions
    where state <> 'stopped' and id > ${afterId} and (${hasOtherKey(sql, 'pair_token_sealed', keyId)}
      or ${hasOtherKey(sql, 'relay_ws_token_sealed', keyId)})
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
    update relay_sessions set
      pair_token_sealed = ${pairToken?.sealed ?? null}, pair_token_hash = ${pairToken?.hash ?? null},
      relay_ws_token_sealed = ${relayWsToken?.sealed ?? null}, relay_ws_token_hash = ${relayWsToken?.hash ?? null}
    where id = ${read.id} and state <> 'stopped' and pair_token_sealed is not distinct from ${read.pairTokenSealed}
      and relay_ws_token_sealed is not distinct from ${read.relayWsTokenSealed}`
}

export interface StaleProviderTokens {
  readonly id: string
  readonly userId: string
  readonly provider: OAuthProviderName
  readonly accessTokenSealed: string | null
  readonly refreshTokenSealed: string | null
}

export const listStaleProviderTokens = async (
  sql: Sql,
  { keyId, afterId, rowsMax }: Page,
): Promise<StaleProviderTokens[]> =>
  sql<StaleProviderTokens[]>`
    select id, user_id, provider, access_token_sealed,
      refresh_token_sealed
    from user_oauth_accounts
    where id > ${afterId} and (${hasOtherKey(sql, 'access_token_sealed', keyId)}
      or ${hasOtherKey(sql, 'refresh_token_sealed', keyId)})
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

export interface StaleRevocation {
  readonly id: string
  readonly userId: string
  readonly provider: OAuthProviderName
  readonly field: 'access_token' | 'refresh_token'
  readonly tokenSealed: string
}

export const listStaleRevocations = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<StaleRevocation[]> =>
  sql<StaleRevocation[]>`
    select id, provider, user_id, field, token_sealed from provider_token_revocations
    where id > ${afterId} and ${hasOtherKey(sql, 'token_sealed', keyId)} order by id limit ${rowsMax}`

export const replaceRevocation = async (sql: Sql, { id }: StaleRevocation, tokenSealed: string): Promise<void> => {
  await sql`update provider_token_revocations set token_sealed = ${tokenSealed} where id = ${id}`
}

export interface StaleMessage {
  readonly id: string
  readonly content: Buffer
}

export const listStaleMessages = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<StaleMessage[]> =>
  sql<StaleMessage[]>`
    select id, content from outbox_messages
    where id > ${afterId} and split_part(convert_from(content, 'utf8'), '.', 2) <> ${keyId} order by id limit ${rowsMax}`

export const replaceMessageContent = async (
  sql: Sql,
  { id, content }: StaleMessage,
  resealed: Buffer,
): Promise<void> => {
  await sql`update outbox_messages set content = ${resealed} where id = ${id} and content = ${content}`
}

export interface StaleEndpoint {
  readonly id: string
  readonly urlSealed: string
  readonly secretSealed: string | null
}

export const listStaleEndpoints = async (sql: Sql, { keyId, afterId, rowsMax }: Page): Promise<StaleEndpoint[]> =>
  sql<StaleEndpoint[]>`
    select id, url_sealed, secret_sealed from notification_endpoints
    where id > ${afterId} and (${hasOtherKey(sql, 'url_sealed', keyId)} or ${hasOtherKey(sql, 'secret_sealed', keyId)})
    order by id limit ${rowsMax}`

export const replaceSealedEndpoint = async (
  sql: Sql,
  read: StaleEndpoint,
  { urlSealed, secretSealed }: Omit<StaleEndpoint, 'id'>,
): Promise<void> => {
  await sql`
    update notification_endpoints set url_sealed = ${urlSealed}, secret_sealed = ${secretSealed}
    where id = ${read.id} and url_sealed = ${read.urlSealed} and secret_sealed is not distinct from ${read.secretSealed}`
}
