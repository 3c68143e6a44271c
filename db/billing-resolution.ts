/** Events of the inbox whose provider has still to be asked. */
import type { ReceivedBillingEvent } from '../platform/received-billing-event.ts'
import { findStoredEvent, lockEvent, replaceEvent } from './billing-replays.ts'
import type { Database, Sql } from './connection.ts'

/**
 * How long an unresolved payment holds back the end of its plan, from its acceptance. Attempts to resolve it go on for about as
 * long (providers/billing/resolution.ts).
 */
const holdSeconds = 3 * 86_400

/** What `providers/billing/resolution.ts` asks for as its inbox. */
export const createUnresolvedEvents = (sql: Database) => ({
  claim: async (
    event: { id: string; attempts: number },
    leaseSeconds: number,
  ): Promise<ReceivedBillingEvent | undefined> => {
    const { count } = await sql`
      update billing_events set attempts = attempts + 1,
        next_attempt_at = clock_timestamp() + make_interval(secs => ${leaseSeconds})
      where id = ${event.id} and status = 'unresolved' and attempts = ${event.attempts}`
    return count === 1 ? (await findStoredEvent(sql, event.id))?.event : undefined
  },

  replace: (id: string, event: ReceivedBillingEvent): Promise<readonly string[]> =>
    sql.begin(async (tx): Promise<readonly string[]> => {
      await lockEvent(tx, id)
      // An operator's replay may have resolved it meanwhile.
      const waiting = await tx`select from billing_events where id = ${id} and status = 'unresolved'`
      return waiting.length === 0 ? [] : ((await replaceEvent(tx, id, event))?.accounts ?? [])
    }) as Promise<readonly string[]>,

  postpone: async (id: string, why: string, seconds: number): Promise<void> => {
    await sql`
      update billing_events set error = ${why}, next_attempt_at = clock_timestamp() + make_interval(secs => ${seconds})
      where id = ${id} and status = 'unresolved'`
  },
})

/** Unresolved events whose next attempt is due, the longest due first. */
export const findDueEvents = async (sql: Sql, limit: number): Promise<{ id: string; attempts: number }[]> =>
  sql<{ id: string; attempts: number }[]>`
    select id, attempts from billing_events
    where status = 'unresolved' and next_attempt_at <= now() order by next_attempt_at limit ${limit}`

export interface UnresolvedPayment {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly acceptedAt: number
  /** Until when it holds back the end of the plan. */
  readonly holdsUntil: number
}

/** Payments among an account's unresolved events: each may keep its plan, or give it another one. */
export const findUnresolvedPayments = async (sql: Sql, userId: string): Promise<UnresolvedPayment[]> =>
  sql<UnresolvedPayment[]>`
    select id, floor(extract(epoch from received_at) * 1000)::float8 as accepted_at,
      floor(extract(epoch from received_at + make_interval(secs => ${holdSeconds})) * 1000)::float8 as holds_until
    from billing_events
    where user_id = ${userId} and status = 'unresolved' and action = 'payment_recovery'
    order by seq`
