/** The provider tokens of connected chats: whose turn it is, and what became of them. Sealed as they are, nobody reads them here. */
import { first, type Sql } from './connection.ts'
import type { Provider } from './oauth-accounts.ts'

/** A token is renewed this long before it ends. */
const aheadMinutes = 15
/** Twitch wants to be asked every hour whether the grant still holds; a round later the hour would be over. */
const uncheckedMinutesMax = 54

const isDue = (sql: Sql) => sql`
  chat_connected_at is not null
    and (token_expires_at < now() + make_interval(mins => ${aheadMinutes})
      or tokens_checked_at < now() - make_interval(mins => ${uncheckedMinutesMax}))`

export interface DueChat {
  readonly id: string
  readonly provider: Provider
}

/**
 * Connected chats whose tokens are due. In no order: if there are more than `most`, or some fail again and again, nobody
 * is always the last.
 */
export const dueChats = async (sql: Sql, providers: readonly Provider[], most: number): Promise<DueChat[]> =>
  sql<DueChat[]>`
    select id, provider from user_oauth_accounts
    where provider = any(${providers as Provider[]}::text[]) and ${isDue(sql)}
    order by random() limit ${most}`

export interface ChatTokens extends DueChat {
  readonly userId: string
  readonly refreshTokenSealed: string | null
  /** As text, since a date would lose its microseconds. */
  readonly chatConnectedAt: string
}

/** Locks a due chat until the transaction ends. Nothing when another has it, or it is no longer due. */
export const lockDueChat = async (sql: Sql, id: string): Promise<ChatTokens | undefined> =>
  first(
    await sql<ChatTokens[]>`
      select id, provider, user_id, refresh_token_sealed,
        chat_connected_at::text as chat_connected_at from user_oauth_accounts
      where id = ${id} and ${isDue(sql)} for update skip locked`,
  )

export interface RenewedTokens {
  readonly accessTokenSealed: string
  readonly refreshTokenSealed: string
  readonly expiresAt: Date | null
}

/**
 * Puts renewed tokens in the place of those that were used. Safe to repeat. A chat that was connected again meanwhile has newer
 * ones, which are left alone; tokens that were only sealed again meanwhile are the used ones all the same.
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

/** The chat is no longer connected, and its tokens are gone. The identity still signs in. */
export const disconnectChat = async (sql: Sql, id: string): Promise<void> => {
  await sql`
    update user_oauth_accounts set chat_connected_at = null, access_token_sealed = null, refresh_token_sealed = null,
      token_expires_at = null, scopes = '{}', tokens_checked_at = now()
    where id = ${id}`
}
