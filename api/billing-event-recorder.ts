/**
 * Stores the events of webhooks. Providers repeat a webhook until it is answered, and may send many repetitions at
 * once.
 */
import type { RecordedEvent } from '../db/billing/events.ts'
import type { Database } from '../db/connection.ts'
import { recordEvent } from '../db/transactions/record-billing-event.ts'
import type { ReceivedBillingEvent } from '../domain/billing/received-event.ts'

/** Returns undefined for a repetition. Rejects when the event could not be stored, also for its repetitions. */
export type RecordBillingEvent = (event: ReceivedBillingEvent) => Promise<RecordedEvent | undefined>

/**
 * Repetitions that arrive while their event is being stored wait for that, and need no transaction of their own: a
 * thousand of them would wait for each other's lock of the subscription.
 */
export function createBillingEventRecorder(sql: Database): RecordBillingEvent {
  const storing = new Map<string, Promise<unknown>>()
  return async (event) => {
    const id = JSON.stringify([event.provider, event.key])
    const first = storing.get(id)
    if (first) {
      await first
      return undefined
    }
    const stored = recordEvent(sql, event)
    storing.set(id, stored)
    try {
      return await stored
    } finally {
      storing.delete(id)
    }
  }
}
