/**
 * Identities at OAuth providers and the accounts that they are linked to. An identity is keyed by the provider's own
 * user id, never by an address.
 */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import { firstValue, type Sql } from '../connection.ts'

export interface Identity {
  readonly provider: OAuthProviderName
  readonly providerUserId: string
}

/** The provider's tokens of a connected chat, encrypted and bound to their row and field. */
export interface SealedTokens {
  readonly accessToken: string
  readonly refreshToken: string | null
  readonly expiresAt: Date | null
  readonly scopes: readonly string[]
}

/**
 * Serialises transactions that link or sign in with an identity, including one that has no row yet. Every transaction
 * that also locks an account's row takes this lock first.
 */
export const lockIdentity = async (sql: Sql, { provider, providerUserId }: Identity): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${provider}:${providerUserId}`}, 0))`
}

/** @returns the id of the account that the identity is linked to. */
export const findIdentityOwner = async (
  sql: Sql,
  { provider, providerUserId }: Identity,
): Promise<string | undefined> =>
  firstValue(sql<{ userId: string }[]>`
    select user_id from user_oauth_accounts
    where provider = ${provider} and provider_user_id = ${providerUserId}`)

/** Links an identity. @returns false if it is linked already, or the account has another identity of that provider. */
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
 * Records that the provider has verified this address, if it is the address of the account. Such an identity belongs to
 * the owner of the address and stays linked after a password reset.
 */
export const recordVerifiedAddress = async (
  sql: Sql,
  userId: string,
  provider: OAuthProviderName,
  verifiedEmail: string,
): Promise<void> => {
  await sql`
    update user_oauth_accounts a set provider_verified_email = ${verifiedEmail} from users u
    where u.id = a.user_id and a.user_id = ${userId} and a.provider = ${provider} and lower(u.email) = lower(${verifiedEmail})`
}

/**
 * Connects or reconnects the chat of an account's identity. The stored refresh token is kept if the new tokens contain
 * none.
 */
export const connectChat = async (
  sql: Sql,
  userId: string,
  provider: OAuthProviderName,
  { accessToken, refreshToken, expiresAt, scopes }: SealedTokens,
): Promise<void> => {
  await sql`
    update user_oauth_accounts set chat_connected_at = now(), tokens_checked_at = now(), access_token_sealed = ${accessToken},
      refresh_token_sealed = coalesce(${refreshToken}, refresh_token_sealed), token_expires_at = ${expiresAt},
      scopes = ${scopes as string[]}::text[]
    where user_id = ${userId} and provider = ${provider}`
}

/**
 * Unlinks identities and queues the tokens of their chats for revocation, in one statement.
 * @param condition on `user_oauth_accounts a`.
 * @returns the providers of the unlinked identities.
 */
export const deleteOAuthAccounts = async (sql: Sql, condition: ReturnType<Sql>): Promise<OAuthProviderName[]> =>
  (
    await sql<{ provider: OAuthProviderName }[]>`
      with unlinked as (delete from user_oauth_accounts a where ${condition} returning *), queued as (
        insert into provider_token_revocations (provider, provider_user_id, user_id, field, token_sealed)
        select provider, provider_user_id, user_id, field, token_sealed from unlinked cross join lateral
          (values ('access_token', access_token_sealed), ('refresh_token', refresh_token_sealed)) tokens (field, token_sealed)
        where token_sealed is not null
      )
      select provider from unlinked`
  ).map((row) => row.provider)

export const deleteOAuthAccount = async (sql: Sql, userId: string, provider: OAuthProviderName): Promise<void> => {
  await deleteOAuthAccounts(sql, sql`a.user_id = ${userId} and a.provider = ${provider}`)
}

export type SignInMethod = 'password' | OAuthProviderName

/** The ways to sign in to the account, the password first. A password counts only if the account has an address. */
export async function listSignInMethods(sql: Sql, userId: string): Promise<SignInMethod[]> {
  const rows = await sql<{ method: SignInMethod }[]>`
    select method from (
      select 'password' as method from users where id = ${userId} and password_hash is not null and email is not null
      union all select provider from user_oauth_accounts where user_id = ${userId}) methods
    order by array_position(array['password', 'twitch', 'google', 'discord'], method)`
  return rows.map((row) => row.method)
}
