/**
 * A relay session's moves, written as its actor decided them. One transaction writes the row, its history and the usage,
 * and is the one place where the actor's view meets what was accepted meanwhile: a newer command, a report, an outage.
 */
import { type Database, first, type Sql } from './connection.ts'
import { reportingSince } from './relay-health.ts'
import type { RelayActor, RelayCommand, RelayReason, RelayState } from './relay-sessions.ts'

export interface MoveRequest {
  readonly sessionId: string
  /** The number of moves that the actor knows of. */
  readonly version: number
  /** The last command that the actor has acted on, the present one included. */
  readonly commandSeq: number
  /** One move, or two that belong together. */
  readonly moves: readonly { readonly to: RelayState; readonly reason: RelayReason; readonly actor: RelayActor }[]
  /** When the state after the moves ends by itself, in milliseconds since 1970. */
  readonly deadlineAt: number | null
  /** How long the present state may wait for a report, in seconds. */
  readonly windowSeconds: number
  readonly healthTimeoutSeconds: number
}

export type MoveOutcome =
  /** The row as it is now: moved, or moved by an earlier try of the same request. */
  | {
      readonly type: 'row'
      /** Whether this try moved it. */
      readonly moved: boolean
      readonly row: { state: RelayState; reason: RelayReason; version: number; deadlineAt: number | null }
    }
  /** Nothing moved: a command was accepted that the actor does not have yet. */
  | { readonly type: 'newer_command'; readonly command: { seq: number; command: RelayCommand; actor: RelayActor } }
  /** Nothing moved: the relay that was given up does report. */
  | { readonly type: 'reporting' }
  /** Nothing moved: reports could not be taken for a while; the wait ends later, in milliseconds since 1970. */
  | { readonly type: 'postponed'; readonly until: number }

interface LockedRow {
  id: string
  user_id: string
  state: RelayState
  reason: RelayReason
  version: number
  command: RelayCommand
  command_seq: number
  command_actor: RelayActor
  instance_id: string | null
  created_at: Date
  grace_started_at: Date | null
  grace_ends_at: Date | null
}

export const moveSession = (sql: Database, request: MoveRequest): Promise<MoveOutcome> =>
  sql.begin(async (tx): Promise<MoveOutcome> => {
    const row = await lock(tx, request.sessionId)
    // A session that went with its account is as good as stopped.
    if (!row)
      return {
        type: 'row',
        moved: false,
        row: { state: 'stopped', reason: 'force_disconnected', version: request.version + 1, deadlineAt: null },
      }
    if (row.version !== request.version) return { type: 'row', moved: false, row: view(row) }
    if (row.command_seq > request.commandSeq) {
      return {
        type: 'newer_command',
        command: { seq: row.command_seq, command: row.command, actor: row.command_actor },
      }
    }
    const objection = await objectionTo(tx, row, request)
    if (objection) return objection
    for (const [index, move] of request.moves.entries()) {
      await tx`
        with session as (
          update relay_sessions set
            state = ${move.to}, reason = ${move.reason}, version = version + 1,
            active_at = case when ${move.to} = 'active' then coalesce(active_at, now()) else active_at end,
            grace_started_at = case when ${move.to} = 'grace' then now() else grace_started_at end,
            grace_ends_at = case when ${move.to} = 'grace' then to_timestamp(${(request.deadlineAt ?? Date.now()) / 1000}) end,
            stopped_at = case when ${move.to} = 'stopped' then now() end,
            pair_token = case when ${move.to} <> 'stopped' then pair_token end,
            pair_token_sealed = case when ${move.to} <> 'stopped' then pair_token_sealed end,
            pair_token_hash = case when ${move.to} <> 'stopped' then pair_token_hash end,
            relay_ws_token = case when ${move.to} <> 'stopped' then relay_ws_token end,
            relay_ws_token_sealed = case when ${move.to} <> 'stopped' then relay_ws_token_sealed end,
            relay_ws_token_hash = case when ${move.to} <> 'stopped' then relay_ws_token_hash end
          where id = ${row.id} returning id, version
        )
        insert into relay_transitions (session_id, version, from_state, to_state, reason, actor)
        select id, version, ${request.moves[index - 1]?.to ?? row.state}, ${move.to}, ${move.reason}, ${move.actor} from session`
      await meter(tx, row, move.to)
    }
    const last = request.moves.at(-1)
    return {
      type: 'row',
      moved: true,
      row: {
        state: last?.to ?? row.state,
        reason: last?.reason ?? row.reason,
        version: row.version + request.moves.length,
        deadlineAt: request.deadlineAt,
      },
    }
  }) as Promise<MoveOutcome>

const lock = async (tx: Sql, id: string): Promise<LockedRow | undefined> =>
  first(
    await tx<LockedRow[]>`
      select id, user_id, state, reason, version, command, command_seq, command_actor, instance_id,
        created_at, grace_started_at, grace_ends_at
      from relay_sessions where id = ${id} for update`,
  )

const view = (row: LockedRow) => ({
  state: row.state,
  reason: row.reason,
  version: row.version,
  deadlineAt: row.grace_ends_at?.getTime() ?? null,
})

/** A relay is given up for silence only when it really was silent, and could have been heard. */
async function objectionTo(tx: Sql, row: LockedRow, request: MoveRequest): Promise<MoveOutcome | undefined> {
  const reason = request.moves[0]?.reason
  const waited =
    reason === 'provision_timeout'
      ? row.created_at
      : reason === 'grace_elapsed' && row.reason === 'health_lost'
        ? row.grace_started_at
        : null
  if (reason !== 'health_lost' && waited === null) return undefined

  const report = first(
    await tx<{ at: Date; fresh: boolean }[]>`
      select last_report_at as at, last_report_at > now() - make_interval(secs => ${request.healthTimeoutSeconds}) as fresh
      from relay_health where session_id = ${row.id} and instance_id = ${row.instance_id}`,
  )
  if (reason === 'health_lost') return report?.fresh ? { type: 'row', moved: false, row: view(row) } : undefined
  if (waited === null) return undefined
  if (report && report.at > waited) return { type: 'reporting' }

  const reporting = await reportingSince(tx, request.healthTimeoutSeconds)
  if (!reporting.possible)
    return { type: 'postponed', until: Date.now() + 1000 * Math.max(1, request.healthTimeoutSeconds / 3) }
  const until = reporting.since.getTime() + request.windowSeconds * 1000
  // Without an instance there is nobody to report, so our own absence made no difference.
  return row.instance_id !== null && reporting.since > waited && until > Date.now()
    ? { type: 'postponed', until }
    : undefined
}

/** Opens the usage interval when the relay becomes active, and closes it when the session ends. */
async function meter(tx: Sql, row: LockedRow, to: RelayState): Promise<void> {
  if (to === 'active') {
    await tx`
      insert into usage_intervals (session_id, user_id, started_at) values (${row.id}, ${row.user_id}, now())
      on conflict (session_id) where ended_at is null do nothing`
  } else if (to === 'stopped') {
    // A relay that died silently is counted up to its last report and half a minute.
    await tx`
      update usage_intervals u set ended_at = least(now(), greatest(u.started_at, coalesce(
        (select last_report_at + interval '30 seconds' from relay_health h where h.session_id = u.session_id), now())))
      where session_id = ${row.id} and ended_at is null`
  }
}
