/** Sessions whose stream events may have to be notified. A trigger adds them in the transaction of the event. */
import type { NoticedEvent, StreamNoticeMemory } from '../../domain/notifications/stream-notices.ts'
import type { RelayReason, RelayState } from '../../domain/relay/session.ts'
import { first, type Sql } from '../connection.ts'

interface DueSession {
  readonly sessionId: string
  readonly userId: string
}

/** Sessions to look at now, the most overdue first. */
export const listDueSessions = async (sql: Sql, limit: number): Promise<DueSession[]> =>
  sql<DueSession[]>`
    select n.session_id, s.user_id from stream_notices n join relay_sessions s on s.id = n.session_id
    where n.due_at <= now() order by n.due_at limit ${limit}`

/** Locks the row until the end of the transaction. Undefined when it is not due, or another process has it. */
export const claimStreamNotice = async (tx: Sql, sessionId: string): Promise<StreamNoticeMemory | undefined> =>
  first(tx<StreamNoticeMemory[]>`
    select seen_number, (extract(epoch from lost_at) * 1000)::float8 as lost_at from stream_notices
    where session_id = ${sessionId} and due_at <= now() for update skip locked`)

interface NoticedSession {
  readonly connectionId: string
  readonly region: string
  readonly state: RelayState
  readonly reason: RelayReason
  readonly delaySeconds: number
  readonly nowMillis: number
  /** After the number, in their order. */
  readonly events: readonly NoticedEvent[]
}

/** Runs after the claim, so that it reads all events of transactions that the row has waited for. */
export const readNoticedSession = async (
  tx: Sql,
  sessionId: string,
  seenNumber: number,
): Promise<NoticedSession | undefined> =>
  first(tx<NoticedSession[]>`
    select s.connection_id, s.region, s.state, s.reason, u.stream_delay_seconds as delay_seconds,
      (extract(epoch from clock_timestamp()) * 1000)::float8 as now_millis,
      coalesce((
        select json_agg(json_build_object('number', e.number, 'kind', e.kind, 'at', extract(epoch from e.at) * 1000,
          'bitrateKbps', e.bitrate_kbps) order by e.number)
        from stream_events e where e.session_id = s.id and e.number > ${seenNumber}), '[]'::json) as events
    from relay_sessions s join users u on u.id = s.user_id where s.id = ${sessionId}`)

/** @param lookAtMillis when to look at the session again, in milliseconds since 1970. */
export const scheduleStreamNotice = async (
  tx: Sql,
  sessionId: string,
  { seenNumber, lostAt }: StreamNoticeMemory,
  lookAtMillis: number,
): Promise<void> => {
  await tx`
    update stream_notices set seen_number = ${seenNumber}, lost_at = to_timestamp(${lostAt}::float8 / 1000),
      due_at = to_timestamp(${lookAtMillis}::float8 / 1000)
    where session_id = ${sessionId}`
}

export const deleteStreamNotice = async (tx: Sql, sessionId: string): Promise<void> => {
  await tx`delete from stream_notices where session_id = ${sessionId}`
}
