/** At which shares of a cycle's relay time its owner was told, each once. */
import type { Sql } from './connection.ts'

/** Of what goes with the plan. */
export const noticePercents = [80, 95, 100] as const

export interface UsageNotice {
  readonly userId: string
  readonly cycleStart: Date
  readonly percent: (typeof noticePercents)[number]
}

/**
 * Accounts whose use may have grown since a round some minutes ago: with a relay that runs, or one whose time was closed since.
 * A quarter of an hour, because a relay that died silently is closed some minutes back.
 */
export const listAccountsInUse = async (sql: Sql): Promise<string[]> =>
  (
    await sql<{ userId: string }[]>`
      select user_id from usage_intervals where ended_at is null
      union select user_id from usage_intervals where ended_at > now() - interval '15 minutes'
      order by user_id`
  ).map((row) => row.userId)

/** Keeps the notices. Answers those that are new: another round may have kept some before. */
export const recordUsageNotices = async (sql: Sql, notices: readonly UsageNotice[]): Promise<UsageNotice[]> =>
  sql<UsageNotice[]>`
    insert into usage_notices (user_id, cycle_start, percent)
    select * from unnest(${notices.map((one) => one.userId)}::uuid[],
      ${notices.map((one) => one.cycleStart.toISOString())}::timestamptz[], ${notices.map((one) => one.percent)}::int[])
    on conflict do nothing
    returning user_id, cycle_start, percent`
