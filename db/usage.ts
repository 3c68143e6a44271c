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

/**
 * Each account's use of the present cycle, by its id. A relay that ran over a cycle's end counts in each cycle with its part;
 * the parts are added up exactly and only the sum is rounded down.
 */
export async function findUsages(sql: Sql, userIds: readonly string[]): Promise<Map<string, Usage>> {
  const rows = await sql<(Usage & { userId: string })[]>`
    -- Materialized, or each cycle would be computed again for each interval.
    with cycle as materialized (${presentCycles(sql, userIds)})
    select cycle.user_id, starts as cycle_start, ends as cycle_end, now() as as_of,
      -- A relay that became active after this transaction began has not run yet, and takes nothing from the others.
      coalesce(floor(sum(extract(epoch from
        greatest(interval '0', least(coalesce(u.ended_at, now()), ends) - greatest(u.started_at, starts))))
        filter (where u.id is not null)), 0)::int as consumed_seconds,
      (count(u.id) filter (where u.ended_at is null))::int as active_sessions
    from cycle left join usage_intervals u
      on u.user_id = cycle.user_id and u.started_at < ends and coalesce(u.ended_at, now()) > starts
    group by cycle.user_id, starts, ends`
  return new Map(rows.map(({ userId, ...usage }) => [userId, usage] as const))
}

/**
 * The cycle in which each account is: the billing period of its paid plan, or months counted from that period while it is
 * over or ahead, as when its renewal is late; without a period the calendar month. All in UTC, so that no server's summer
 * time moves an hour; a month from the 31st ends on the last day of a shorter one, and the next again on the 31st.
 */
const presentCycles = (sql: Sql, userIds: readonly string[]) => sql`
  select user_id,
    case when is_in_period then period_start else (anchor + make_interval(months => passed)) at time zone 'UTC' end as starts,
    case when is_in_period then period_end else (anchor + make_interval(months => passed + 1)) at time zone 'UTC' end as ends
  from (
    select asked.user_id, u.period_start, u.period_end, now() at time zone 'UTC' as clock,
      coalesce(now() >= u.period_start and now() < u.period_end, false) as is_in_period,
      coalesce(case when now() < u.period_start then u.period_start else u.period_end end,
        date_trunc('month', now(), 'UTC')) at time zone 'UTC' as anchor
    -- Behind a select Postgres can't count the ids, and keeps one plan for all: planning takes longer than reading.
    from (select distinct unnest((select ${userIds}::uuid[])) as user_id) asked
      left join users u on u.id = asked.user_id and u.plan_tier = 'paid' and u.period_end is not null
  ) counted
  cross join lateral (
    select ((extract(year from clock) - extract(year from anchor)) * 12
      + extract(month from clock) - extract(month from anchor))::int as begun
  ) months
  cross join lateral (select begun - (anchor + make_interval(months => begun) > clock)::int as passed) whole`

export async function findUsage(sql: Sql, userId: string): Promise<Usage> {
  const usage = (await findUsages(sql, [userId])).get(userId)
  if (!usage) throw new Error('a cycle always has a row')
  return usage
}
