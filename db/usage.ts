/** The Time Bank: how much of the cycle's relay time is used, from intervals by the database's clock. */
import type { Sql } from './connection.ts'

export interface Usage {
  readonly cycleStart: Date
  readonly cycleEnd: Date
  /** Whole seconds; concurrent relays add up, running ones count to now. */
  readonly consumedSeconds: number
  /** Relays whose interval is open. */
  readonly activeSessions: number
  readonly asOf: Date
}

/** Each account's use of the present cycle, by its id: the calendar month, in UTC. */
export async function usagesOf(sql: Sql, userIds: readonly string[]): Promise<Map<string, Usage>> {
  const rows = await sql<(Usage & { userId: string })[]>`
    with cycle as (
      select date_trunc('month', now(), 'UTC') as starts, date_trunc('month', now(), 'UTC') + interval '1 month' as ends
    )
    select asked.user_id as "userId", starts as "cycleStart", ends as "cycleEnd", now() as "asOf",
      -- Without the filter the row that stands for no interval at all would count from the cycle's start to now.
      coalesce(floor(sum(extract(epoch from least(coalesce(u.ended_at, now()), ends) - greatest(u.started_at, starts)))
        filter (where u.id is not null)), 0)::int as "consumedSeconds",
      (count(u.id) filter (where u.ended_at is null))::int as "activeSessions"
    from cycle cross join unnest(${userIds}::uuid[]) as asked (user_id) left join usage_intervals u
      on u.user_id = asked.user_id and u.started_at < ends and coalesce(u.ended_at, now()) > starts
    group by asked.user_id, starts, ends`
  return new Map(rows.map(({ userId, ...usage }) => [userId, usage] as const))
}

export async function usageOf(sql: Sql, userId: string): Promise<Usage> {
  const usage = (await usagesOf(sql, [userId])).get(userId)
  if (!usage) throw new Error('a cycle always has a row')
  return usage
}
