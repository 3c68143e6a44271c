/** Sign-ins: who is signed in where, and whether still. */
import type { Client } from './clients.ts'
import { first, type Sql } from './connection.ts'

/** For each pair of a user and a sign-in, in their order: is that sign-in alive and its account not disabled? */
export async function aliveAuthSessions(
  sql: Sql,
  asked: readonly { userId: string; authSessionId: string }[],
): Promise<boolean[]> {
  const rows = await sql<{ id: string; userId: string }[]>`
    select s.id, s.user_id from auth_sessions s join users u on u.id = s.user_id
    where s.id = any(${asked.map((one) => one.authSessionId)}::uuid[]) and s.revoked_at is null and u.disabled_at is null`
  const owners = new Map(rows.map((row) => [row.id, row.userId] as const))
  return asked.map(({ userId, authSessionId }) => owners.get(authSessionId) === userId)
}

export interface NewAuthSession {
  readonly userId: string
  readonly client: Client
  readonly ip: string
  readonly userAgent: string
}

/** Adds a sign-in and answers its id. */
export async function insertAuthSession(sql: Sql, { userId, client, ip, userAgent }: NewAuthSession): Promise<string> {
  const row = first(
    await sql<{ id: string }[]>`
      insert into auth_sessions (user_id, kind, client, ip, user_agent)
      values (${userId}, ${client.kind}, ${client.name}, ${ip}, ${userAgent})
      returning id`,
  )
  if (!row) throw new Error('an inserted auth session did not come back')
  return row.id
}

export interface AuthSession {
  readonly id: string
  readonly client: Client
  readonly ip: string
  readonly createdAt: Date
  readonly lastUsedAt: Date
}

/** More than anyone looks through; those used longest ago are left out. */
const listedMax = 100

/** The user's sign-ins that can still be used, the last used first. One that was not refreshed for 30 days is over. */
export const listAuthSessions = (sql: Sql, userId: string): Promise<AuthSession[]> => sql<AuthSession[]>`
  select s.id, json_build_object('kind', s.kind, 'name', s.client) as client, s.ip, s.created_at,
    s.last_used_at
  from auth_sessions s
  where s.user_id = ${userId} and s.revoked_at is null and exists (
    select from refresh_tokens t where t.auth_session_id = s.id and t.expires_at > now()
      and t.replaced_at is null and t.superseded_at is null)
  order by s.last_used_at desc, s.id limit ${listedMax}`

export const touchAuthSession = async (sql: Sql, authSessionId: string): Promise<void> => {
  await sql`update auth_sessions set last_used_at = now() where id = ${authSessionId}`
}

/** Why a sign-in ended. */
export type AuthSessionEnd = 'logout' | 'revoked' | 'token_reuse' | 'password_reset' | 'account_disabled' | 'merged'

/**
 * Ends a sign-in of this user: `ended` now, `over` already, or `unknown` when the user has no such sign-in.
 * Waits for a refresh under way, so that what it hands out is ended too.
 */
export async function endAuthSession(
  sql: Sql,
  { authSessionId, userId }: { authSessionId: string; userId: string },
  why: AuthSessionEnd,
): Promise<'ended' | 'over' | 'unknown'> {
  const own = sql`id = ${authSessionId} and user_id = ${userId}`
  const { count } = await sql`
    update auth_sessions set revoked_at = now(), revoked_for = ${why} where ${own} and revoked_at is null`
  if (count > 0) return 'ended'
  return first(await sql`select from auth_sessions where ${own}`) ? 'over' : 'unknown'
}
