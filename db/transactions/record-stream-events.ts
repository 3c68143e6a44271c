/** Stores the stream events of a relay's report. */
import { followReport, type StreamReport } from '../../domain/relay/stream-event-history.ts'
import type { StreamEventKind } from '../../domain/relay/stream-events.ts'
import { type Database, first } from '../connection.ts'
import { adoptSource, insertStreamEvents, type StoredStreamHistory, streamHistoryOf } from '../relay/stream-events.ts'

interface LockedSession {
  readonly history: StoredStreamHistory | null
  readonly nowMillis: number
  readonly createdAtMillis: number
}

/**
 * Stores what the report of the session's instance says that is not stored yet. Safe to repeat. A session that is
 * stopped, or has another instance meanwhile, gets no event.
 * @returns the kinds of the events that were added.
 */
export const recordStreamEvents = (
  sql: Database,
  sessionId: string,
  report: StreamReport,
): Promise<readonly StreamEventKind[]> =>
  sql.begin(async (tx): Promise<readonly StreamEventKind[]> => {
    const locked = await first(tx`
      select from relay_sessions where id = ${sessionId} and state <> 'stopped'
        and coalesce(instance_id = ${report.instanceId}, true) for no key update`)
    if (!locked) return []
    // A statement of its own, which sees what was committed before the lock.
    const session = await first(tx<LockedSession[]>`
      select ${streamHistoryOf(tx, tx`s.id`)} as history,
        (extract(epoch from clock_timestamp()) * 1000)::float8 as now_millis,
        (extract(epoch from created_at) * 1000)::float8 as created_at_millis
      from relay_sessions s where id = ${sessionId}`)
    if (!session) return []
    const { history, nowMillis, createdAtMillis } = session
    const { added, adopted } = followReport(history ?? undefined, report, nowMillis)
    if (adopted && history) await adoptSource(tx, sessionId, history.number, adopted)
    const events = added.map((event) => ({ ...event, at: Math.max(event.at, createdAtMillis) }))
    if (events.length > 0) await insertStreamEvents(tx, sessionId, history?.number ?? 0, events)
    return events.map(({ kind }) => kind)
  }) as Promise<readonly StreamEventKind[]>
