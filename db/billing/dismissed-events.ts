import type { BillingEventStatus } from '../../domain/billing/event.ts'
import type { Sql } from '../connection.ts'
import { type BillingEventRow, findEvent } from './events.ts'

interface Dismissal {
  readonly row: BillingEventRow
  readonly statusBefore: BillingEventStatus
}

/** Sets a parked or dead event aside; one with another status stays unchanged. Returns undefined for an unknown id. */
export async function dismissEvent(tx: Sql, id: string): Promise<Dismissal | undefined> {
  const row = await findEvent(tx, id, { lock: tx`for no key update` })
  if (row === undefined) return undefined
  if (row.status !== 'parked' && row.status !== 'dead') return { row, statusBefore: row.status }
  await tx`update billing_events set status = 'dismissed' where id = ${id}`
  return { row: { ...row, status: 'dismissed' }, statusBefore: row.status }
}
