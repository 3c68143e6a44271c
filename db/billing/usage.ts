/** Relay time that was used in a cycle, measured from the ledger `usage_intervals` by the database's clock. */
import type { UsageCycle } from '../../domain/billing/usage-cycle.ts'
import type { Sql } from '../connection.ts'

interface UsageRequest {
  readonly userId: string
  readonly usageCycle: UsageCycle
  /** The database's time when the cycle was determined. */
  readonly asOf: Date
}

export interface Usage {
  readonly cycleStart: Date
  readonly cycleEnd: Date
  /** Whole seconds; concurrent relays add up, running ones count until `asOf`. */
  readonly consumedSeconds: number
  /** Running relays. */
  readonly activeSessions: number
  readonly asOf: Date
}

/**
 * The usage of each account by its id. A relay that ran beyond the end of a cycle counts in each cycle with its part.
 * The parts are added up exactly and only the sum is rounded down.
 */
export async function findUsages(sql: Sql, requests: readonly UsageRequest[]): Promise<Map<string, Usage>> {
  if (requests.length === 0) return new Map()
  const rows = await sql<{ userId: string; consumedSeconds: number; activeSessions: number }[]>`
    select cycle.user_id, used.*
    -- The parameters are wrapped in a select, so that Postgres plans once instead of for each number of accounts.
    from unnest((select ${requests.map(({ userId }) => userId)}::uuid[]), (select ${dates(requests, 'start')}::timestamptz[]),
        (select ${dates(requests, 'end')}::timestamptz[]), (select ${requests.map(({ asOf }) => asOf.toISOString())}::timestamptz[]))
        as cycle (user_id, starts, ends, as_of)
      cross join lateral (
        -- An interval that started after "as_of" has a negative length, which must not be subtracted from the others.
        select coalesce(floor(extract(epoch from sum(greatest(interval '0',
            least(coalesce(u.ended_at, as_of), ends) - greatest(u.started_at, starts))))), 0)::int as consumed_seconds,
          (count(*) filter (where u.ended_at is null))::int as active_sessions
        -- Two conditions that the index usage_intervals_user_ended serves each: intervals of earlier cycles are not read.
        from (
          select started_at, ended_at from usage_intervals where user_id = cycle.user_id and ended_at > cycle.starts
          union all
          select started_at, ended_at from usage_intervals where user_id = cycle.user_id and ended_at is null
        ) u
        where u.started_at < ends and coalesce(u.ended_at, as_of) > starts
      ) used`
  const measured = new Map(rows.map(({ userId, ...usage }) => [userId, usage] as const))
  return new Map(
    requests.map(({ userId, usageCycle: { start, end }, asOf }) => {
      const { consumedSeconds = 0, activeSessions = 0 } = measured.get(userId) ?? {}
      const cycle = { cycleStart: new Date(start), cycleEnd: new Date(end) }
      return [userId, { ...cycle, consumedSeconds, activeSessions, asOf }] as const
    }),
  )
}

const dates = (requests: readonly UsageRequest[], bound: keyof UsageCycle): string[] =>
  requests.map(({ usageCycle }) => new Date(usageCycle[bound]).toISOString())
