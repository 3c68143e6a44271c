/**
 * Starts a relay in the database: one transaction that locks the user's row, so that concurrent starts of one user run
 * one after the other. It reserves the session; its workflow does the rest.
 */

import {
  candidateRegions,
  countFreePlaces,
  forTrials,
  orderByRoom,
  type RegionLimit,
  type RegionUse,
  type RequestedRegion,
} from '../../domain/fleet/regions.ts'
import { isInGraceFor } from '../../domain/relay/session.ts'
import { displacedByStart, isStopping, type LiveSession } from '../../domain/relay/start.ts'
import type { Config } from '../../platform/config/config.ts'
import { imageKey, type RegionConfig } from '../../platform/config/regions.ts'
import { countsAgainstLimit, type Entitlement, findEntitlement } from '../billing/entitlements.ts'
import { beginTrial } from '../billing/trials.ts'
import { type RequestSender, senderName } from '../clients.ts'
import { type Database, first, type Sql } from '../connection.ts'
import { claimWarmInstance } from '../fleet/instances.ts'
import { findRegionUse, lockRegion } from '../fleet/regions.ts'
import { isGrantAlive } from '../identity/app-grants.ts'
import { isAuthSessionAlive } from '../identity/auth-sessions.ts'
import { type LockedAccount, lockAccount } from '../identity/users.ts'
import { type CommitWith, pipelinedTransaction } from '../pipelined-transaction.ts'
import { countRequest, type RateLimitWindow } from '../rate-limits.ts'
import { deliverAfterSeconds, recordCommand } from '../relay/commands.ts'
import { mayUseConnection, useConnection } from '../relay/connections.ts'
import { ensureConnectionPlayKey, type NewPlayKey } from '../relay/play-keys.ts'
import {
  findRelaySession,
  type PlayerKeyColumns,
  playerKey,
  type RelaySessionRow,
  relaySessionColumns,
} from '../relay/sessions.ts'
import type { SealedToken } from '../sealed-tokens.ts'

/** A region that may have warm instances of an image. */
type StartableRegion = RegionLimit & Pick<RegionConfig, 'warm' | 'image'>

interface StartRequest {
  readonly userId: string
  /** The auth session of the request, or the grant of the app that sent it. */
  readonly by: RequestSender
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
  /** Names the network of the client, in which so many trials may begin within a day. */
  readonly networkHash: Buffer
  /** The id and the sealed tokens of the session that is reserved when none exists. */
  readonly sessionId: string
  readonly pairToken: SealedToken
  readonly relayWsToken: SealedToken
  /** Becomes the key of the connection unless it has one. */
  readonly playKey: NewPlayKey
}

