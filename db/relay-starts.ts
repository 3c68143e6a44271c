/**
 * Starting a relay, as far as rows go: one transaction that holds the user's row, so that of any number of starts at once
 * each sees what the one before it left. It reserves the session; the actor does the rest.
 */
import type { Config } from '../platform/config/config.ts'
import { aliveAuthSessions } from './auth-sessions.ts'
import { type Database, first, type Sql } from './connection.ts'
import { countsAgainstLimit, type Entitlement, findEntitlement } from './entitlements.ts'
import { countRequest, type RateLimitWindow } from './rate-limits.ts'
import {
  deliverAfterSeconds,
  type RelaySessionRow,
  recordCommand,
  relaySessionById,
  relaySessionColumns,
} from './relay-sessions.ts'
import type { SealedToken } from './sealed-tokens.ts'

export interface StartRequest {
  readonly userId: string
  /** The sign-in that asks. */
  readonly authSessionId: string
  /** A UUID; remembered for an hour with the hash of what it was used for. */
  readonly idempotencyKey: string
  readonly requestHash: Buffer
  readonly connectionId: string
  readonly region: string
  /** The most live sessions that the region takes. */
  readonly regionCapacity: number
  readonly rateLimitKey: string
  readonly rateLimit: number
  readonly timeBank: Config['timeBank']
  /** Of the session that is reserved if none exists: its tokens are sealed for it. */
  readonly sessionId: string
  readonly pairToken: SealedToken
  readonly relayWsToken: SealedToken
}

export type StartOutcome =
  | {
      readonly type: 'reserved' | 'existing' | 'replayed'
      readonly session: RelaySessionRow
      readonly toDeliver: readonly RelaySessionRow[]
      readonly window?: RateLimitWindow
    }
  | { readonly type: 'key_reused' }
  /** The sign-in ended after the request was let in. */
  | { readonly type: 'signed_out' }
  | { readonly type: 'rate_limited'; readonly window: RateLimitWindow }
  | { readonly type: 'denied'; readonly entitlement: Entitlement; readonly window: RateLimitWindow }
  | { readonly type: 'limit_reached' | 'region_full'; readonly window: RateLimitWindow }

/** Refusals keep nothing but the request's count. */
export const startRelay = (sql: Database, request: StartRequest): Promise<StartOutcome> =>
  sql.begin(async (tx): Promise<StartOutcome> => {
    await tx`select from users where id = ${request.userId} for no key update`
    const [isSignedIn] = await aliveAuthSessions(tx, [request])
    if (!isSignedIn) return { type: 'signed_out' }
    const replay = await replayed(tx, request)
    if (replay) return replay
    const window = await countRequest(tx, request.rateLimitKey)
    if (window.requests > request.rateLimit) return { type: 'rate_limited', window }

    const live = await lockLive(tx, request.userId)
    // One that was ordered to disconnect never comes back: the connection may have another beside it.
    const existing = live.find(
      (session) => session.connectionId === request.connectionId && session.command !== 'disconnect',
    )
    if (existing && !isStopping(existing)) {
      await remember(tx, request, existing.id)
      // Asked to go on already, but its actor may not know yet.
      return { type: 'existing', session: existing, toDeliver: isInStopGrace(existing) ? [existing] : [], window }
    }
    const entitlement = await findEntitlement(tx, request.userId, request.timeBank)
    if (!entitlement) throw new Error('a signed-in user has no row')
    if (entitlement.relayAccessStatus !== 'enabled') return { type: 'denied', entitlement, window }
    if (entitlement.activeManagedConns >= entitlement.maxConcurrentConns) return { type: 'limit_reached', window }
    const resumed = existing && (await recordCommand(tx, existing.id, 'run', 'user'))
    if (!resumed && (await isFull(tx, request))) return { type: 'region_full', window }
    const others = live.filter((session) => session !== existing)
    const displaced = await makeRoom(tx, others, entitlement.maxConcurrentConns)
    const session = resumed ?? (await reserve(tx, request))
    await remember(tx, request, session.id)
    return { type: resumed ? 'existing' : 'reserved', session, toDeliver: [session, ...displaced], window }
  }) as Promise<StartOutcome>

