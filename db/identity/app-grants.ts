/** Grants: the approvals of apps by accounts. A grant lasts until it is ended or its refresh token expires. */
import type { AppScope } from '../../domain/identity/apps.ts'
import { appCodeSeconds, appRefreshTokenDays } from '../../domain/identity/lifetimes.ts'
import { type Fragment, first, firstValue, type Sql } from '../connection.ts'

export type GrantEndReason =
  | 'disconnected'
  | 'signed_out'
  | 'token_reuse'
  | 'revoked'
  | 'password_reset'
  | 'password_changed'
  | 'account_disabled'
  | 'account_deletion'
  | 'logout'
  | 'merged'

export interface NewGrant {
  readonly userId: string
  readonly clientId: string
  readonly scopes: readonly AppScope[]
  readonly ip: string
  readonly userAgent: string
}

/** Expires with its authorization code, unless the app collects its tokens. @returns the id of the new grant. */
export async function insertGrant(tx: Sql, { userId, clientId, scopes, ip, userAgent }: NewGrant): Promise<string> {
  const id = await firstValue(tx<{ id: string }[]>`
    insert into app_grants (user_id, client_id, scopes, ip, user_agent, expires_at)
    values (${userId}, ${clientId}, ${scopes as string[]}, ${ip}, ${userAgent},
      now() + make_interval(secs => ${appCodeSeconds}))
    returning id`)
  if (id === undefined) throw new Error('insert into app_grants returned no row')
  return id
}

export interface Grant {
  readonly id: string
  readonly userId: string
  readonly clientId: string
  readonly scopes: readonly AppScope[]
  readonly ip: string
  readonly userAgent: string
  readonly createdAt: Date
  readonly expiresAt: Date
}

const columns = (sql: Sql) => sql`id, user_id, client_id, scopes, ip, user_agent, created_at, expires_at`

/** Neither ended nor expired, of an account that is not disabled. */
const isAlive = (sql: Sql): Fragment => sql`
  g.ended_at is null and g.expires_at > now() and (select u.disabled_at is null from users u where u.id = g.user_id)`

export const findAliveGrant = async (sql: Sql, id: string): Promise<Grant | undefined> =>
  first(sql<Grant[]>`select ${columns(sql)} from app_grants g where id = ${id} and ${isAlive(sql)}`)

/** For each pair, in the given order: true if the grant belongs to the user and is alive. */
export async function areGrantsAlive(
  sql: Sql,
  pairs: readonly { userId: string; grantId: string }[],
): Promise<boolean[]> {
  const rows = await sql<{ id: string; userId: string }[]>`
    select g.id, g.user_id from app_grants g
    where g.id = any(${pairs.map(({ grantId }) => grantId)}::uuid[]) and ${isAlive(sql)}`
  const owners = new Map(rows.map((row) => [row.id, row.userId] as const))
  return pairs.map(({ userId, grantId }) => owners.get(grantId) === userId)
}

export const isGrantAlive = async (sql: Sql, pair: { userId: string; grantId: string }): Promise<boolean> =>
  (await areGrantsAlive(sql, [pair]))[0] === true

/** Serialises the exchanges of the tokens of a grant. */
export const lockGrant = async (tx: Sql, id: string): Promise<void> => {
  await tx`select from app_grants where id = ${id} for no key update`
}

/** Stores that the app has collected tokens. @returns true for the first ones of the grant. */
export async function useGrant(tx: Sql, id: string): Promise<boolean> {
  const wasConnected = await firstValue(tx<{ connected: boolean }[]>`
    select connected_at is not null as connected from app_grants where id = ${id}`)
  await tx`
    update app_grants set connected_at = coalesce(connected_at, now()), last_used_at = now(),
      expires_at = now() + make_interval(days => ${appRefreshTokenDays})
    where id = ${id}`
  return wasConnected === false
}

/** Replaces the refresh tokens of one generation by those of the next, unless that happened before. */
export const rotateGrant = async (tx: Sql, id: string, generation: number): Promise<void> => {
  await tx`
    update app_grants set generation = generation + 1, rotated_at = now()
    where id = ${id} and generation = ${generation}`
}

/** @returns false if the grant had ended before. */
export const endGrant = async (sql: Sql, id: string, reason: GrantEndReason): Promise<boolean> =>
  (
    await sql`
      update app_grants set ended_at = now(), ended_for = ${reason} where id = ${id} and ended_at is null`
  ).count === 1

/**
 * Ends the grants of an account, and forgets what it has approved without that the app has come back.
 * @param clientId of the app whose grants end; those of all apps when undefined.
 * @returns the number of grants that have ended.
 */
export async function endGrantsOf(tx: Sql, userId: string, reason: GrantEndReason, clientId?: string): Promise<number> {
  const ofApp = clientId === undefined ? tx`` : tx`and client_id = ${clientId}`
  await tx`delete from app_requests where user_id = ${userId} ${ofApp}`
  const { count } = await tx`
    update app_grants set ended_at = now(), ended_for = ${reason}
    where user_id = ${userId} and ended_at is null and expires_at > now() ${ofApp}`
  return count
}

export interface ConnectedGrant {
  readonly clientId: string
  readonly scopes: readonly AppScope[]
  readonly connectedAt: Date
  readonly lastUsedAt: Date
}

/** The alive grants of an account whose apps have collected tokens, the oldest first. */
export const listConnectedGrants = async (sql: Sql, userId: string): Promise<ConnectedGrant[]> =>
  sql<ConnectedGrant[]>`
    select client_id, scopes, connected_at, last_used_at from app_grants g
    where user_id = ${userId} and connected_at is not null and ${isAlive(sql)} order by connected_at, id`
