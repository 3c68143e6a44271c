/** Notifies accounts that they have used a share of their cycle's relay time. */
import { recordAuditEntry } from '../audit.ts'
import { recordUsageNotices, type UsageNotice } from '../billing/usage-notices.ts'
import type { Database } from '../connection.ts'
import type { Notify } from '../notifications/settings.ts'

interface DueNotice extends UsageNotice {
  readonly cycleEnd: Date
  readonly consumedSeconds: number
  readonly includedSeconds: number
}

const keyOf = ({ userId, percent }: UsageNotice): string => `${userId} ${percent}`

/**
 * Each notice is sent once.
 * @returns those that were not sent before.
 */
export const notifyOfUsage = (
  sql: Database,
  due: readonly DueNotice[],
  notify: Notify,
): Promise<readonly DueNotice[]> =>
  sql.begin(async (tx): Promise<readonly DueNotice[]> => {
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
  }) as Promise<readonly DueNotice[]>
