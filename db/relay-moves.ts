/**
 * A relay session's moves, written as its actor decided them. One transaction writes the row, its history and the usage,
 * and is the one place where the actor's view meets what was accepted meanwhile: a newer command, a report, an outage.
 * Postgres's clock decides on every deadline; what goes back to the actor are durations.
 */
import { audit } from './audit.ts'
import { type Database, first, type Sql } from './connection.ts'
import { presenceSeconds } from './presence.ts'
import type { RelayActor, RelayCommand, RelayReason, RelayState } from './relay-sessions.ts'
import { closeUsageInterval, openUsageInterval } from './usage-intervals.ts'

export interface MoveRequest {
  readonly sessionId: string
  /** The number of moves that the actor knows of. */
  readonly version: number
  /** The last command that the actor has acted on, the present one included. */
  readonly commandSeq: number
  /** The type of the event that asks for the moves. */
  readonly cause: string
  /** One move, two that belong together, or none: then the row is only compared. */
  readonly moves: readonly { readonly to: RelayState; readonly reason: RelayReason; readonly actor: RelayActor }[]
  /** How long the state after the moves lasts by itself, in seconds; null when it has no end of its own. */
  readonly lastsSeconds: number | null
  /** The operator's request on the row that asks for the move; null when no operator does. */
  readonly operatorRequestId: string | null
  readonly settings: {
    readonly provisionTimeoutSeconds: number
    readonly healthTimeoutSeconds: number
    readonly graceSeconds: number
    readonly maxSessionSeconds: number
  }
  /** How often relays report, in seconds. */
  readonly healthIntervalSeconds: number
}

/** The row as the actor takes it over. */
export interface MovedRow {
  readonly state: RelayState
  readonly reason: RelayReason
  readonly version: number
  readonly instanceId: string | null
  /** The last command that the state reflects. */
  readonly commandSeq: number
  /** Until the state ends by itself, in milliseconds from now; null when it has no end of its own. */
  readonly endsInMillis: number | null
}

export type MoveOutcome =
  /** The row as it is now: moved, moved by an earlier try of the same request, or not to be moved. */
  | { readonly type: 'row'; readonly moved: boolean; readonly row: MovedRow }
  /** Nothing moved: a command was accepted that the actor does not have yet. */
  | { readonly type: 'newer_command'; readonly command: { seq: number; command: RelayCommand; actor: RelayActor } }
  /** Nothing moved: the relay that was to be given up does report. */
  | { readonly type: 'reporting' }
  /** Nothing moved: the deadline has not come, or was put off because of an outage of ours. */
  | { readonly type: 'postponed'; readonly forMillis: number }
  /** Nothing moved: the operator's request was answered as failed before it got here. */
  | { readonly type: 'withdrawn' }

interface LockedRow {
  id: string
  userId: string
  state: RelayState
  reason: RelayReason
  version: number
  command: RelayCommand
  commandSeq: number
  commandActor: RelayActor
  commandDeliveredSeq: number
  instanceId: string | null
  operatorRequest: { id: string; ip: string } | null
  endsInMillis: number | null
}

export const moveSession = (sql: Database, request: MoveRequest): Promise<MoveOutcome> =>
  sql.begin(async (tx): Promise<MoveOutcome> => {
    const row = await lock(tx, request.sessionId)
    // A session that went with its account is as good as stopped.
    if (!row) return { type: 'row', moved: false, row: withoutAccount(request) }
    if (row.version !== request.version) return { type: 'row', moved: false, row: view(row) }
    if (row.commandSeq > request.commandSeq) {
      return {
        type: 'newer_command',
        command: { seq: row.commandSeq, command: row.command, actor: row.commandActor },
      }
    }
    if (request.moves.length === 0) return { type: 'row', moved: false, row: view(row) }
    if (request.operatorRequestId !== null && request.operatorRequestId !== row.operatorRequest?.id)
      return { type: 'withdrawn' }
    const objection = await objectionTo(tx, row, request)
    if (objection) return objection
    return { type: 'row', moved: true, row: await make(tx, row, request) }
  }) as Promise<MoveOutcome>

const lock = async (tx: Sql, id: string): Promise<LockedRow | undefined> =>
  first(
    await tx<LockedRow[]>`
      select id, user_id, state, reason, version, command, command_seq, command_actor, command_delivered_seq, instance_id,
        operator_request, (extract(epoch from grace_ends_at - clock_timestamp()) * 1000)::float8 as ends_in_millis
      from relay_sessions where id = ${id} for update`,
  )

