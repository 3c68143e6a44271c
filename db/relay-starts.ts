/**
 * Starts a relay in the database: one transaction that locks the user's row, so that concurrent starts of one user run one
 * after the other. It reserves the session; its workflow does the rest.
 */

import { defaultRegionOf, type RegionLimit, type RequestedRegion, regionsToTry } from '../domain/regions.ts'
import { isInGraceFor } from '../domain/relay-session.ts'
import { displacedByStart, isStopping, type LiveSession } from '../domain/relay-start.ts'
import type { Config } from '../platform/config/config.ts'
import { imageKey, type RegionConfig } from '../platform/config/regions.ts'
import { areAuthSessionsAlive } from './auth-sessions.ts'
import { type Database, first, type Sql } from './connection.ts'
import { countsAgainstLimit, type Entitlement, findEntitlement } from './entitlements.ts'
import { claimWarmInstance } from './instances.ts'
import { countRequest, type RateLimitWindow } from './rate-limits.ts'
import { listRegionRows } from './regions.ts'
import { deliverAfterSeconds, recordCommand } from './relay-commands.ts'
import { findRelaySession, type RelaySessionRow, relaySessionColumns } from './relay-sessions.ts'
import type { SealedToken } from './sealed-tokens.ts'
import { type LockedAccount, lockAccount } from './users.ts'

/** A region that may have warm instances of an image. */
export type StartableRegion = RegionLimit & Pick<RegionConfig, 'warm' | 'image'>

export interface StartRequest {
  readonly userId: string
  /** The auth session of the request. */
  readonly authSessionId: string
  /** A UUID. It is stored for an hour, together with the hash of its request. */
  readonly idempotencyKey: string
  readonly requestHash: Buffer
  readonly connectionId: string
  readonly region: RequestedRegion
  /** All regions, in the configured order. */
  readonly regions: readonly StartableRegion[]
  /** A warm instance gets the session only when it has reported within this time. */
  readonly warmReportSecondsMax: number
  readonly rateLimitKey: string
  readonly rateLimit: number
  readonly timeBank: Config['timeBank']
  /** The id and the sealed tokens of the session that is reserved when none exists. */
  readonly sessionId: string
  readonly pairToken: SealedToken
  readonly relayWsToken: SealedToken
}

export type StartOutcome =
  | {
      readonly type: 'reserved' | 'existing' | 'replayed'
      readonly session: RelaySessionRow
      readonly toDeliver: readonly RelaySessionRow[]
      /** The account of the session, as the transaction read it. */
      readonly account: LockedAccount
      readonly window?: RateLimitWindow
    }
  | { readonly type: 'key_reused' }
  /** The auth session ended after the request was authenticated. */
  | { readonly type: 'signed_out' }
  | { readonly type: 'rate_limited'; readonly window: RateLimitWindow }
  | { readonly type: 'denied'; readonly entitlement: Entitlement; readonly window: RateLimitWindow }
  | { readonly type: 'limit_reached' | 'region_full' | 'region_drained'; readonly window: RateLimitWindow }

/** A refused start stores nothing but its count against the rate limit. */
export const startRelay = (sql: Database, request: StartRequest): Promise<StartOutcome> =>
  sql.begin(async (tx): Promise<StartOutcome> => {
    const account = await lockAccount(tx, request.userId)
    // A statement of its own, since it has to see what was committed while the statement before it waited for the lock.
    const [isSignedIn] = await areAuthSessionsAlive(tx, [request])
    if (!account || !isSignedIn) return { type: 'signed_out' }
    const replay = await findReplay(tx, request, account)
    if (replay) return replay
    const window = await countRequest(tx, request.rateLimitKey)
    if (window.requests > request.rateLimit) return { type: 'rate_limited', window }

    const live = await lockLiveSessions(tx, request.userId)
    // A disconnect is final, so the connection may have a newer session beside a disconnected one.
    const existing = live.find(
      (session) => session.connectionId === request.connectionId && session.command !== 'disconnect',
    )
    if (existing && !isStopping(existing)) {
      await storeIdempotencyKey(tx, request, existing.id)
      // The session has the command `run` already, which may not be delivered.
      return {
        type: 'existing',
        session: existing,
        toDeliver: isInGraceFor(existing, 'stop_requested') ? [existing] : [],
        account,
        window,
      }
    }
    const entitlement = await findEntitlement(tx, request.userId, request.timeBank)
    if (!entitlement) throw new Error('a signed-in user has no row')
    if (entitlement.relayAccessStatus !== 'enabled') return { type: 'denied', entitlement, window }
    if (entitlement.activeManagedConns >= entitlement.maxConcurrentConns) return { type: 'limit_reached', window }
    const resumed = existing && (await recordCommand(tx, existing.id, 'run', 'user'))
    const region = resumed ? undefined : await findRegion(tx, request)
    if (region && 'type' in region) return { ...region, window }
    const others = live.filter((session) => session !== existing)
    const displaced = await makeRoom(tx, others, entitlement.maxConcurrentConns)
    const session = region ? await reserve(tx, request, region) : resumed
    if (!session) throw new Error('the session to resume has stopped')
    await storeIdempotencyKey(tx, request, session.id)
    return { type: resumed ? 'existing' : 'reserved', session, toDeliver: [session, ...displaced], account, window }
  }) as Promise<StartOutcome>

