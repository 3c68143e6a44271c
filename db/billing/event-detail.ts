/**
 * One event of the billing inbox with all that operators see of it: everything but the bytes that the provider sent.
 */
import type { BillingEvent } from '../../domain/billing/event.ts'
import type { Sql } from '../connection.ts'
import { type BillingEventRow, findEvent } from './events.ts'

export interface BillingEventDetailRow extends BillingEventRow {
  /** The account that the event names, whether it exists or not. */
  readonly userRef: string | null
  readonly subscriptionId: string | null
  readonly event: BillingEvent | null
  /** Requests to the provider. */
  readonly attempts: number
  readonly nextAttemptAt: Date | null
  readonly appliedAt: Date | null
}

export const findEventDetail = (sql: Sql, id: string): Promise<BillingEventDetailRow | undefined> =>
  findEvent(sql, id, {
    furtherColumns: sql`, user_ref, subscription_id, event, attempts, next_attempt_at, applied_at`,
  })
