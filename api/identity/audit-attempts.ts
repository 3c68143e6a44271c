/** Attempts of strangers in the audit trail: counted by network, within the bounds of `db/audit-attempts.ts`. */
import type { AuditEntry } from '../../db/audit.ts'
import { type AuditAttempt, recordAuditAttempts } from '../../db/audit-attempts.ts'
import type { Database } from '../../db/connection.ts'
import { batch } from '../../platform/batch.ts'
import { addressSubject } from '../http/networks.ts'

type Attempt = AuditEntry & { readonly ip: string }

/** Resolves once the attempt is counted. */
export type AuditAttempts = (attempt: Attempt) => Promise<void>

/** Attempts whose details differ stand in entries of their own. */
export const attemptOf = (attempt: Attempt): AuditAttempt => ({
  ...attempt,
  source: [addressSubject(attempt.ip), ...Object.values(attempt.detail ?? {})].join(' '),
})

/** Attempts at once share a write: a thousand of them do not wait for each other's row. */
export function createAuditAttempts(sql: Database): AuditAttempts {
  const record = async (attempts: AuditAttempt[]) => {
    await recordAuditAttempts(sql, attempts)
    return attempts.map(() => undefined)
  }
  const recordOne = batch(record, { sizeMax: 200, concurrencyMax: 1 })
  return (attempt) => recordOne(attemptOf(attempt))
}