/** The outcome of an earlier request with the same key: its session in its present state. */
async function findReplay(
  tx: Sql,
  { userId, idempotencyKey, requestHash }: StartRequest,
  account: LockedAccount,
): Promise<StartOutcome | undefined> {
  const stored = first(
    await tx<{ requestHash: Buffer; sessionId: string }[]>`
      select request_hash, session_id from idempotency_keys
      where user_id = ${userId} and key = ${idempotencyKey} and accepted_at > now() - interval '1 hour'`,
  )
  if (!stored) return undefined
  if (!stored.requestHash.equals(requestHash)) return { type: 'key_reused' }
  const session = await findRelaySession(tx, stored.sessionId)
  return session && { type: 'replayed', session, toDeliver: [], account }
}

type LiveSessionRow = RelaySessionRow & LiveSession

/** Locks the user's live sessions in the order of their ids and returns them by age, oldest first. */
const lockLiveSessions = async (tx: Sql, userId: string): Promise<LiveSessionRow[]> => {
  const locked = await tx<LiveSessionRow[]>`
    select ${relaySessionColumns(tx)}, ${countsAgainstLimit(tx)} as counts_against_limit from relay_sessions s
    where user_id = ${userId} and state <> 'stopped' order by id for no key update`
  return locked.toSorted((one, other) => +one.createdAt - +other.createdAt)
}

/** An assumed upper bound of concurrent start transactions: more than the usual limit of connections to Postgres. */
const concurrentStartTransactionsMax = 500

/** The region of the new session. Without one the start is refused. */
async function findRegion(
  tx: Sql,
  { region: requested, regions }: StartRequest,
): Promise<StartableRegion | { type: 'region_full' | 'region_drained' }> {
  const all = regions.map(({ region }) => region)
  const preferred = typeof requested === 'object' ? requested.named : defaultRegionOf(regions)?.region
  let rows = await listRoom(tx, requested === 'auto' || preferred === undefined ? all : [preferred])
  if (requested === 'default' && rows[0]?.isDrained) rows = await listRoom(tx, all)
  const candidates = regionsToTry(requested, regions, rows)
  if (candidates === 'drained') return { type: 'region_drained' }
  for (const candidate of candidates) {
    const placesTaken = rows.find(({ region }) => region === candidate.region)?.placesTaken ?? 0
    if (await hasPlace(tx, candidate, placesTaken)) return candidate
  }
  return { type: 'region_full' }
}

/**
 * While a region has more free places than concurrent transactions could take, starts do not wait for each other. The last
 * places are reserved by one transaction at a time. A start that goes on to another region releases the lock of the full one
 * first, since two starts with each other's locks would wait for ever.
 */
async function hasPlace(tx: Sql, { region, capacity }: RegionLimit, placesTaken: number): Promise<boolean> {
  if (placesTaken >= capacity) return false
  if (placesTaken + concurrentStartTransactionsMax < capacity) return true
  await tx`savepoint region_lock`
  await tx`select pg_advisory_xact_lock(hashtextextended('region:' || ${region}, 0))`
  const [locked] = await listRoom(tx, [region])
  const isFree = locked !== undefined && locked.placesTaken < capacity
  await (isFree ? tx`release savepoint region_lock` : tx`rollback to savepoint region_lock`)
  return isFree
}

const listRoom = async (tx: Sql, regions: readonly string[]) =>
  (await listRegionRows(tx, regions)).map((row) => ({ ...row, placesTaken: row.placesBlocked }))

/** Stops the sessions that would exceed the limit together with the new one. */
async function makeRoom(tx: Sql, live: readonly LiveSessionRow[], limit: number): Promise<RelaySessionRow[]> {
  const displaced: RelaySessionRow[] = []
  for (const { id } of displacedByStart(live, limit)) {
    const stopped = await recordCommand(tx, id, 'stop_now', 'system')
    if (stopped) displaced.push(stopped)
  }
  return displaced
}

/** Reserves the session, together with a warm instance if the region has one. */
async function reserve(tx: Sql, request: StartRequest, region: StartableRegion): Promise<RelaySessionRow> {
  const session = await insertSession(tx, request, region.region)
  if (region.warm === 0) return session
  const placement = { region: region.region, image: imageKey(region), reportSecondsMax: request.warmReportSecondsMax }
  const hasInstance = await claimWarmInstance(tx, session.id, placement)
  return hasInstance ? ((await findRelaySession(tx, session.id)) ?? session) : session
}

async function insertSession(tx: Sql, request: StartRequest, region: string): Promise<RelaySessionRow> {
  const session = first(
    await tx<RelaySessionRow[]>`
      insert into relay_sessions (id, user_id, connection_id, region, command_initiator,
        pair_token_sealed, pair_token_hash, relay_ws_token_sealed, relay_ws_token_hash, deliver_at)
      values (${request.sessionId}, ${request.userId}, ${request.connectionId}, ${region}, 'user',
        ${request.pairToken.sealed}, ${request.pairToken.hash}, ${request.relayWsToken.sealed}, ${request.relayWsToken.hash},
        now() + make_interval(secs => ${deliverAfterSeconds}))
      returning ${relaySessionColumns(tx)}`,
  )
  if (!session) throw new Error('insert ... returning returned no row')
  return session
}

const storeIdempotencyKey = async (
  tx: Sql,
  { userId, idempotencyKey, requestHash }: StartRequest,
  sessionId: string,
): Promise<void> => {
  await tx`
    insert into idempotency_keys (user_id, key, request_hash, session_id)
    values (${userId}, ${idempotencyKey}, ${requestHash}, ${sessionId})
    on conflict (user_id, key) do update set
      request_hash = excluded.request_hash, session_id = excluded.session_id, accepted_at = now()`
}