const view = (row: LockedRow): MovedRow => ({
  state: row.state,
  reason: row.reason,
  version: row.version,
  instanceId: row.instanceId,
  commandSeq: row.commandDeliveredSeq,
  endsInMillis: row.endsInMillis,
})

const withoutAccount = ({ version, commandSeq }: MoveRequest): MovedRow => ({
  state: 'stopped',
  reason: 'force_disconnected',
  version: version + 1,
  instanceId: null,
  commandSeq,
  endsInMillis: null,
})

async function make(tx: Sql, row: LockedRow, request: MoveRequest): Promise<MovedRow> {
  const { moves, lastsSeconds } = request
  for (const [index, move] of moves.entries()) {
    await tx`
      with session as (
        update relay_sessions set
          state = ${move.to}, reason = ${move.reason}, version = version + 1,
          active_at = case when ${move.to} = 'active' then coalesce(active_at, now()) else active_at end,
          grace_started_at = case when ${move.to} = 'grace' then now() else grace_started_at end,
          grace_ends_at = case when ${move.to} = 'grace' then now() + make_interval(secs => ${lastsSeconds ?? 0}) end,
          stopped_at = case when ${move.to} = 'stopped' then now() end,
          pair_token = case when ${move.to} <> 'stopped' then pair_token end,
          pair_token_sealed = case when ${move.to} <> 'stopped' then pair_token_sealed end,
          pair_token_hash = case when ${move.to} <> 'stopped' then pair_token_hash end,
          relay_ws_token = case when ${move.to} <> 'stopped' then relay_ws_token end,
          relay_ws_token_sealed = case when ${move.to} <> 'stopped' then relay_ws_token_sealed end,
          relay_ws_token_hash = case when ${move.to} <> 'stopped' then relay_ws_token_hash end,
          -- The state reflects this command, and a stopped session has none left to be delivered.
          command_delivered_seq = case when ${move.to} = 'stopped' then command_seq
            else greatest(command_delivered_seq, ${request.commandSeq}) end,
          operator_request = null, signal_at = null, signal_attempts = 0
        where id = ${row.id} returning id, version
      )
      insert into relay_transitions (session_id, version, from_state, to_state, reason, actor)
      select id, version, ${moves[index - 1]?.to ?? row.state}, ${move.to}, ${move.reason}, ${move.actor} from session`
    if (move.to === 'active') await openUsageInterval(tx, row.id, row.userId)
    if (move.to === 'stopped') await closeUsageInterval(tx, row.id, request)
  }
  const last = moves.at(-1)
  const commandSeq = await followUp(tx, row, request, last?.to ?? row.state)
  return {
    state: last?.to ?? row.state,
    reason: last?.reason ?? row.reason,
    version: row.version + moves.length,
    instanceId: row.instanceId,
    commandSeq,
    endsInMillis: lastsSeconds === null ? null : lastsSeconds * 1000,
  }
}

/** Writes what an operator's move brings along. Answers the number of the last command that the state reflects. */
async function followUp(tx: Sql, row: LockedRow, request: MoveRequest, to: RelayState): Promise<number> {
  const { operatorRequest: asked } = row
  if (request.operatorRequestId === null || !asked) return request.commandSeq
  await audit(tx, {
    actor: 'operator',
    action: 'session_moved',
    userId: row.userId,
    ip: asked.ip,
    detail: { session_id: row.id, to, request_id: asked.id },
  })
  if (to !== 'active' || row.command === 'run') return request.commandSeq
  // A relay that an operator brought back runs because it was commanded to, and counts as such.
  const seq = request.commandSeq + 1
  await tx`
    update relay_sessions set command = 'run', command_actor = 'operator', command_seq = ${seq},
      command_delivered_seq = ${seq}, commanded_at = clock_timestamp()
    where id = ${row.id}`
  return seq
}

/** Why the event does not move the session, or nothing when it does. */
function objectionTo(tx: Sql, row: LockedRow, request: MoveRequest): Promise<MoveOutcome | undefined> {
  switch (request.cause) {
    case 'health_lost':
    case 'instance_gone':
      return unlessReporting(tx, row, request)
    case 'idle':
      return unlessIdle(tx, row, request)
    case 'deadline':
      return row.state === 'provisioning'
        ? untilProvisioningIsOver(tx, row, request)
        : untilGraceIsOver(tx, row, request)
    default:
      return Promise.resolve(undefined)
  }
}

