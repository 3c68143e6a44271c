/** Auth sessions: one per sign-in of a client, until it is revoked or its refresh token expires. */
import type { Client } from '../clients.ts'
import { first, firstValue, hasRow, type Sql } from '../connection.ts'
import { endGrantsOf } from './app-grants.ts'

/**
 * For each pair, in the given order: true if the auth session belongs to the user, is not revoked, and the account is
 * not disabled.
 */
export async function areAuthSessionsAlive(
  sql: Sql,
  pairs: readonly { userId: string; authSessionId: string }[],
): Promise<boolean[]> {
  const rows = await sql<{ id: string; userId: string }[]>`
    select s.id, s.user_id from auth_sessions s
    where s.id = any(${pairs.map((pair) => pair.authSessionId)}::uuid[]) and s.revoked_at is null
      -- As a join, a plan for an unknown number of ids would read the whole table of users.
      and (select u.disabled_at is null from users u where u.id = s.user_id)`
  const owners = new Map(rows.map((row) => [row.id, row.userId] as const))
  return pairs.map(({ userId, authSessionId }) => owners.get(authSessionId) === userId)
}

/** The same for one pair. Postgres reuses the plan of this statement, which it does not with a list of ids. */
export const isAuthSessionAlive = async (
  sql: Sql,
  { userId, authSessionId }: { userId: string; authSessionId: string },
): Promise<boolean> =>
  hasRow(sql`
    select from auth_sessions s join users u on u.id = s.user_id
    where s.id = ${authSessionId} and s.user_id = ${userId} and s.revoked_at is null and u.disabled_at is null`)

export interface NewAuthSession {
  readonly userId: string
  readonly client: Client
  readonly ip: string
  readonly userAgent: string
}

/** @returns the id of the new auth session. */
export async function insertAuthSession(sql: Sql, { userId, client, ip, userAgent }: NewAuthSession): Promise<string> {
  const row = await first(sql<{ id: string }[]>`
    insert into auth_sessions (user_id, kind, client, ip, user_agent)
    values (${userId}, ${client.kind}, ${client.name}, ${ip}, ${userAgent})
    returning id`)
  if (!row) throw new Error('insert into auth_sessions returned no row')
  return row.id
}

export interface AuthSession {
  readonly id: string
  readonly client: Client
  readonly ip: string
  readonly userAgent: string
  readonly createdAt: Date
  readonly lastUsedAt: Date
}

/** Beyond this number the least recently used are left out. */
const listedMax = 100

/** The user's auth sessions that can still be refreshed, most recently used first. */
export const listAuthSessions = (sql: Sql, userId: string): Promise<AuthSession[]> => sql<AuthSession[]>`
  select s.id, json_build_object('kind', s.kind, 'name', s.client) as client, s.ip, s.user_agent, s.created_at,
    s.last_used_at
  from auth_sessions s
  where s.user_id = ${userId} and s.revoked_at is null and exists (
    select from refresh_tokens t where t.auth_session_id = s.id and t.expires_at > now()
      and t.replaced_at is null and t.superseded_at is null)
  order by s.last_used_at desc, s.id limit ${listedMax}`

export const touchAuthSession = async (sql: Sql, authSessionId: string): Promise<void> => {
  await sql`update auth_sessions set last_used_at = now() where id = ${authSessionId}`
}

export type AuthSessionRevocationReason =
  | 'logout'
  | 'revoked'
  | 'token_reuse'
  | 'password_reset'
  | 'password_changed'
  | 'account_disabled'
  | 'account_deletion'
  | 'merged'

/**
 * Waits for a concurrent refresh of the auth session, so that the tokens which that refresh issues are revoked too.
 * @returns `already_revoked` if nothing changed, `not_found` if the user has no such auth session.
 */
export async function revokeAuthSession(
  sql: Sql,
  { authSessionId, userId }: { authSessionId: string; userId: string },
  reason: AuthSessionRevocationReason,
): Promise<'revoked' | 'already_revoked' | 'not_found'> {
  const isOwn = sql`id = ${authSessionId} and user_id = ${userId}`
  const { count } = await sql`
    update auth_sessions set revoked_at = now(), revoked_for = ${reason} where ${isOwn} and revoked_at is null`
  if (count > 0) return 'revoked'
  return (await first(sql`select from auth_sessions where ${isOwn}`)) ? 'already_revoked' : 'not_found'
}

/**
 * Revokes all auth sessions of the user but one, denies approved plugin logins whose tokens were not collected, and
 * ends the sign-ins of apps, whose play keys stay until they are disconnected.
 * Waits for concurrent refreshes. The caller has locked the account's row.
 * @returns the number of revoked auth sessions.
 */
export async function revokeOtherAuthSessions(
  sql: Sql,
  { authSessionId, userId }: { authSessionId: string; userId: string },
  reason: AuthSessionRevocationReason,
): Promise<number> {
  const { count } = await sql`
    update auth_sessions set revoked_at = now(), revoked_for = ${reason}
    where user_id = ${userId} and id <> ${authSessionId} and revoked_at is null`
  await sql`
    update login_attempts set status = 'denied', decided_at = now() where user_id = ${userId} and status = 'approved'`
  await endGrantsOf(sql, userId, reason)
  return count
}

/** How long ago the user signed in, in seconds; undefined for an unknown auth session. */
export const findSignInAge = async (
  sql: Sql,
  { authSessionId, userId }: { authSessionId: string; userId: string },
): Promise<number | undefined> =>
  firstValue(sql<{ seconds: number }[]>`
    select extract(epoch from now() - created_at)::float8 as seconds from auth_sessions
    where id = ${authSessionId} and user_id = ${userId}`)
