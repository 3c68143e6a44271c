/** Renewal of the provider tokens of connected chats. The tokens stay encrypted in this module. */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import { first, type Sql } from '../connection.ts'

/** A token is renewed this long before it expires. */
const renewalLeadMinutes = 15
/** Twitch requires an hourly validation of the grant. One more job interval would exceed the hour. */
const uncheckedMinutesMax = 54

const isDue = (sql: Sql) => sql`
  chat_connected_at is not null
    and (token_expires_at < now() + make_interval(mins => ${renewalLeadMinutes})
      or tokens_checked_at < now() - make_interval(mins => ${uncheckedMinutesMax}))`

export interface DueChat {
  readonly id: string
  readonly provider: OAuthProviderName
}

/**
 * Connected chats whose tokens are due for renewal or validation. In random order, so that chats which fail repeatedly
 * do not delay the same others each time.
 */
export const listDueChats = async (
  sql: Sql,
  providers: readonly OAuthProviderName[],
  rowsMax: number,
): Promise<DueChat[]> =>
  sql<DueChat[]>`
    select id, provider from user_oauth_accounts
    where provider = any(${providers as OAuthProviderName[]}::text[]) and ${isDue(sql)}
    order by random() limit ${rowsMax}`

export interface ChatTokens extends DueChat {
  readonly userId: string
  readonly refreshTokenSealed: string | null
  /** As text: a `Date` would lose the microseconds. */
  readonly chatConnectedAt: string
}

/**
 * Locks a due chat until the transaction ends. Undefined if another transaction has locked it or it is no longer due.
 */
export const lockDueChat = async (sql: Sql, id: string): Promise<ChatTokens | undefined> =>
  first(sql<ChatTokens[]>`
    select id, provider, user_id, refresh_token_sealed,
      chat_connected_at::text as chat_connected_at from user_oauth_accounts
    where id = ${id} and ${isDue(sql)} for update skip locked`)

export interface RenewedTokens {
  readonly accessTokenSealed: string
  readonly refreshTokenSealed: string
  readonly expiresAt: Date | null
}

/**
 * Replaces the tokens that were used for the renewal. Safe to repeat. A chat that was reconnected in the meantime has
 * newer tokens, which are kept; tokens that were only resealed in the meantime are replaced.
 */
export const replaceTokens = async (
  sql: Sql,
  { id, chatConnectedAt }: ChatTokens,
  renewed: RenewedTokens,
): Promise<void> => {
  await sql`
    update user_oauth_accounts set access_token_sealed = ${renewed.accessTokenSealed},
      refresh_token_sealed = ${renewed.refreshTokenSealed}, token_expires_at = ${renewed.expiresAt}, tokens_checked_at = now()
    where id = ${id} and chat_connected_at::text = ${chatConnectedAt}`
}

/** Deletes the tokens of the chat. The identity stays linked. */
export const disconnectChat = async (sql: Sql, id: string): Promise<void> => {
  await sql`
    update user_oauth_accounts set chat_connected_at = null, access_token_sealed = null, refresh_token_sealed = null,
      token_expires_at = null, scopes = '{}', tokens_checked_at = now()
    where id = ${id}`
}
