/** Stores an event in the billing inbox. */
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import { isRecorded, type RecordedEvent, recordEventIn } from '../billing/events.ts'
import type { Database } from '../connection.ts'

/**
 * Returns undefined for a repetition. The transaction locks the account against a write of its entitlement, so
 * that a deadline and an event are serialised: the one that comes later sees the other.
 */
export async function recordEvent(sql: Database, event: ReceivedBillingEvent): Promise<RecordedEvent | undefined> {
  // Repetitions are frequent and need neither a transaction nor a lock.
  if (await isRecorded(sql, event)) return undefined
  return sql.begin(async (tx) => recordEventIn(tx, event)) as Promise<RecordedEvent | undefined>
}
