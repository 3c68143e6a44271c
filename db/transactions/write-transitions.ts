/**
 * Writes the transitions that a relay session's workflow decided on. One transaction updates the row, the history, the
 * usage and the audit trail. It locks the row first and compares it with the workflow's state: a newer command, a
 * report or an outage of ours may have come in between. Deadlines are compared with Postgres's clock, so the outcomes
 * contain durations.
 */
import { findObjection, isCheckedForObjections, type ObservedSession } from '../../domain/relay/health.ts'
import type {
  Initiator,
  RelayCommand,
  RelayReason,
  RelaySessionEvent,
  RelayState,
  SessionDetail,
  Transition,
} from '../../domain/relay/session.ts'
import { isInGraceFor, replacementsPerHourMax } from '../../domain/relay/session.ts'
import { recordAuditEntry } from '../audit.ts'
import { findTrialMillisLeft } from '../billing/trials.ts'
import { closeUsageInterval, closeUsageIntervalAt, openUsageInterval } from '../billing/usage-intervals.ts'
import { type Database, first, hasRow, type Sql } from '../connection.ts'
import { retireReplacements } from '../fleet/instances.ts'
import { notifyOfTransitions } from '../notifications/relay-notices.ts'
import { hasEnabledNotifications, type Notify } from '../notifications/settings.ts'
import { joinPath, presenceColumns, type ReceptionRow, receptionColumns, toPresence, toReception } from '../presence.ts'
import { type AcceptedCommand, recordOperatorCommand } from '../relay/commands.ts'
import { countRecentReplacements, type FinishedReplacement, finishReplacement } from '../relay/replacements.ts'
import { addOwnStreamEvent } from '../relay/stream-events.ts'
import { isRetired } from '../retired-instances.ts'

export interface TransitionsRequest {
  readonly sessionId: string
  /** The number of transitions in the workflow's state. */
  readonly version: number
  /** The last command that the workflow has carried out, the present one included. */
  readonly commandSeq: number
  /** The event that causes the transitions. */
  readonly cause: RelaySessionEvent['type']
  /** One transition, or two that belong together. Without any, the row is only compared. */
  readonly transitions: readonly Transition[]
  /** The length of the grace that the transitions begin; null when they lead elsewhere. */
  readonly graceSeconds: number | null
  /** The id of the operator's request on the row; null when the event is no operator's request. */
  readonly operatorRequestId: string | null
  readonly settings: {
    readonly provisionTimeoutSeconds: number
    readonly healthTimeoutSeconds: number
    readonly graceSeconds: number
    readonly replacementSeconds?: number
    readonly maxSessionSeconds: number
  }
  /** What the reason leaves open. */
  readonly detail?: SessionDetail | null
  /** How often relays report. */
  readonly healthIntervalSeconds: number
  /** The length of trials; 0 for none. */
  readonly trialSeconds: number
}

/** The part of a session's row that its workflow keeps as its own state. */
export interface StoredSessionState {
  readonly state: RelayState
  readonly reason: RelayReason
  readonly version: number
  readonly instanceId: string | null
  /** The last command that the state reflects. */
  readonly commandSeq: number
  /** Until grace ends, in milliseconds from now; null outside of grace. */
  readonly endsInMillis: number | null
  /**
   * Until the time of the account's trial is used up, in milliseconds from now; null for a relay of a plan, and absent
   * where there are no trials.
   */
  readonly trialEndsInMillis?: number | null
}

export type TransitionsOutcome =
  /** The state as it is now: written by this request, by an earlier attempt of it, or left as it was. */
  | {
      readonly type: 'stored'
      readonly isWritten: boolean
      readonly session: StoredSessionState
      /** How long the session was without a relay, when another one has replaced the lost one. */
      readonly awaySeconds?: number
    }
  /** Nothing is written: a command was accepted that the workflow does not have yet. */
  | { readonly type: 'newer_command'; readonly command: AcceptedCommand }
  /** Nothing is written: the instance of the session was replaced too often lately. */
  | { readonly type: 'unstable' }
  /** Nothing is written: the relay that the transitions would give up reports. */
  | { readonly type: 'reporting' }
  /** Nothing is written: the deadline is still ahead, or is extended by an outage of ours. */
  | { readonly type: 'postponed'; readonly forMillis: number }
  /** Nothing is written: the report that the event expects has not come yet. */
  | { readonly type: 'not_reported' }
  /** Nothing is written: the operator's request was withdrawn, because it had been answered with an error. */
  | { readonly type: 'withdrawn' }

