/** Notifies accounts whose plan ends soon. */
import { planEndingHours } from '../../domain/notifications/kinds.ts'
import type { Database } from '../connection.ts'
import { claimEndingPlans } from '../notifications/plan-notices.ts'
import type { Notify } from '../notifications/settings.ts'

/** Notifies of each end once. @returns the number of accounts, `rowsMax` at most. */
export const notifyOfEndingPlans = (sql: Database, rowsMax: number, notify: Notify): Promise<number> =>
  sql.begin(async (tx) => {
    const plans = await claimEndingPlans(tx, planEndingHours, rowsMax)
    for (const { userId, endsAt, now } of plans)
      await notify(tx, userId, {
        kind: 'plan_ending',
        timestamp: now.toISOString(),
        data: { ends_at: endsAt.toISOString() },
      })
    return plans.length
  })
