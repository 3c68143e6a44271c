/** Resolves unresolved events of the billing inbox. */
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import { claimUnresolvedEvent, postponeUnresolvedEvent, replaceUnresolvedEvent } from '../billing/resolution.ts'
import type { Database } from '../connection.ts'

/** Implements `UnresolvedEventStore` of `providers/billing/resolution.ts`. */
export const createUnresolvedEvents = (sql: Database) => ({
  claim: (event: { readonly id: string; readonly attempts: number }, leaseSeconds: number) =>
    claimUnresolvedEvent(sql, event, leaseSeconds),
  replace: (id: string, event: ReceivedBillingEvent): Promise<readonly string[]> =>
    sql.begin((tx) => replaceUnresolvedEvent(tx, id, event)) as Promise<readonly string[]>,
  postpone: (id: string, problem: string, seconds: number) => postponeUnresolvedEvent(sql, id, problem, seconds),
})
