/** Sees to it that who uses up the relay time of a cycle is told on the way: at 80, 95 and 100 percent. */
import { audit } from '../../db/audit.ts'
import type { Database } from '../../db/connection.ts'
import { type Entitlement, findEntitlements, includedSeconds } from '../../db/entitlements.ts'
import { findUsages, type Usage } from '../../db/usage.ts'
import { listAccountsInUse, noticePercents, recordUsageNotices, type UsageNotice } from '../../db/usage-notices.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Job } from './jobs.ts'

interface Needs {
  readonly config: Pick<Config, 'timeBank'>
  readonly sql: Database
  readonly log: Logger
}

/** Accounts that one statement counts at most. */
const accountsAtOnce = 500

export const usageJobs = (needs: Needs): readonly Job[] => [
  { name: 'watch_usage', everySeconds: 60, roundSecondsMax: 300, run: () => watchUsage(needs) },
]

/** One round. Safe to repeat: a notice that is kept already is not given again. */
export async function watchUsage({ config: { timeBank }, sql, log }: Needs): Promise<void> {
  const accounts = await listAccountsInUse(sql)
  for (let at = 0; at < accounts.length; at += accountsAtOnce) {
    const userIds = accounts.slice(at, at + accountsAtOnce)
    const usages = await findUsages(sql, userIds)
    const entitlements = await findEntitlements(sql, userIds, timeBank, async () => usages)
    const due = userIds.flatMap((userId) => noticesDue(userId, usages.get(userId), entitlements.get(userId), timeBank))
    if (due.length > 0) await give(due, sql, log)
  }
}

/** All that were passed, told or not. Who has no relay time included can't use up any of it. */
function noticesDue(
  userId: string,
  usage: Usage | undefined,
  entitlement: Entitlement | undefined,
  timeBank: Config['timeBank'],
): UsageNotice[] {
  const included = entitlement ? includedSeconds(entitlement, timeBank) : 0
  if (!usage || included === 0) return []
  return noticePercents
    .filter((percent) => usage.consumedSeconds * 100 >= included * percent)
    .map((percent) => ({ userId, cycleStart: usage.cycleStart, percent }))
}

const give = async (due: readonly UsageNotice[], sql: Database, log: Logger): Promise<void> => {
  const given = await sql.begin(async (tx) => {
    const news = await recordUsageNotices(tx, due)
    for (const { userId, percent } of news)
      await audit(tx, { actor: 'system', action: 'usage_notice', userId, detail: { percent } })
    return news
  })
  for (const { userId, percent } of given)
    log.info({ user_id: userId, percent }, 'so much of the relay time of a cycle is used')
}
