/**
 * What the streams of relay sessions do. All writers hold the lock of the session's row, so the numbers of a session
 * grow in the order of its commits.
 */
import {
  type NewStreamEvent,
  type StreamEventSource,
  type StreamHistory,
  streamEventsMax,
} from '../../domain/relay/stream-event-history.ts'
import type { StreamEventKind } from '../../domain/relay/stream-events.ts'
import type { Fragment, Sql } from '../connection.ts'

export interface StreamEventRow {
  readonly kind: StreamEventKind
  readonly at: Date
  readonly bitrateKbps: number
}

/** The events of a session, the first one first. */
export const listStreamEvents = async (sql: Sql, sessionId: string): Promise<StreamEventRow[]> =>
  sql<StreamEventRow[]>`
    select kind, at, bitrate_kbps from stream_events where session_id = ${sessionId} order by number`

export interface NumberedStreamEventRow extends StreamEventRow {
  readonly sessionId: string
  readonly number: number
}

/**
 * Of each session the events after a number, in their order, and its last event in any case. Without a number only
 * that.
 * @param after by session id.
 */
export const listStreamEventsAfter = async (
  sql: Sql,
  after: ReadonlyMap<string, number | undefined>,
): Promise<NumberedStreamEventRow[]> =>
  sql<NumberedStreamEventRow[]>`
    select e.session_id, e.number, e.kind, e.at, e.bitrate_kbps
    from unnest(${[...after.keys()]}::uuid[], ${[...after.values()].map((number) => number ?? -1)}::int[]) as s (id, after)
      join lateral (select max(number) as number from stream_events where session_id = s.id) last on true
      join stream_events e on e.session_id = s.id and (e.number = last.number or s.after >= 0 and e.number > s.after)
    order by e.session_id, e.number`

/** The last event of a session as an expression: JSON of {@link StoredStreamHistory}, or null. */
export const streamHistoryOf = (sql: Sql, sessionId: Fragment) => sql`(
  select json_build_object('number', e.number, 'lastKind', e.kind, 'lastAt', extract(epoch from e.at) * 1000, 'source', (
    select json_build_object('instanceId', r.instance_id, 'processStartedAtMs', r.process_started_at_ms, 'seq', r.seq)
    from stream_events r where r.session_id = e.session_id and r.seq is not null order by r.number desc limit 1))
  from stream_events e where e.session_id = ${sessionId} order by e.number desc limit 1)`

export interface StoredStreamHistory extends StreamHistory {
  readonly number: number
}

/** Adds events after the last one of a session, and deletes the oldest ones of more than a session may have. */
export async function insertStreamEvents(
  tx: Sql,
  sessionId: string,
  lastNumber: number,
  events: readonly NewStreamEvent[],
): Promise<void> {
  const rows = events.map(({ kind, at, bitrateKbps, source }, index) => ({
    number: lastNumber + 1 + index,
    kind,
    at,
    bitrate_kbps: bitrateKbps,
    instance_id: source?.instanceId,
    process_started_at_ms: source?.processStartedAtMs,
    seq: source?.seq,
  }))
  await tx`
    insert into stream_events (session_id, number, kind, at, bitrate_kbps, instance_id, process_started_at_ms, seq)
    select ${sessionId}, number, kind, to_timestamp(at / 1000), bitrate_kbps, instance_id, process_started_at_ms, seq
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as r (
      number int, kind text, at float8, bitrate_kbps int, instance_id text, process_started_at_ms bigint, seq int)
    order by number`
  const oldestNumber = lastNumber + rows.length - streamEventsMax
  if (oldestNumber > 0)
    await tx`delete from stream_events where session_id = ${sessionId} and number <= ${oldestNumber}`
}

/** Records that an event says what a relay reports, so that the report counts as stored. */
export const adoptSource = async (
  tx: Sql,
  sessionId: string,
  number: number,
  { instanceId, processStartedAtMs, seq }: StreamEventSource,
): Promise<void> => {
  await tx`
    update stream_events set instance_id = ${instanceId}, process_started_at_ms = ${processStartedAtMs}, seq = ${seq}
    where session_id = ${sessionId} and number = ${number}`
}

/**
 * Adds an event of the service itself, unless the last event of the session is among `unlessAfter` or there is none.
 * @returns whether it was added.
 */
export const addOwnStreamEvent = async (
  tx: Sql,
  sessionId: string,
  kind: StreamEventKind,
  unlessAfter: readonly StreamEventKind[],
): Promise<boolean> =>
  (
    await tx`
      insert into stream_events (session_id, number, kind, at, bitrate_kbps)
      select session_id, number + 1, ${kind}, greatest(at, now()), 0 from (
        select session_id, number, kind as last_kind, at from stream_events
        where session_id = ${sessionId} order by number desc limit 1
      ) last where last_kind <> all (${[...unlessAfter]}::text[])`
  ).count > 0
