/**
 * What happens when somebody proves to be an account's owner in a stronger way than signing in: whoever else got a foothold
 * in it loses that. An account can be opened with another person's address and be waiting for them (Sudhodanan and Paverd,
 * "Pre-hijacked accounts", 2022): what was put on it before its address was proved is nobody's word.
 */
import type { Sealing } from '../platform/sealing.ts'
import type { AuthSessionEnd } from './auth-sessions.ts'
import { first, type Sql } from './connection.ts'
import { deleteOAuthAccounts, type Provider } from './oauth-accounts.ts'
import { disconnectAll } from './relay-commands.ts'
import type { RelaySessionRow } from './relay-sessions.ts'
import { sealStreamToken } from './sealed-tokens.ts'

/**
 * Ends every sign-in of the account and whatever could still become one: approved plugin logins that were not collected,
 * links in mails, round trips to providers, merges under way. Answers the sign-ins that ended.
 */
export async function endAllAccess(sql: Sql, userId: string, why: AuthSessionEnd): Promise<string[]> {
  const ended = await sql<{ id: string }[]>`
    update auth_sessions set revoked_at = now(), revoked_for = ${why}
    where user_id = ${userId} and revoked_at is null returning id`
  await sql`
    update login_attempts set status = 'denied', decided_at = now() where user_id = ${userId} and status = 'approved'`
  await sql`delete from mail_tokens where user_id = ${userId}`
  await sql`delete from oauth_states where user_id = ${userId}`
  await sql`delete from merge_requests where user_id = ${userId}`
  return ended.map((row) => row.id)
}

/** The identity's provider has vouched for the address that its account has now. Of `user_oauth_accounts a`. */
const isVouchedFor = (sql: Sql) => sql`
  exists (select from users u where u.id = a.user_id and lower(u.email) = lower(a.vouched_email))`

export interface LinkedIdentity {
  readonly provider: Provider
  /** Whether it stays linked when the account's password is reset. */
  readonly stays: boolean
}

/** The account's identities, in the order in which they were linked. */
export const linkedIdentities = async (sql: Sql, userId: string): Promise<LinkedIdentity[]> => sql<LinkedIdentity[]>`
  select provider, ${isVouchedFor(sql)} as stays from user_oauth_accounts a where user_id = ${userId}
  order by linked_at, provider`

/** Whether all that the account holds is known to the owner of its address only, also from before this moment. */
export const isOwnerProved = async (sql: Sql, userId: string): Promise<boolean> =>
  first(await sql`select from users where id = ${userId} and owner_proved_at is not null`) !== undefined

export interface SecuredAccount {
  readonly signInsEnded: number
  readonly unlinked: readonly Provider[]
  /** Sessions that were ordered off, to be delivered after the commit. */
  readonly disconnected: readonly RelaySessionRow[]
}

/**
 * Leaves the account to the owner of its address alone, who has just proved to be that. The first time it also gets another
 * stream token and loses its relays, since the person who opened the account may have read the tokens of both. The caller
 * holds the account.
 * @param email the address as it was proved. It is stored like this: a stranger may have typed it so that mail goes elsewhere.
 */
export async function secureAccount(
  sql: Sql,
  sealing: Sealing,
  userId: string,
  { email, newStreamToken, reason }: { email: string; newStreamToken: string; reason: AuthSessionEnd },
): Promise<SecuredAccount> {
  const signInsEnded = (await endAllAccess(sql, userId, reason)).length
  // Anyone who was signed in to the account may have linked the others.
  const unlinked = await deleteOAuthAccounts(sql, sql`a.user_id = ${userId} and not ${isVouchedFor(sql)}`)
  const streamToken = sealStreamToken(sealing, userId, newStreamToken)
  const { count } = await sql`
    update users set email = ${email}, email_verified_at = coalesce(email_verified_at, now()), owner_proved_at = now(),
      stream_token = null, stream_token_sealed = ${streamToken.sealed}, stream_token_hash = ${streamToken.hash}
    where id = ${userId} and owner_proved_at is null`
  const disconnected = count === 1 ? await disconnectAll(sql, userId, 'system') : []
  return { signInsEnded, unlinked, disconnected }
}