interface LockedSession {
  id: string
  userId: string
  state: RelayState
  reason: RelayReason
  version: number
  command: RelayCommand
  commandSeq: number
  commandInitiator: Initiator
  commandDeliveredSeq: number
  instanceId: string | null
  operatorRequest: { id: string; ip: string; publicReason?: string } | null
  /** Of an operator's disconnect; null without one. */
  disconnectPublicReason: string | null
  endsInMillis: number | null
  hasEnabledNotifications: boolean
}

/**
 * Safe to repeat: a second attempt finds the version of the first and answers with the stored state.
 * @param notify enqueues the notifications of the user; called once for each transition that has one.
 */
export const writeTransitions = (
  sql: Database,
  request: TransitionsRequest,
  notify?: Notify,
): Promise<TransitionsOutcome> =>
  sql.begin(async (tx): Promise<TransitionsOutcome> => {
    const row = await lockSession(tx, request.sessionId)
    // The account was deleted together with its sessions, so this one counts as stopped.
    if (!row) return unchanged(stoppedWithAccount(request))
    if (row.version !== request.version) return unchanged(await withTrial(tx, row, request, storedState(row)))
    if (row.commandSeq > request.commandSeq) {
      const command = { seq: row.commandSeq, command: row.command, initiator: row.commandInitiator }
      return { type: 'newer_command', command }
    }
    if (request.transitions.length === 0)
      return (await hasMissedFirstReport(tx, row))
        ? { type: 'reporting' }
        : unchanged(await withTrial(tx, row, request, storedState(row)))
    if (request.operatorRequestId !== null && request.operatorRequestId !== row.operatorRequest?.id)
      return { type: 'withdrawn' }
    const objection = (await objectToTrialEnd(tx, row, request)) ?? (await objectTo(tx, row, request))
    if (objection) return objection
    if (await isUnstable(tx, request)) return { type: 'unstable' }
    const { session: written, replacement } = await write(tx, row, request)
    const session = await withTrial(tx, row, request, written)
    // What a transition notifies of is off by default.
    if (notify && row.hasEnabledNotifications)
      await notifyOfTransitions(tx, row.id, { transitions: request.transitions, replacement }, notify)
    return {
      type: 'stored',
      isWritten: true,
      session,
      ...(replacement ? { awaySeconds: (+replacement.restoredAt - +replacement.failedAt) / 1000 } : {}),
    }
  }) as Promise<TransitionsOutcome>

const lockSession = async (tx: Sql, id: string): Promise<LockedSession | undefined> =>
  first(tx<LockedSession[]>`
    select id, user_id, state, reason, version, command, command_seq, command_initiator, command_delivered_seq,
      instance_id, operator_request,
      case when command = 'disconnect' and command_initiator = 'operator' then (
        select public_reason from relay_commands c
        where c.session_id = relay_sessions.id and c.command = 'disconnect' and public_reason is not null
        order by seq desc limit 1) end as disconnect_public_reason,
      ${hasEnabledNotifications(tx, tx`relay_sessions.user_id`)} as has_enabled_notifications,
      (extract(epoch from grace_ends_at - clock_timestamp()) * 1000)::float8 as ends_in_millis
    from relay_sessions where id = ${id} for update`)

/** A warm instance may report before the workflow of its session runs. */
const hasMissedFirstReport = async (tx: Sql, { id, state, instanceId }: LockedSession): Promise<boolean> =>
  state === 'provisioning' &&
  instanceId !== null &&
  (await hasRow(tx`select from relay_health where session_id = ${id} and instance_id = ${instanceId}`))

const unchanged = (session: StoredSessionState): TransitionsOutcome => ({ type: 'stored', isWritten: false, session })

const storedState = (row: LockedSession): StoredSessionState => ({
  state: row.state,
  reason: row.reason,
  version: row.version,
  instanceId: row.instanceId,
  commandSeq: row.commandDeliveredSeq,
  endsInMillis: row.endsInMillis,
})

/** Adds when the trial ends, for a relay whose time is counted. */
async function withTrial(
  tx: Sql,
  { userId }: LockedSession,
  { trialSeconds }: TransitionsRequest,
  session: StoredSessionState,
): Promise<StoredSessionState> {
  if (trialSeconds === 0) return session
  const isCounted = session.state === 'active' || session.state === 'grace'
  return { ...session, trialEndsInMillis: isCounted ? await findTrialMillisLeft(tx, userId, trialSeconds) : null }
}

