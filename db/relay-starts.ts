/**
 * Starts a relay in the database: one transaction that locks the user's row, so that concurrent starts of one user run one
 * after the other. It reserves the session; its workflow does the rest.
 */

import {
  defaultRegionOf,
  type RegionLimit,
  type RegionUse,
  type RequestedRegion,
  regionsToTry,
} from '../domain/regions.ts'
import { isInGraceFor } from '../domain/relay-session.ts'
import { displacedByStart, isStopping, type LiveSession } from '../domain/relay-start.ts'
import type { Config } from '../platform/config/config.ts'
import { imageKey, type RegionConfig } from '../platform/config/regions.ts'
import { isAuthSessionAlive } from './auth-sessions.ts'
import { type Database, first, type Sql } from './connection.ts'
import { countsAgainstLimit, type Entitlement, findEntitlement } from './entitlements.ts'
import { claimWarmInstance } from './instances.ts'
import { type CommitWith, pipelinedTransaction } from './pipelined-transaction.ts'
import { countRequest, type RateLimitWindow } from './rate-limits.ts'
import { listDrainedRegions, listPlacesTaken, type PlacesTaken } from './regions.ts'
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
  /** The places that were taken a short time ago; empty to count them in the transaction. See {@link ampleRoom}. */
  readonly recentPlaces: readonly PlacesTaken[]
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
  /** The auth session has ended, or its account is disabled. */
  | { readonly type: 'signed_out' }
  | { readonly type: 'rate_limited'; readonly window: RateLimitWindow }
  | { readonly type: 'denied'; readonly entitlement: Entitlement; readonly window: RateLimitWindow }
  | { readonly type: 'limit_reached' | 'region_full' | 'region_drained'; readonly window: RateLimitWindow }

/** A refused start stores nothing but its count against the rate limit. A replay, a reused key and an ended sign-in do not count. */
export async function startRelay(sql: Database, request: StartRequest): Promise<StartOutcome> {
  try {
    return await pipelinedTransaction(sql, (tx, commitWith) => admitAndStart(tx, request, commitWith))
  } catch (error) {
    if (error instanceof Uncounted) return error.outcome
    throw error
  }
}

/** Ends the transaction, and with it the count of the request. */
class Uncounted extends Error {
  override name = 'Uncounted'
  constructor(readonly outcome: StartOutcome) {
    super(`a start that does not count: ${outcome.type}`)
  }
}

/** Statements that do not depend on each other's rows are sent together, and Postgres executes them in this order. */
async function admitAndStart(tx: Sql, request: StartRequest, commitWith: CommitWith): Promise<StartOutcome> {
  const [account, isSignedIn, replay, window, live, entitlement, uses] = await Promise.all([
    lockAccount(tx, request.userId),
    // Statements of their own, since they have to see what was committed while the one before them waited for the lock.
    isAuthSessionAlive(tx, request),
    findStoredKey(tx, request),
    countRequest(tx, request.rateLimitKey),
    lockLiveSessions(tx, request.userId),
    findEntitlement(tx, request.userId, request.timeBank),
    findRegionUses(tx, request, firstRegions(request)),
  ])
  if (!account || !isSignedIn) throw new Uncounted({ type: 'signed_out' })
  if (replay) throw new Uncounted(await replayStart(tx, request, replay, account))
  if (window.requests > request.rateLimit) return { type: 'rate_limited', window }

  // A disconnect is final, so the connection may have a newer session beside a disconnected one.
  const existing = live.find(
    (session) => session.connectionId === request.connectionId && session.command !== 'disconnect',
  )
  if (existing && !isStopping(existing)) {
    await commitWith(storeIdempotencyKey(tx, request, existing.id))
    // The session has the command `run` already, which may not be delivered.
    return {
      type: 'existing',
      session: existing,
      toDeliver: isInGraceFor(existing, 'stop_requested') ? [existing] : [],
      account,
      window,
    }
  }
  if (!entitlement) throw new Error('a signed-in user has no row')
  if (entitlement.relayAccessStatus !== 'enabled') return { type: 'denied', entitlement, window }
  if (entitlement.activeManagedConns >= entitlement.maxConcurrentConns) return { type: 'limit_reached', window }
  const resumed = existing && (await recordCommand(tx, existing.id, 'run', 'user'))
  const region = resumed ? undefined : await chooseRegion(tx, request, uses)
  if (region && 'type' in region) return { ...region, window }
  const others = live.filter((session) => session !== existing)
  const displaced = await makeRoom(tx, others, entitlement.maxConcurrentConns)
  if (!region) {
    if (!resumed) throw new Error('the session to resume has stopped')
    await commitWith(storeIdempotencyKey(tx, request, resumed.id))
    return { type: 'existing', session: resumed, toDeliver: [resumed, ...displaced], account, window }
  }
  const session = await reserve(tx, request, region, commitWith)
  return { type: 'reserved', session, toDeliver: [session, ...displaced], account, window }
}

interface StoredKey {
  readonly requestHash: Buffer
  readonly sessionId: string
}

const findStoredKey = async (tx: Sql, { userId, idempotencyKey }: StartRequest): Promise<StoredKey | undefined> =>
  first(
    await tx<StoredKey[]>`
      select request_hash, session_id from idempotency_keys
      where user_id = ${userId} and key = ${idempotencyKey} and accepted_at > now() - interval '1 hour'`,
  )

