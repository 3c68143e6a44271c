/** The job that records when an account has used 80, 95 and 100 percent of the relay time of its cycle. */
import { recordAuditEntry } from '../../db/audit.ts'
import { findEntitlementsWithUsage } from '../../db/billing/entitlements.ts'
import { listAccountsInUse, recordUsageNotices, type UsageNotice } from '../../db/billing/usage-notices.ts'
import type { Database } from '../../db/connection.ts'
import type { Notify } from '../../db/notifications/settings.ts'
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
    const due = [...measured].flatMap(([userId, { usage, entitlement }]) =>
      dueUsageNotices(usage.consumedSeconds, entitlement.includedSeconds).map((percent) => ({
        userId,
        cycleStart: usage.cycleStart,
        percent,
        cycleEnd: usage.cycleEnd,
        consumedSeconds: usage.consumedSeconds,
        includedSeconds: entitlement.includedSeconds,
      })),
    )
    if (due.length > 0) await recordNotices(due, { sql, log, notify })
  }
}

interface DueNotice extends UsageNotice {
  readonly cycleEnd: Date
  readonly consumedSeconds: number
  readonly includedSeconds: number
}

const keyOf = ({ userId, percent }: UsageNotice): string => `${userId} ${percent}`

async function recordNotices(due: readonly DueNotice[], { sql, log, notify }: Omit<Deps, 'config'>): Promise<void> {
  const inserted = await sql.begin(async (tx) => {
    const recorded = await recordUsageNotices(tx, due)
    const keys = new Set(recorded.map(keyOf))
    const notices = due.filter((notice) => keys.has(keyOf(notice)))
    for (const { userId, percent, ...usage } of notices) {
      await recordAuditEntry(tx, { initiator: 'system', action: 'usage_notice', userId, detail: { percent } })
      await notify(tx, userId, {
        kind: `usage_${percent}`,
        timestamp: new Date().toISOString(),
        data: {
          percent,
          consumed_seconds: usage.consumedSeconds,
          included_seconds: usage.includedSeconds,
          cycle_start: usage.cycleStart.toISOString(),
          cycle_end: usage.cycleEnd.toISOString(),
        },
      })
    }
    return notices
  })
  for (const { userId, percent } of inserted)
    log.info({ user_id: userId, percent }, 'an account has used this percentage of its relay time')
}