/** The timer of a trial runs by Temporal's clock; the Time Bank and the account's plan of now decide. */
async function objectToTrialEnd(
  tx: Sql,
  row: LockedSession,
  { cause, trialSeconds }: TransitionsRequest,
): Promise<TransitionsOutcome | undefined> {
  if (cause !== 'trial_ended') return undefined
  const trialEndsInMillis = await findTrialMillisLeft(tx, row.userId, trialSeconds)
  return trialEndsInMillis === 0 ? undefined : unchanged({ ...storedState(row), trialEndsInMillis })
}

const stoppedWithAccount = ({ version, commandSeq }: TransitionsRequest): StoredSessionState => ({
  state: 'stopped',
  reason: 'force_disconnected',
  version: version + 1,
  instanceId: null,
  commandSeq,
  endsInMillis: null,
})

/** Whether the instance is lost once more after as many replacements as an hour may have. */
const isUnstable = async (tx: Sql, { sessionId, cause, transitions, settings }: TransitionsRequest): Promise<boolean> =>
  (settings.replacementSeconds ?? 0) > 0 &&
  cause !== 'relay_unstable' &&
  transitions.length === 1 &&
  transitions[0]?.reason === 'health_lost' &&
  (await countRecentReplacements(tx, sessionId)) >= replacementsPerHourMax

/** The outcome when the relay's health objects to the transitions; undefined when they can be written. */
async function objectTo(
  tx: Sql,
  row: LockedSession,
  { cause, settings }: TransitionsRequest,
): Promise<TransitionsOutcome | undefined> {
  if (!isCheckedForObjections(cause)) return undefined
  const objection = findObjection(cause, await observe(tx, row), settings)
  if (!objection) return undefined
  if (objection.type === 'outdated') return unchanged(storedState(row))
  if (objection.type === 'reporting') return objection
  // Clients show a countdown to the end of grace.
  if (objection.isExtended && row.state === 'grace')
    await tx`
      update relay_sessions set grace_ends_at = clock_timestamp() + make_interval(secs => ${objection.forSeconds})
      where id = ${row.id}`
  return { type: 'postponed', forMillis: objection.forSeconds * 1000 }
}

interface ObservationRow extends ReceptionRow {
  lastReportSeconds: number | null
  idleSeconds: number | null
  createdSeconds: number
  graceSeconds: number | null
  graceEndsInSeconds: number | null
  goneSeconds: number | null
  workerForSeconds: number
  workerLastSeenSeconds: number
}

async function observe(tx: Sql, { id, state, reason, instanceId }: LockedSession): Promise<ObservedSession> {
  const row = await first(tx<ObservationRow[]>`
    select extract(epoch from clock_timestamp() - h.last_report_at)::float8 as last_report_seconds,
      extract(epoch from clock_timestamp() - h.idle_since)::float8 as idle_seconds,
      extract(epoch from clock_timestamp() - s.created_at)::float8 as created_seconds,
      extract(epoch from clock_timestamp() - s.grace_started_at)::float8 as grace_seconds,
      extract(epoch from s.grace_ends_at - clock_timestamp())::float8 as grace_ends_in_seconds,
      extract(epoch from clock_timestamp() - h.gone_at)::float8 as gone_seconds,
      ${receptionColumns(tx)}, ${presenceColumns(tx, 'worker')}
    from relay_sessions s
    left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
      and not ${isRetired(tx, tx`s.instance_id`)}
    ${joinPath(tx, tx`s.region`)}, presence api, presence worker
    where s.id = ${id} and api.role = 'api' and worker.role = 'worker'`)
  if (!row) throw new Error('the table presence lacks a role')
  return { ...row, state, reason, instanceId, ...toReception(row), worker: toPresence(row, 'worker') }
}

interface Written {
  readonly session: StoredSessionState
  readonly replacement: FinishedReplacement | undefined
}

