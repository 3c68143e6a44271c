/** What happens on the signal paths of relay sessions. All writers hold the lock of the session's row. */
import {
  type CallerRole,
  type PathEvent,
  type PathEventKind,
  storedPathChangesMax,
} from '../../domain/relay/path-events.ts'
import type { RelayRefusal } from '../../domain/relay/refusals.ts'
import { first, type Sql } from '../connection.ts'

interface PathEventColumns {
  readonly kind: PathEventKind
  readonly at: Date
  readonly linksFrom: number | null
  readonly linksTo: number | null
  readonly players: number | null
  readonly reason: RelayRefusal | null
  readonly role: CallerRole | null
  readonly count: number | null
}

export type PathEventRow = PathEvent & { readonly at: Date }

/** The events of a session, the first one first. */
export async function listPathEvents(sql: Sql, sessionId: string): Promise<PathEventRow[]> {
  const rows = await sql<PathEventColumns[]>`
    select kind, at, links_from, links_to, players, reason, role, count from path_events
    where session_id = ${sessionId} order by at, number`
  return rows.map(toPathEvent)
}

function toPathEvent({ kind, at, linksFrom, linksTo, players, reason, role, count }: PathEventColumns): PathEventRow {
  if (kind === 'links_changed') return { kind, at, from: linksFrom ?? 0, to: linksTo ?? 0 }
  if (kind !== 'caller_refused') return { kind, at, players: players ?? 0 }
  return { kind, at, reason: reason ?? 'bad_request', role: role ?? 'publisher', count: count ?? 1 }
}

/** The process of a relay that noticed an event. */
export interface PathEventProcess {
  readonly instanceId: string
  readonly processStartedAtMs: number
}

export type NewPathEvent = PathEvent & {
  /** The number of the event in its process. */
  readonly seq: number
  readonly ageMillis: number
}

/** What is stored of a session whose row is locked. */
export interface StoredPathEvents {
  readonly lastNumber: number
  /** The number of the last event of the process that is stored. */
  readonly lastSeq: number
  readonly refusals: number
}

export async function findStoredPathEvents(
  tx: Sql,
  sessionId: string,
  { instanceId, processStartedAtMs }: PathEventProcess,
): Promise<StoredPathEvents> {
  const row = await first(tx<StoredPathEvents[]>`
    select coalesce(max(number), 0) as last_number,
      coalesce(max(seq) filter (
        where instance_id = ${instanceId} and process_started_at_ms = ${processStartedAtMs}), 0) as last_seq,
      count(*) filter (where kind = 'caller_refused')::int as refusals
    from path_events where session_id = ${sessionId}`)
  return row ?? { lastNumber: 0, lastSeq: 0, refusals: 0 }
}

/** Adds events after the last one of a session, and deletes the oldest ones of more than a session may have. */
export async function insertPathEvents(
  tx: Sql,
  sessionId: string,
  process: PathEventProcess,
  lastNumber: number,
  events: readonly NewPathEvent[],
): Promise<void> {
  const rows = events.map((event, index) => ({ number: lastNumber + 1 + index, ...toColumns(event) }))
  await tx`
    insert into path_events (session_id, number, kind, at, links_from, links_to, players, reason, role, count,
      instance_id, process_started_at_ms, seq)
    select ${sessionId}, number, kind,
      -- Clocks of relays differ, so that a session seems to be younger than its events.
      greatest(clock_timestamp() - make_interval(secs => age_seconds), s.created_at),
      links_from, links_to, players, r.reason, role, count, ${process.instanceId}, ${process.processStartedAtMs}, seq
    from relay_sessions s, json_to_recordset(${JSON.stringify(rows)}::text::json) as r (
      number int, kind text, age_seconds float8, links_from int2, links_to int2, players int2, reason text, role text,
      count int, seq int)
    where s.id = ${sessionId} order by number`
  await tx`
    delete from path_events where session_id = ${sessionId} and number in (
      select number from path_events where session_id = ${sessionId} and kind <> 'caller_refused'
      order by number desc offset ${storedPathChangesMax})`
}

const toColumns = (event: NewPathEvent) => ({
  kind: event.kind,
  seq: event.seq,
  age_seconds: event.ageMillis / 1000,
  ...(event.kind === 'links_changed' ? { links_from: event.from, links_to: event.to } : {}),
  ...('players' in event ? { players: event.players } : {}),
  ...(event.kind === 'caller_refused' ? { reason: event.reason, role: event.role, count: event.count } : {}),
})

type Refused = Extract<NewPathEvent, { kind: 'caller_refused' }>

/**
 * Adds the callers of an event to the latest one of the same reason and role, which stands for both from now on.
 * @returns whether there is one.
 */
export const addToRefused = async (
  tx: Sql,
  sessionId: string,
  { instanceId, processStartedAtMs }: PathEventProcess,
  { seq, reason, role, count }: Refused,
): Promise<boolean> =>
  (
    await tx`
      update path_events set count = least(count::bigint + ${count}, ${storedCountMax}), instance_id = ${instanceId},
        process_started_at_ms = ${processStartedAtMs}, seq = ${seq}
      where session_id = ${sessionId} and number = (
        select number from path_events
        where session_id = ${sessionId} and kind = 'caller_refused' and reason = ${reason} and role = ${role}
        order by number desc limit 1)`
  ).count > 0

const storedCountMax = 1_000_000_000
