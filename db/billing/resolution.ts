/** Unresolved events of the inbox: they require a request to their provider. */
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import type { Sql } from '../connection.ts'
import { findStoredEvent, lockEvent, replaceEvent } from './replays.ts'

/**
 * How long an unresolved payment holds back the end of its plan, counted from its acceptance. Attempts to resolve it
 * take about as long (providers/billing/resolution.ts).
 */
const holdSeconds = 3 * 86_400

/** Reserves the event for one attempt; undefined if another process has reserved it, or if it is resolved. */
export async function claimUnresolvedEvent(
  sql: Sql,
  event: { readonly id: string; readonly attempts: number },
  leaseSeconds: number,
): Promise<ReceivedBillingEvent | undefined> {
  const { count } = await sql`
    update billing_events set attempts = attempts + 1,
      next_attempt_at = clock_timestamp() + make_interval(secs => ${leaseSeconds})
    where id = ${event.id} and status = 'unresolved' and attempts = ${event.attempts}`
  return count === 1 ? (await findStoredEvent(sql, event.id))?.event : undefined
}

/** Runs in the caller's transaction. Returns the accounts whose inbox changed. */
export async function replaceUnresolvedEvent(
  tx: Sql,
  id: string,
  event: ReceivedBillingEvent,
): Promise<readonly string[]> {
  await lockEvent(tx, id)
  // An operator's replay may have resolved it.
  const unresolved = await tx`select from billing_events where id = ${id} and status = 'unresolved'`
  return unresolved.length === 0 ? [] : ((await replaceEvent(tx, id, event))?.accounts ?? [])
}

/** Stores the problem and the time of the next attempt. */
export const postponeUnresolvedEvent = async (
  sql: Sql,
  id: string,
  problem: string,
  seconds: number,
): Promise<void> => {
  await sql`
    update billing_events
    set error = ${problem}, next_attempt_at = clock_timestamp() + make_interval(secs => ${seconds})
    where id = ${id} and status = 'unresolved'`
}

/** Unresolved events whose next attempt is due, the longest due first. */
export const findDueEvents = async (sql: Sql, limit: number): Promise<{ id: string; attempts: number }[]> =>
  sql<{ id: string; attempts: number }[]>`
    select id, attempts from billing_events
    where status = 'unresolved' and next_attempt_at <= now() order by next_attempt_at limit ${limit}`

export interface UnresolvedPayment {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly acceptedAt: number
  /** The plan does not end before this time. */
  readonly holdsUntil: number
}

/** The account's unresolved payments: each may continue its plan or start another one. */
export const findUnresolvedPayments = async (sql: Sql, userId: string): Promise<UnresolvedPayment[]> =>
  sql<UnresolvedPayment[]>`
    select id, floor(extract(epoch from received_at) * 1000)::float8 as accepted_at,
      floor(extract(epoch from received_at + make_interval(secs => ${holdSeconds})) * 1000)::float8 as holds_until
    from billing_events
    where user_id = ${userId} and status = 'unresolved' and action = 'payment_recovery'
    order by seq`