/** The outcome of an earlier request with the same key: its session in its present state. */
async function replayStart(
  tx: Sql,
  { requestHash }: StartRequest,
  stored: StoredKey,
  account: LockedAccount,
): Promise<StartOutcome> {
  if (!stored.requestHash.equals(requestHash)) return { type: 'key_reused' }
  const session = await findRelaySession(tx, stored.sessionId)
  if (!session) throw new Error('the session of a stored key does not exist')
  return { type: 'replayed', session, toDeliver: [], account }
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

/**
 * With more free places than this, a recent count of the places is used, since counting takes longer the more sessions a region
 * has. Starts would have to reserve two thousand sessions of one region between two counts, a second apart, to bring it to the
 * number below which starts wait for each other.
 */
const ampleRoom = 2_500

/** The regions that are looked at first: one when it is known which, otherwise all. */
function firstRegions({ region: requested, regions }: StartRequest): string[] {
  const preferred = typeof requested === 'object' ? requested.named : defaultRegionOf(regions)?.region
  return requested === 'auto' || preferred === undefined ? regions.map(({ region }) => region) : [preferred]
}

/** Whether the regions are drained is read now, and the places are counted now unless there was ample room. */
async function findRegionUses(
  tx: Sql,
  { regions, recentPlaces }: StartRequest,
  names: readonly string[],
): Promise<RegionUse[]> {
  const capacities = new Map(regions.map(({ region, capacity }) => [region, capacity]))
  const isAmple = ({ region, placesTaken }: PlacesTaken) => (capacities.get(region) ?? 0) - placesTaken > ampleRoom
  const ample = recentPlaces.filter(isAmple)
  const toCount = names.filter((name) => !ample.some(({ region }) => region === name))
  const [counted, drained] = await Promise.all([listPlacesTaken(tx, toCount), listDrainedRegions(tx)])
  const places = new Map([...ample, ...counted].map(({ region, placesTaken }) => [region, placesTaken]))
  return names.map((region) => ({
    region,
    placesTaken: places.get(region) ?? 0,
    isDrained: drained.includes(region),
  }))
}

/**
 * The region of the new session. Without one the start is refused.
 * @param firstUses of the {@link firstRegions}.
 */
async function chooseRegion(
  tx: Sql,
  request: StartRequest,
  firstUses: readonly RegionUse[],
): Promise<StartableRegion | { type: 'region_full' | 'region_drained' }> {
  const { region: requested, regions } = request
  const needsOthers = requested === 'default' && firstUses[0]?.isDrained
  const uses = needsOthers
    ? await findRegionUses(
        tx,
        request,
        regions.map(({ region }) => region),
      )
    : firstUses
  const candidates = regionsToTry(requested, regions, uses)
  if (candidates === 'drained') return { type: 'region_drained' }
  for (const candidate of candidates) {
    const placesTaken = uses.find(({ region }) => region === candidate.region)?.placesTaken ?? 0
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
  const [locked] = await listPlacesTaken(tx, [region])
  const isFree = locked !== undefined && locked.placesTaken < capacity
  await (isFree ? tx`release savepoint region_lock` : tx`rollback to savepoint region_lock`)
  return isFree
}

/** Stops the sessions that would exceed the limit together with the new one. */
async function makeRoom(tx: Sql, live: readonly LiveSessionRow[], limit: number): Promise<RelaySessionRow[]> {
  const displaced: RelaySessionRow[] = []
  for (const { id } of displacedByStart(live, limit)) {
    const stopped = await recordCommand(tx, id, 'stop_now', 'system')
    if (stopped) displaced.push(stopped)
  }
  return displaced
}

/** Reserves the session and stores the key, together with a warm instance if the region has one. */
async function reserve(
  tx: Sql,
  request: StartRequest,
  region: StartableRegion,
  commitWith: CommitWith,
): Promise<RelaySessionRow> {
  const inserting = insertSession(tx, request, region.region)
  const storingKey = storeIdempotencyKey(tx, request, request.sessionId)
  if (region.warm === 0) {
    const [rows] = await commitWith(inserting, storingKey)
    return onlyRow(rows)
  }
  const placement = { region: region.region, image: imageKey(region), reportSecondsMax: request.warmReportSecondsMax }
  const claiming = claimWarmInstance(tx, request.sessionId, placement)
  const reading = tx<RelaySessionRow[]>`
    select ${relaySessionColumns(tx)} from relay_sessions where id = ${request.sessionId}`
  const [, , , rows] = await commitWith(inserting, storingKey, claiming, reading)
  return onlyRow(rows)
}

const onlyRow = <Row>(rows: readonly Row[]): Row => {
  const [row] = rows
  if (row === undefined) throw new Error('the statement returned no row')
  return row
}

const insertSession = (tx: Sql, request: StartRequest, region: string) => tx<RelaySessionRow[]>`
  insert into relay_sessions (id, user_id, connection_id, region, command_initiator,
    pair_token_sealed, pair_token_hash, relay_ws_token_sealed, relay_ws_token_hash, created_at, commanded_at, deliver_at)
  values (${request.sessionId}, ${request.userId}, ${request.connectionId}, ${region}, 'user',
    ${request.pairToken.sealed}, ${request.pairToken.hash}, ${request.relayWsToken.sealed}, ${request.relayWsToken.hash},
    -- The transaction may have begun before the connection's last session stopped, and waited for that.
    clock_timestamp(), clock_timestamp(), now() + make_interval(secs => ${deliverAfterSeconds}))
  returning ${relaySessionColumns(tx)}`

const storeIdempotencyKey = (tx: Sql, { userId, idempotencyKey, requestHash }: StartRequest, sessionId: string) => tx`
  insert into idempotency_keys (user_id, key, request_hash, session_id)
  values (${userId}, ${idempotencyKey}, ${requestHash}, ${sessionId})
  on conflict (user_id, key) do update set
    request_hash = excluded.request_hash, session_id = excluded.session_id, accepted_at = now()`