async function write(tx: Sql, row: LockedSession, request: TransitionsRequest): Promise<Written> {
  const { transitions, graceSeconds } = request
  const replacement = isEndOfLostHealth(row, transitions) ? await endReplacement(tx, row) : undefined
  const detail = replacement && transitions[0]?.to === 'active' ? 'relay_replaced' : (request.detail ?? null)
  const publicReason = publicReasonOf(row, request)
  for (const [index, { to, reason, initiator }] of transitions.entries()) {
    await tx`
      with session as (
        update relay_sessions set
          state = ${to}, reason = ${reason}, version = version + 1,
          active_at = case when ${to} = 'active' then coalesce(active_at, now()) else active_at end,
          grace_started_at = case when ${to} = 'grace' then now() else grace_started_at end,
          grace_ends_at = case when ${to} = 'grace' then now() + make_interval(secs => ${graceSeconds ?? 0}) end,
          stopped_at = case when ${to} = 'stopped' then now() end,
          pair_token_sealed = case when ${to} <> 'stopped' then pair_token_sealed end,
          pair_token_hash = case when ${to} <> 'stopped' then pair_token_hash end,
          relay_ws_token_sealed = case when ${to} <> 'stopped' then relay_ws_token_sealed end,
          relay_ws_token_hash = case when ${to} <> 'stopped' then relay_ws_token_hash end,
          -- The state reflects this command. A stopped session has no command left to deliver.
          command_delivered_seq = case when ${to} = 'stopped' then command_seq
            else greatest(command_delivered_seq, ${request.commandSeq}) end,
          detail = ${detail}, operator_request = null, signal_at = null, signal_attempts = 0
        where id = ${row.id} returning id, version
      )
      insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator, public_reason)
      select id, version, ${transitions[index - 1]?.to ?? row.state}, ${to}, ${reason}, ${initiator},
        ${initiator === 'operator' ? publicReason : null} from session`
    if (replacement) await closeUsageIntervalAt(tx, row.id, replacement.lastReportAt)
    if (to === 'active') await openUsageInterval(tx, row.id, row.userId)
    if (to === 'stopped') await closeUsageInterval(tx, row.id, { ...request.settings, ...request })
    if (to === 'stopped') await addOwnStreamEvent(tx, row.id, 'stream_ended', ['stream_ended'])
    if (reason === 'health_lost') await addOwnStreamEvent(tx, row.id, 'stream_lost', ['stream_lost', 'stream_ended'])
  }
  const last = transitions.at(-1)
  const state = last?.to ?? row.state
  const session = {
    state,
    reason: last?.reason ?? row.reason,
    version: row.version + transitions.length,
    instanceId: row.instanceId,
    commandSeq: await completeOperatorRequest(tx, row, request, state),
    endsInMillis: graceSeconds === null ? null : graceSeconds * 1000,
  }
  return { session, replacement }
}

/** What the operator who causes the transitions lets the owner read; null without it. */
const publicReasonOf = (row: LockedSession, { operatorRequestId }: TransitionsRequest): string | null =>
  operatorRequestId === null ? row.disconnectPublicReason : (row.operatorRequest?.publicReason ?? null)

const isEndOfLostHealth = ({ state, reason }: LockedSession, [transition]: readonly Transition[]): boolean =>
  isInGraceFor({ state, reason }, 'health_lost') && transition !== undefined

/**
 * The session waits for no other instance any more. One that was to take over is retired.
 * @returns the replacement, where an instance has taken over.
 */
async function endReplacement(tx: Sql, { id }: LockedSession): Promise<FinishedReplacement | undefined> {
  await retireReplacements(tx, id)
  return finishReplacement(tx, id)
}

/**
 * Writes the audit entry of an operator's transition. A session that an operator made active again also gets the
 * command `run`.
 * @returns the number of the last command that the state reflects.
 */
async function completeOperatorRequest(
  tx: Sql,
  { id, userId, command, operatorRequest }: LockedSession,
  { operatorRequestId, commandSeq }: TransitionsRequest,
  to: RelayState,
): Promise<number> {
  if (operatorRequestId === null || !operatorRequest) return commandSeq
  await recordAuditEntry(tx, {
    initiator: 'operator',
    action: 'session_transitioned',
    userId,
    ip: operatorRequest.ip,
    detail: { session_id: id, to, request_id: operatorRequest.id },
  })
  if (to !== 'active' || command === 'run') return commandSeq
  const seq = commandSeq + 1
  await tx`
    update relay_sessions set command = 'run', command_initiator = 'operator', command_seq = ${seq},
      command_delivered_seq = ${seq}, commanded_at = clock_timestamp()
    where id = ${id}`
  await recordOperatorCommand(tx, id, seq, operatorRequest.publicReason)
  return seq
}
