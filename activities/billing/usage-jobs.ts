/** The job that records when an account has used 80, 95 and 100 percent of the relay time of its cycle. */
import { findEntitlementsWithUsage } from '../../db/billing/entitlements.ts'
import { listAccountsInUse } from '../../db/billing/usage-notices.ts'
import type { Database } from '../../db/connection.ts'
import type { Notify } from '../../db/notifications/settings.ts'
import { notifyOfUsage } from '../../db/transactions/notify-of-usage.ts'
import { dueUsageNotices } from '../../domain/billing/usage-cycle.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly config: Pick<Config, 'timeBank'>
  readonly sql: Database
  readonly log: Logger
  readonly notify: Notify
}

/** Accounts whose usage one statement computes at most. */
const batchAccountsMax = 500

export const usageJobs = (deps: Deps): readonly Job[] => [
  { name: 'watch_usage', everySeconds: 60, runSecondsMax: 300, run: () => watchUsage(deps) },
]

/** Safe to repeat: a notice that exists is not recorded again. */
export async function watchUsage({ config: { timeBank }, sql, log, notify }: Deps): Promise<void> {
  const accounts = await listAccountsInUse(sql)
  for (let start = 0; start < accounts.length; start += batchAccountsMax) {
    const userIds = accounts.slice(start, start + batchAccountsMax)
    const measured = await findEntitlementsWithUsage(sql, userIds, timeBank)
    // The notices are about what a plan includes.
    const planned = [...measured].filter(([, { entitlement }]) => entitlement.trial === null)
    const due = planned.flatMap(([userId, { usage, entitlement }]) =>
      dueUsageNotices(usage.consumedSeconds, entitlement.includedSeconds).map((percent) => ({
        userId,
        cycleStart: usage.cycleStart,
        percent,
        cycleEnd: usage.cycleEnd,
        consumedSeconds: usage.consumedSeconds,
        includedSeconds: entitlement.includedSeconds,
      })),
    )
    if (due.length === 0) continue
    for (const { userId, percent } of await notifyOfUsage(sql, due, notify))
      log.info({ user_id: userId, percent }, 'an account has used this percentage of its relay time')
  }
}
