/** Account summaries: everything that `GET /auth/session` shows, for many requests in two statements. */

import { type EntitlementWithUsage, findEntitlementsOf } from '../../db/billing/entitlements.ts'
import type { Database } from '../../db/connection.ts'
import type { FirstStepsRow } from '../../db/identity/first-steps.ts'
import type { ProfileRow } from '../../db/identity/profiles.ts'
import type { LiveRelays } from '../../db/relay/sessions.ts'
import { type Admission, type AdmissionRequest, admitUsersWithAccount } from '../../db/transactions/admit-users.ts'
import type { Config } from '../../platform/config/config.ts'

export interface AccountSummary extends EntitlementWithUsage {
  readonly profile: ProfileRow
  readonly firstSteps: FirstStepsRow
  readonly liveRelays: LiveRelays
}

/**
 * @returns the admission of each request with the summary of its user, in the given order; undefined for a refused one.
 */
export async function admitUsersWithSummary(
  sql: Database,
  { timeBank }: Pick<Config, 'timeBank'>,
  requests: readonly AdmissionRequest[],
): Promise<(Admission<AccountSummary> | undefined)[]> {
  const admissions = await admitUsersWithAccount(sql, requests)
  const accounts = new Map(
    admissions.flatMap((admission) => (admission ? [[admission.read.account.userId, admission.read.account]] : [])),
  )
  const entitlements = await findEntitlementsOf(sql, [...accounts.values()], timeBank)
  return admissions.map((admission) => {
    const entitled = admission && entitlements.get(admission.read.account.userId)
    if (!entitled) return undefined
    const { profile, firstSteps, liveRelays } = admission.read
    return { window: admission.window, read: { profile, firstSteps, liveRelays, ...entitled } }
  })
}