/** The same key within its hour: the session as it is now, whatever became of it. */
async function replayed(
  tx: Sql,
  { userId, idempotencyKey, requestHash }: StartRequest,
): Promise<StartOutcome | undefined> {
  const known = first(
    await tx<{ requestHash: Buffer; sessionId: string }[]>`
      select request_hash, session_id from idempotency_keys
      where user_id = ${userId} and key = ${idempotencyKey} and accepted_at > now() - interval '1 hour'`,
  )
  if (!known) return undefined
  if (!known.requestHash.equals(requestHash)) return { type: 'key_reused' }
  const session = await relaySessionById(tx, known.sessionId)
  return session && { type: 'replayed', session, toDeliver: [] }
}

interface LiveSession extends RelaySessionRow {
  readonly counts: boolean
}

/** All live sessions of the user, oldest first, held as they are until the transaction ends. Locked in the order of ids. */
const lockLive = async (tx: Sql, userId: string): Promise<LiveSession[]> => {
  const locked = await tx<LiveSession[]>`
    select ${relaySessionColumns(tx)}, ${countsAgainstLimit(tx)} as counts from relay_sessions s
    where user_id = ${userId} and state <> 'stopped' order by id for no key update`
  return locked.toSorted((one, other) => +one.createdAt - +other.createdAt)
}

/** It was asked to end and may still be asked to go on, which takes the same entitlement as a new start. */
const isStopping = ({ counts, command }: LiveSession): boolean => !counts && command !== 'disconnect'

const isInStopGrace = ({ state, reason }: RelaySessionRow): boolean => state === 'grace' && reason === 'stop_requested'

/** More than there can be transactions at once, by Postgres's own limit on connections as it is commonly set. */
const crowdMax = 500

/**
 * The last places of a region are reserved by one transaction at a time, so that each is given once. While there are more
 * than transactions could take at once, none waits for another.
 */
async function isFull(tx: Sql, request: StartRequest): Promise<boolean> {
  if ((await takenIn(tx, request)) + crowdMax < request.regionCapacity) return false
  await tx`select pg_advisory_xact_lock(hashtextextended('region:' || ${request.region}, 0))`
  return (await takenIn(tx, request)) >= request.regionCapacity
}

const takenIn = async (tx: Sql, { region }: StartRequest): Promise<number> =>
  first(
    await tx<
      { sessions: number }[]
    >`select count(*)::int as sessions from relay_sessions where region = ${region} and state <> 'stopped'`,
  )?.sessions ?? 0

/** When relays in grace for a stop leave no room for one more, as many of them as needed go at once, the oldest first. */
async function makeRoom(tx: Sql, live: readonly LiveSession[], most: number): Promise<RelaySessionRow[]> {
  const staying = live.filter(({ command }) => command === 'run' || command === 'stop')
  const displaced: RelaySessionRow[] = []
  for (const { id } of staying.filter(isStopping).slice(0, Math.max(0, staying.length + 1 - most))) {
    const stopped = await recordCommand(tx, id, 'stop_now', 'system')
    if (stopped) displaced.push(stopped)
  }
  return displaced
}

async function reserve(tx: Sql, request: StartRequest): Promise<RelaySessionRow> {
  const session = first(
    await tx<RelaySessionRow[]>`
      insert into relay_sessions (id, user_id, connection_id, region, command_actor,
        pair_token_sealed, pair_token_hash, relay_ws_token_sealed, relay_ws_token_hash, deliver_at)
      values (${request.sessionId}, ${request.userId}, ${request.connectionId}, ${request.region}, 'user',
        ${request.pairToken.sealed}, ${request.pairToken.hash}, ${request.relayWsToken.sealed}, ${request.relayWsToken.hash},
        now() + make_interval(secs => ${deliverAfterSeconds}))
      returning ${relaySessionColumns(tx)}`,
  )
  if (!session) throw new Error('an inserted session did not come back')
  return session
}

const remember = async (
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

/** Forgets keys whose hour is over. */
export const forgetOldKeys = async (sql: Sql): Promise<number> =>
  (await sql`delete from idempotency_keys where accepted_at < now() - interval '1 hour'`).count
