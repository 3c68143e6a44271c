/**
 * Takes an account away from everyone but the owner of its email address, once that owner has proved to be it. An
 * attacker can create an account with someone else's address and keep access to it (Sudhodanan and Paverd,
 * "Pre-hijacked accounts", 2022), so whatever was added to the account before the proof is not trusted.
 */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { hasRow, type Sql } from '../connection.ts'
import { endGrantsOf } from '../identity/app-grants.ts'
import type { AuthSessionRevocationReason } from '../identity/auth-sessions.ts'
import { deleteMailTokens } from '../identity/mail-tokens.ts'
import { deleteOAuthAccounts } from '../identity/oauth-accounts.ts'
import { deleteEndpoint } from '../notifications/endpoints.ts'
import { deleteNotificationSettings } from '../notifications/settings.ts'
import { disconnectAll } from '../relay/commands.ts'
import { deleteAppPlayKeys, deletePlayKeys } from '../relay/play-keys.ts'
import type { RelaySessionRow } from '../relay/sessions.ts'
import { sealStreamToken } from '../sealed-tokens.ts'

/**
 * Revokes every auth session of the account and everything that could still become one: approved plugin logins whose
 * tokens were not collected, mailed links, OAuth authorization requests, merge requests. Disconnects all apps.
 * @returns the ids of the revoked auth sessions.
 */
export async function revokeAllAccess(
  sql: Sql,
  userId: string,
  reason: AuthSessionRevocationReason,
): Promise<string[]> {
  const revoked = await sql<{ id: string }[]>`
    update auth_sessions set revoked_at = now(), revoked_for = ${reason}
    where user_id = ${userId} and revoked_at is null returning id`
  await sql`
    update login_attempts set status = 'denied', decided_at = now() where user_id = ${userId} and status = 'approved'`
  await disconnectApps(sql, userId, reason)
  await deleteMailTokens(sql, userId)
  await sql`delete from oauth_authorization_requests where user_id = ${userId}`
  await sql`delete from merge_requests where user_id = ${userId}`
  return revoked.map((row) => row.id)
}

/** Ends the sign-ins of all apps, and deletes their play keys. */
async function disconnectApps(sql: Sql, userId: string, reason: AuthSessionRevocationReason): Promise<void> {
  await endGrantsOf(sql, userId, reason)
  await deleteAppPlayKeys(sql, userId)
}

/** For `user_oauth_accounts a`: the provider has verified the address that the account has now. */
const isAddressVerifiedByProvider = (sql: Sql) => sql`
  exists (select from users u where u.id = a.user_id and lower(u.email) = lower(a.provider_verified_email))`

export interface LinkedIdentity {
  readonly provider: OAuthProviderName
  /** True if a password reset keeps the identity linked. */
  readonly stays: boolean
}

/** The account's identities, in the order in which they were linked. */
export const listLinkedIdentities = async (sql: Sql, userId: string): Promise<LinkedIdentity[]> => sql<
  LinkedIdentity[]
>`
  select provider, ${isAddressVerifiedByProvider(sql)} as stays from user_oauth_accounts a where user_id = ${userId}
  order by linked_at, provider`

/** True if the owner of the address has secured the account, or was the one who created it. */
export const isOwnershipProved = async (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`select from users where id = ${userId} and owner_proved_at is not null`)

interface SecuredAccount {
  readonly authSessionsRevoked: number
  readonly unlinked: readonly OAuthProviderName[]
  /** Sessions with a new `disconnect` command, to be delivered after the commit. */
  readonly disconnected: readonly RelaySessionRow[]
}

/**
 * Leaves the account to the owner of its address, who has just proved to be it. The first time, the account also gets a
 * new stream token and its relays are disconnected, since the person who created the account may know their tokens. The
 * caller has locked the account's row.
 * @param email the address as it was proved. It replaces the stored spelling, which an attacker may have chosen so that
 *   mail is delivered elsewhere.
 */
export async function secureAccount(
  sql: Sql,
  sealing: Sealing,
  userId: string,
  { email, newStreamToken, reason }: { email: string; newStreamToken: string; reason: AuthSessionRevocationReason },
): Promise<SecuredAccount> {
  const authSessionsRevoked = (await revokeAllAccess(sql, userId, reason)).length
  // Anyone who was signed in to the account may have linked the others.
  const unlinked = await deleteOAuthAccounts(
    sql,
    sql`a.user_id = ${userId} and not ${isAddressVerifiedByProvider(sql)}`,
  )
  const streamToken = sealStreamToken(sealing, userId, newStreamToken)
  const { count } = await sql`
    update users set email = ${email}, email_verified_at = coalesce(email_verified_at, now()), owner_proved_at = now(),
      stream_token_sealed = ${streamToken.sealed}, stream_token_hash = ${streamToken.hash}
    where id = ${userId} and owner_proved_at is null`
  if (count === 1) {
    // The person who created the account may have set it, have play keys, and have turned off mails about payments.
    await deleteEndpoint(sql, userId)
    await deletePlayKeys(sql, userId)
    await deleteNotificationSettings(sql, userId)
  }
  const disconnected = count === 1 ? await disconnectAll(sql, userId, 'system') : []
  return { authSessionsRevoked, unlinked, disconnected }
}
