/** Notices that an account has used a share of its cycle's relay time; one for each share and cycle. */
import type { UsageNoticePercent } from '../../domain/billing/usage-cycle.ts'
import type { Sql } from '../connection.ts'

export interface UsageNotice {
  readonly userId: string
  readonly cycleStart: Date
  readonly percent: UsageNoticePercent
}

/**
 * Accounts whose usage may have grown in the last minutes: they have a running relay, or one whose usage interval ended
 * in the last 15 minutes. The interval of a relay that failed silently ends some minutes before the failure is
 * detected.
 */
export const listAccountsInUse = async (sql: Sql): Promise<string[]> =>
  (
    await sql<{ userId: string }[]>`
      select user_id from usage_intervals where ended_at is null
      union select user_id from usage_intervals where ended_at > now() - interval '15 minutes'
      order by user_id`
  ).map((row) => row.userId)

/** Inserts the notices and returns those that did not exist yet. */
export const recordUsageNotices = async (sql: Sql, notices: readonly UsageNotice[]): Promise<UsageNotice[]> =>
  sql<UsageNotice[]>`
    insert into usage_notices (user_id, cycle_start, percent)
    select * from unnest(${notices.map(({ userId }) => userId)}::uuid[],
      ${notices.map(({ cycleStart }) => cycleStart.toISOString())}::timestamptz[], ${notices.map(({ percent }) => percent)}::int[])
    on conflict do nothing
    returning user_id, cycle_start, percent`
