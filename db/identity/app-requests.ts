/** Authorization requests of apps, from the browser's arrival until it goes back to the app. */
import { createHash } from 'node:crypto'
import type { AppScope } from '../../domain/identity/apps.ts'
import { appRequestSeconds } from '../../domain/identity/lifetimes.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { first, firstValue, type Sql } from '../connection.ts'

export type AppDecision = 'approved' | 'denied'

/** The id is random, so a hash without a secret does not help to guess it. */
const hashOf = (id: string): Buffer => createHash('sha256').update(id).digest()

const placeOf = (id: string): readonly string[] => [hashOf(id).toString('hex'), 'app_request']

export interface NewAppRequest {
  readonly clientId: string
  readonly scopes: readonly AppScope[]
  readonly payload: object
  readonly ip: string
  readonly userAgent: string
}

export const insertAppRequest = async (sql: Sql, sealing: Sealing, id: string, request: NewAppRequest) => {
  const { clientId, scopes, payload, ip, userAgent } = request
  await sql`
    insert into app_requests (id_hash, client_id, scopes, payload_sealed, ip, user_agent, expires_at)
    values (${hashOf(id)}, ${clientId}, ${scopes as string[]}, ${sealing.seal(JSON.stringify(payload), placeOf(id))},
      ${ip}, ${userAgent}, now() + make_interval(secs => ${appRequestSeconds}))`
}

/** What the app asked for; undefined for an unknown or expired request. */
export async function findAppRequestPayload(
  sql: Sql,
  sealing: Sealing,
  id: string,
): Promise<Record<string, unknown> | undefined> {
  const sealed = await firstValue(sql<{ payloadSealed: string }[]>`
    select payload_sealed from app_requests where id_hash = ${hashOf(id)} and expires_at > now()`)
  return sealed === undefined ? undefined : JSON.parse(sealing.open(sealed, placeOf(id)).text)
}

export interface AppRequest {
  readonly clientId: string
  readonly scopes: readonly AppScope[]
  readonly ip: string
  readonly userAgent: string
  /** Who decided; null before that. */
  readonly userId: string | null
  readonly decision: AppDecision | null
  readonly createdAt: Date
  readonly expiresAt: Date
}

const columns = (sql: Sql) => sql`client_id, scopes, ip, user_agent, user_id, decision, created_at, expires_at`

export const findAppRequest = async (sql: Sql, id: string): Promise<AppRequest | undefined> =>
  first(sql<AppRequest[]>`
    select ${columns(sql)} from app_requests where id_hash = ${hashOf(id)} and expires_at > now()`)

/** Locks the request until the transaction ends. Who locks the account too locks it first. */
export const lockAppRequest = async (tx: Sql, id: string): Promise<AppRequest | undefined> =>
  first(tx<AppRequest[]>`
    select ${columns(tx)} from app_requests where id_hash = ${hashOf(id)} and expires_at > now() for update`)

export const decideAppRequest = async (tx: Sql, id: string, userId: string, decision: AppDecision): Promise<void> => {
  await tx`
    update app_requests set user_id = ${userId}, decision = ${decision}, decided_at = now()
    where id_hash = ${hashOf(id)}`
}

export const deleteAppRequest = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from app_requests where id_hash = ${hashOf(id)}`
}
