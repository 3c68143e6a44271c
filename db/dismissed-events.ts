/** Billing events that an operator has set aside. */
import { type BillingEventRow, type BillingEventStatus, eventColumns } from './billing-events.ts'
import { first, type Sql } from './connection.ts'

interface Dismissal {
  /** As it is now. */
  readonly row: BillingEventRow
  /** What it was before. */
  readonly was: BillingEventStatus
}

/** Sets a parked or dead event aside; another one stays as it is. Nothing for an unknown id. */
export async function dismissEvent(tx: Sql, id: string): Promise<Dismissal | undefined> {
  const row = first(
    await tx<BillingEventRow[]>`select ${eventColumns(tx)} from billing_events where id = ${id} for no key update`,
  )
  if (row === undefined) return undefined
  if (row.status !== 'parked' && row.status !== 'dead') return { row, was: row.status }
  await tx`update billing_events set status = 'dismissed' where id = ${id}`
  return { row: { ...row, status: 'dismissed' }, was: row.status }
}