export type StartOutcome =
  | {
      readonly type: 'reserved' | 'existing' | 'replayed'
      readonly session: RelaySessionRow & Partial<PlayerKeyColumns>
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
  | {
      readonly type:
        | 'limit_reached'
        | 'connection_limit'
        | 'region_full'
        | 'region_drained'
        | 'trial_relay_running'
        | 'trial_network_limit'
        | 'trial_region_busy'
      readonly window: RateLimitWindow
    }

/**
 * A refused start stores nothing but its count against the rate limit. A replay, a reused key and an ended sign-in do
 * not count.
 */
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
  const candidates = candidateRegions(request.region, request.regions)
  const [account, isSignedIn, replay, window, live, entitlement, isNamed, uses] = await Promise.all([
    lockAccount(tx, request.userId),
    // Statements of their own, since they have to see what was committed while the one before them waited for the lock.
    isCallerAlive(tx, request),
    findStoredKey(tx, request),
    countRequest(tx, request.rateLimitKey),
    lockLiveSessions(tx, request.userId),
    findEntitlement(tx, request.userId, request.timeBank),
    mayUseConnection(tx, request.userId, request.connectionId),
    // Last: all starts of the region wait for its lock, and its holder waits for no other lock.
    findRegionUses(tx, candidates),
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
  const isTrial = entitlement.reasonCode === 'trial'
  if (entitlement.activeManagedConns >= entitlement.maxConcurrentConns)
    return { type: isTrial ? 'trial_relay_running' : 'limit_reached', window }
  if (!isNamed) return { type: 'connection_limit', window }
  const resumed = existing && (await recordCommand(tx, existing.id, 'run', 'user', { sender: request.by }))
  const region = resumed ? undefined : await chooseRegion(tx, request, candidates, uses, isTrial)
  if (region && 'type' in region)
    return { type: isTrial && region.type === 'region_full' ? 'trial_region_busy' : region.type, window }
  if (isTrial && !(await beginTrial(tx, request.userId, request.networkHash)))
    return { type: 'trial_network_limit', window }
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

const isCallerAlive = (tx: Sql, { userId, by }: StartRequest): Promise<boolean> =>
  'grantId' in by ? isGrantAlive(tx, { userId, grantId: by.grantId }) : isAuthSessionAlive(tx, { userId, ...by })

interface StoredKey {
  readonly requestHash: Buffer
  readonly sessionId: string
}

const findStoredKey = async (tx: Sql, { userId, idempotencyKey }: StartRequest): Promise<StoredKey | undefined> =>
  first(tx<StoredKey[]>`
    select request_hash, session_id from idempotency_keys
    where user_id = ${userId} and key = ${idempotencyKey} and accepted_at > now() - interval '1 hour'`)

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
  return locked.toSorted((a, b) => +a.createdAt - +b.createdAt)
}

/**
 * The only candidate is locked, so that no other start takes its places until the commit. Several are compared without
 * locks.
 */
const findRegionUses = (tx: Sql, candidates: readonly RegionLimit[]): Promise<RegionUse[]> =>
  Promise.all(
    candidates.map((region) =>
      candidates.length === 1 ? lockAndFindUse(tx, region) : findRegionUse(tx, region.region),
    ),
  )

async function lockAndFindUse(tx: Sql, { region }: RegionLimit): Promise<RegionUse> {
  const [, use] = await Promise.all([lockRegion(tx, region), findRegionUse(tx, region)])
  return use
}

type NoRegion = { readonly type: 'region_full' | 'region_drained' }

/**
 * The region of the new session, which is locked. Without one the start is refused.
 * @param uses of the candidates.
 * @param isTrial leaves the last places of each region to accounts with a plan.
 */
async function chooseRegion(
  tx: Sql,
  { region: requested, regions: all }: StartRequest,
  allowed: readonly StartableRegion[],
  uses: readonly RegionUse[],
  isTrial: boolean,
): Promise<StartableRegion | NoRegion> {
  const regions = isTrial ? all.map(forTrials) : all
  const candidates = isTrial ? allowed.map(forTrials) : allowed
  if (candidates.length > 1) return chooseByRoom(tx, candidates, uses)
  const [open] = orderByRoom(candidates, uses)
  if (open) return open
  if (!uses.some(({ isDrained }) => isDrained)) return { type: 'region_full' }
  if (typeof requested === 'object') return { type: 'region_drained' }
  // The lock of the drained default region is kept: no start that holds the lock of another region waits for it.
  return chooseByRoom(tx, regions, await Promise.all(regions.map(({ region }) => findRegionUse(tx, region))))
}

/**
 * Locks regions by room until one still has a place. Before the next one the lock of a full one is released, since two
 * starts with each other's locks would wait for ever.
 */
async function chooseByRoom(
  tx: Sql,
  regions: readonly StartableRegion[],
  uses: readonly RegionUse[],
): Promise<StartableRegion | NoRegion> {
  for (const candidate of orderByRoom(regions, uses)) {
    // Executed here, so that it is sent before the lock.
    const saving = tx`savepoint region_lock`.execute()
    const [use] = await Promise.all([lockAndFindUse(tx, candidate), saving])
    if (countFreePlaces(candidate, use) > 0) return candidate
    await tx`rollback to savepoint region_lock`
  }
  return { type: 'region_full' }
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
): Promise<RelaySessionRow & Partial<PlayerKeyColumns>> {
  // One statement, since all starts of the region wait for it. Each table is written once.
  const inserting = tx<RelaySessionRow[]>`
    with connection as (${useConnection(tx, request.userId, request.connectionId)}),
      player as (${ensureConnectionPlayKey(tx, request.userId, request.connectionId, request.playKey)}),
      idempotency_key as (${storeIdempotencyKey(tx, request, request.sessionId)})
    ${insertSession(tx, request, region.region)}`
  if (region.warm === 0) {
    const [rows] = await commitWith(inserting)
    return onlyRow(rows)
  }
  const placement = { region: region.region, image: imageKey(region), reportSecondsMax: request.warmReportSecondsMax }
  const claiming = claimWarmInstance(tx, request.sessionId, placement)
  const reading = tx<(RelaySessionRow & PlayerKeyColumns)[]>`
    select ${relaySessionColumns(tx)}, player.*
    from relay_sessions left join lateral (${playerKey(tx)}) player on true where id = ${request.sessionId}`
  const [, , rows] = await commitWith(inserting, claiming, reading)
  return onlyRow(rows)
}

const onlyRow = <Row>(rows: readonly Row[]): Row => {
  const [row] = rows
  if (row === undefined) throw new Error('the statement returned no row')
  return row
}

const insertSession = (tx: Sql, request: StartRequest, region: string) => tx<RelaySessionRow[]>`
  insert into relay_sessions (id, user_id, connection_id, region, command_initiator,
    pair_token_sealed, pair_token_hash, relay_ws_token_sealed, relay_ws_token_hash, may_move, started_by_app, started_by_plugin, created_at, commanded_at, deliver_at)
  values (${request.sessionId}, ${request.userId}, ${request.connectionId}, ${region}, 'user',
    ${request.pairToken.sealed}, ${request.pairToken.hash}, ${request.relayWsToken.sealed}, ${request.relayWsToken.hash},
    ${request.region === 'auto'}, ${'clientId' in request.by ? request.by.clientId : null},
    ${'clientId' in request.by ? null : senderName(tx, request.by)},
    -- The transaction may have begun before the connection's last session stopped, and waited for that.
    clock_timestamp(), clock_timestamp(), now() + make_interval(secs => ${deliverAfterSeconds}))
  returning ${relaySessionColumns(tx)}`

const storeIdempotencyKey = (tx: Sql, { userId, idempotencyKey, requestHash }: StartRequest, sessionId: string) => tx`
  insert into idempotency_keys (user_id, key, request_hash, session_id)
  values (${userId}, ${idempotencyKey}, ${requestHash}, ${sessionId})
  on conflict (user_id, key) do update set
    request_hash = excluded.request_hash, session_id = excluded.session_id, accepted_at = now()`
