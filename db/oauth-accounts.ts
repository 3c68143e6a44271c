/** Identities at providers, and the accounts that they sign in to. An identity is the provider's own user id, never an address. */
import { first, type Sql } from './connection.ts'

export type Provider = 'twitch' | 'google' | 'discord'

export interface Identity {
  readonly provider: Provider
  readonly providerUserId: string
}

/** A provider's tokens as they are kept, for connected chats only: readable with our key, and only in their own place. */
export interface SealedTokens {
  readonly accessToken: string
  readonly refreshToken: string | null
  readonly expiresAt: Date | null
  readonly scopes: readonly string[]
}

/**
 * Whoever decides about an identity comes one after the other, also while it has no row that could be locked.
 * Taken before the lock of any account's row, by all who take both.
 */
export const lockIdentity = async (sql: Sql, { provider, providerUserId }: Identity): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${provider}:${providerUserId}`}, 0))`
}

/** The account that the identity signs in to, or nothing. */
export const ownerOf = async (sql: Sql, { provider, providerUserId }: Identity): Promise<string | undefined> =>
  first(
    await sql<{ userId: string }[]>`
      select user_id from user_oauth_accounts
      where provider = ${provider} and provider_user_id = ${providerUserId}`,
  )?.userId

/** Links an identity. False when it is linked already, or the account has another one of that provider. */
export async function insertOAuthAccount(
  sql: Sql,
  userId: string,
  { provider, providerUserId }: Identity,
): Promise<boolean> {
  const { count } = await sql`
    insert into user_oauth_accounts (user_id, provider, provider_user_id)
    values (${userId}, ${provider}, ${providerUserId}) on conflict do nothing`
  return count === 1
}

/**
 * Records that the identity's provider vouches for this address, if it is the account's own. Such an identity is the
 * address's owner's and outlasts a reset; what the provider says of other addresses means nothing here.
 */
export const recordVouchedAddress = async (
  sql: Sql,
  userId: string,
  provider: Provider,
  verifiedEmail: string,
): Promise<void> => {
  await sql`
    update user_oauth_accounts a set vouched_email = ${verifiedEmail} from users u
    where u.id = a.user_id and a.user_id = ${userId} and a.provider = ${provider} and lower(u.email) = lower(${verifiedEmail})`
}

/** Connects the chat of an account's identity, or connects it again. A refresh token stays when none came with the new tokens. */
export const connectChat = async (
  sql: Sql,
  userId: string,
  provider: Provider,
  { accessToken, refreshToken, expiresAt, scopes }: SealedTokens,
): Promise<void> => {
  await sql`
    update user_oauth_accounts set chat_connected_at = now(), tokens_checked_at = now(), access_token_sealed = ${accessToken},
      refresh_token_sealed = coalesce(${refreshToken}, refresh_token_sealed), token_expires_at = ${expiresAt},
      scopes = ${scopes as string[]}::text[]
    where user_id = ${userId} and provider = ${provider}`
}

/**
 * Unlinks identities and answers their providers. The tokens of their chats are queued for revocation in the same statement.
 * @param which a condition on `user_oauth_accounts a`.
 */
export const deleteOAuthAccounts = async (sql: Sql, which: ReturnType<Sql>): Promise<Provider[]> =>
  (
    await sql<{ provider: Provider }[]>`
      with unlinked as (delete from user_oauth_accounts a where ${which} returning *), queued as (
        insert into provider_token_revocations (provider, provider_user_id, user_id, field, token_sealed)
        select provider, provider_user_id, user_id, field, token_sealed from unlinked cross join lateral
          (values ('access_token', access_token_sealed), ('refresh_token', refresh_token_sealed)) tokens (field, token_sealed)
        where token_sealed is not null
      )
      select provider from unlinked`
  ).map((row) => row.provider)

/** Unlinks the account's identity of this provider, if there is one. */
export const deleteOAuthAccount = async (sql: Sql, userId: string, provider: Provider): Promise<void> => {
  await deleteOAuthAccounts(sql, sql`a.user_id = ${userId} and a.provider = ${provider}`)
}

export type SignInMethod = 'password' | Provider

/** All ways into the account, the password first. A password is one only beside the address that it is typed with. */
export async function signInMethodsOf(sql: Sql, userId: string): Promise<SignInMethod[]> {
  const rows = await sql<{ method: SignInMethod }[]>`
    select method from (
      select 'password' as method from users where id = ${userId} and password_hash is not null and email is not null
      union all select provider from user_oauth_accounts where user_id = ${userId}) methods
    order by array_position(array['password', 'twitch', 'google', 'discord'], method)`
  return rows.map((row) => row.method)
}