const unmoved = (row: LockedRow): MoveOutcome => ({ type: 'row', moved: false, row: view(row) })

async function unlessReporting(tx: Sql, row: LockedRow, { settings }: MoveRequest): Promise<MoveOutcome | undefined> {
  const fresh = await tx`
    select from relay_health where session_id = ${row.id} and instance_id = ${row.instanceId}
      and last_report_at > now() - make_interval(secs => ${settings.healthTimeoutSeconds})`
  return fresh.length > 0 ? unmoved(row) : undefined
}

/** A session over its longest duration is ended only while its relay reports that no stream comes in. */
async function unlessIdle(tx: Sql, row: LockedRow, { settings }: MoveRequest): Promise<MoveOutcome | undefined> {
  const idle = await tx`
    select from relay_health where session_id = ${row.id} and instance_id = ${row.instanceId} and idle_since is not null
      and last_report_at > now() - make_interval(secs => ${settings.healthTimeoutSeconds})`
  return idle.length > 0 ? undefined : unmoved(row)
}

/** Time in which no worker could create the instance, or no report could be taken, does not count. */
async function untilProvisioningIsOver(
  tx: Sql,
  row: LockedRow,
  { settings: { provisionTimeoutSeconds, healthTimeoutSeconds } }: MoveRequest,
): Promise<MoveOutcome | undefined> {
  const apiBreak = presenceSeconds('api', healthTimeoutSeconds)
  const workerBreak = presenceSeconds('worker', provisionTimeoutSeconds)
  const found = first(
    await tx<{ reported: boolean; millis: number }[]>`
      select exists (select from relay_health h where h.session_id = s.id and h.instance_id = s.instance_id
          and h.last_report_at > s.created_at) as reported,
        (extract(epoch from greatest(
          s.created_at + make_interval(secs => ${provisionTimeoutSeconds}),
          -- A worker asks, so a presence that was not confirmed lately is about to begin again.
          case when w.seen_at < now() - make_interval(secs => ${workerBreak}) then now() else w.since end
            + make_interval(secs => ${provisionTimeoutSeconds}),
          -- Without an instance there is none to report.
          case when s.instance_id is not null then a.since + make_interval(secs => ${provisionTimeoutSeconds}) end,
          case when s.instance_id is not null and a.seen_at < now() - make_interval(secs => ${apiBreak})
            then clock_timestamp() + make_interval(secs => ${apiBreak}) end
        ) - clock_timestamp()) * 1000)::float8 as millis
      from relay_sessions s, presence w, presence a
      where s.id = ${row.id} and w.role = 'worker' and a.role = 'api'`,
  )
  if (found?.reported) return { type: 'reporting' }
  return found && found.millis > 0 ? { type: 'postponed', forMillis: found.millis } : undefined
}

/** A grace for lost health ends only after it could be heard for its whole length that the relay does not return. */
async function untilGraceIsOver(
  tx: Sql,
  row: LockedRow,
  { settings: { healthTimeoutSeconds, graceSeconds } }: MoveRequest,
): Promise<MoveOutcome | undefined> {
  const apiBreak = presenceSeconds('api', healthTimeoutSeconds)
  const isLost = row.reason === 'health_lost'
  const found = first(
    await tx<{ reported: boolean; endsAt: Date; millis: number }[]>`
      with ending as (
        select s.id, s.instance_id, s.grace_started_at, greatest(s.grace_ends_at,
          case when ${isLost} and a.since > s.grace_started_at then a.since + make_interval(secs => ${graceSeconds}) end,
          case when ${isLost} and a.seen_at < now() - make_interval(secs => ${apiBreak})
            then clock_timestamp() + make_interval(secs => ${apiBreak}) end) as ends_at
        from relay_sessions s, presence a where s.id = ${row.id} and a.role = 'api'
      )
      select ends_at, (extract(epoch from ends_at - clock_timestamp()) * 1000)::float8 as millis,
        ${isLost} and exists (select from relay_health h where h.session_id = e.id and h.instance_id = e.instance_id
          and h.last_report_at > e.grace_started_at) as reported
      from ending e`,
  )
  if (found?.reported) return { type: 'reporting' }
  if (!found || found.millis <= 0) return undefined
  // Clients count down to it.
  await tx`update relay_sessions set grace_ends_at = ${found.endsAt} where id = ${row.id} and grace_ends_at < ${found.endsAt}`
  return { type: 'postponed', forMillis: found.millis }
}
