/** Audit entries of attempts by unauthenticated callers, counted per network: see `db/identity/audit-attempts.ts`. */
import type { AuditEntry } from '../../db/audit.ts'
import type { Database } from '../../db/connection.ts'
import { type AuditAttempt, recordAuditAttempts } from '../../db/identity/audit-attempts.ts'
import { countSignInFailures } from '../../db/identity/sign-in-failures.ts'
import { batch } from '../../platform/batch.ts'
import { clientNetwork } from '../http/ip-networks.ts'

type Attempt = AuditEntry & { readonly ip: string }

/** Resolves once the attempt is stored. */
export type RecordAuditAttempt = (attempt: Attempt) => Promise<void>

/** Attempts with different details are counted in different entries. */
export const toAuditAttempt = (attempt: Attempt): AuditAttempt => ({
  ...attempt,
  source: [clientNetwork(attempt.ip), ...Object.values(attempt.detail ?? {})].join(' '),
})

const failedSignIns: ReadonlySet<string> = new Set(['sign_in_failed', 'operator_sign_in_failed'])

/** Concurrent attempts share a statement, since separate ones would wait for each other's row lock. */
export function createRecordAuditAttempt(sql: Database): RecordAuditAttempt {
  const recordAll = async (attempts: AuditAttempt[]) => {
    const failures = attempts.filter(({ action }) => failedSignIns.has(action)).length
    if (failures > 0) await countSignInFailures(sql, failures)
    await recordAuditAttempts(sql, attempts)
    return attempts.map(() => undefined)
  }
  const recordOne = batch(recordAll, { sizeMax: 200, concurrencyMax: 1 })
  return (attempt) => recordOne(toAuditAttempt(attempt))
}
