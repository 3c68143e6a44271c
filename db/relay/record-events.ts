/** What happened in a session, beside the points of its stream record, in one list. */
import type { Initiator, LossCause, RelayReason, RelayState, SessionDetail } from '../../domain/relay/session.ts'
import type { Sql } from '../connection.ts'
import { type CommandRow, listCommands } from './commands.ts'
import { listPathEvents, type PathEventRow } from './path-events.ts'
import { listReplacements } from './replacements.ts'
import { listStreamEvents, type StreamEventRow } from './stream-events.ts'
import type { TimeRange } from './stream-record.ts'

interface ReplacementEventRow {
  readonly kind: 'relay_replaced'
  /** When the relay failed. */
  readonly at: Date
  readonly awaySeconds: number
  readonly cause: LossCause
}

interface TransitionEventRow {
  readonly kind: 'transition'
  readonly at: Date
  readonly state: RelayState
  readonly reason: RelayReason
  readonly initiator: Initiator
  /** Null for another transition than the last one. */
  readonly detail: SessionDetail | null
  readonly publicReason: string | null
}

type CommandEventRow = { readonly kind: 'command' } & CommandRow

export type RecordEventRow = StreamEventRow | PathEventRow | ReplacementEventRow | TransitionEventRow | CommandEventRow

type EventSource = (sql: Sql, sessionId: string) => Promise<readonly RecordEventRow[]>

const listReplacementEvents: EventSource = async (sql, sessionId) =>
  (await listReplacements(sql, sessionId)).map(({ failedAt, awaySeconds, cause }) => ({
    kind: 'relay_replaced',
    at: failedAt,
    awaySeconds,
    cause,
  }))

const listTransitionEvents: EventSource = (sql, sessionId) =>
  sql<TransitionEventRow[]>`
    select 'transition' as kind, t.at, t.to_state as state, t.reason, t.initiator, t.public_reason,
      case when t.version = s.version then s.detail end as detail
    from relay_transitions t join relay_sessions s on s.id = t.session_id where s.id = ${sessionId} order by t.version`

const listCommandEvents: EventSource = async (sql, sessionId) =>
  (await listCommands(sql, sessionId)).map((row) => ({ kind: 'command', ...row }))

/** Of events at the same time, those of an earlier source come first. */
const sources: readonly EventSource[] = [
  listCommandEvents,
  listTransitionEvents,
  listReplacementEvents,
  listStreamEvents,
  listPathEvents,
]

/** The events of a session within a range, its ends included, the first one first. */
export async function listRecordEvents(
  sql: Sql,
  sessionId: string,
  { from, to }: TimeRange,
): Promise<RecordEventRow[]> {
  const lists = await Promise.all(sources.map((list) => list(sql, sessionId)))
  return lists
    .flat()
    .filter(({ at }) => at >= from && at <= to)
    .toSorted((a, b) => +a.at - +b.at)
}
