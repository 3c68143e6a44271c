/** Stores the path events of a relay's report. */
import { storedPathRefusalsMax } from '../../domain/relay/path-events.ts'
import { type Database, hasRow } from '../connection.ts'
import {
  addToRefused,
  findStoredPathEvents,
  insertPathEvents,
  type NewPathEvent,
  type PathEventProcess,
} from '../relay/path-events.ts'

/**
 * Stores each event of the session's instance that is not stored yet, once. Safe to repeat. A session that is stopped,
 * or has another instance meanwhile, gets no event.
 * @param events in the order of their numbers.
 */
export const recordPathEvents = async (
  sql: Database,
  sessionId: string,
  process: PathEventProcess,
  events: readonly NewPathEvent[],
): Promise<void> => {
  await sql.begin(async (tx) => {
    const isOpen = await hasRow(tx`
      select from relay_sessions where id = ${sessionId} and state <> 'stopped'
        and coalesce(instance_id = ${process.instanceId}, true) for no key update`)
    if (!isOpen) return
    // A statement of its own, which sees what was committed before the lock.
    const stored = await findStoredPathEvents(tx, sessionId, process)
    let { refusals } = stored
    const added: NewPathEvent[] = []
    for (const event of events.filter(({ seq }) => seq > stored.lastSeq)) {
      if (event.kind === 'caller_refused') {
        if (refusals >= storedPathRefusalsMax && (await addToRefused(tx, sessionId, process, event))) continue
        refusals += 1
      }
      added.push(event)
    }
    if (added.length > 0) await insertPathEvents(tx, sessionId, process, stored.lastNumber, added)
  })
}
