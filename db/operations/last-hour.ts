/**
 * What happened in the last hour, for operators. Each number is read from an index over the rows of that hour alone:
 * sessions by `relay_sessions_newest` and `relay_sessions_stopped`, failed sign-ins by the primary key.
 */
import { first, type Sql } from '../connection.ts'

interface MinuteFigures {
  readonly at: Date
  readonly started: number
  readonly stopped: number
  /** Sessions that ended because no relay became ready. */
  readonly provisioningFailed: number
  readonly signInsFailed: number
}

/** The last 60 minutes, oldest first; the present one is not over. */
export const readMinutes = async (sql: Sql): Promise<MinuteFigures[]> =>
  sql<MinuteFigures[]>`
    with minutes as (
      select generate_series(date_trunc('minute', now()) - interval '59 minutes', now(), interval '1 minute') as at
    )
    -- Each minute is a range of an index, which costs less than to truncate and to group the times of all sessions.
    select at, started, stopped, provisioning_failed, coalesce(failures, 0) as sign_ins_failed
    from minutes left join sign_in_failures on minute = at
    cross join lateral (
      select count(*)::int as started from relay_sessions
      where created_at >= at and created_at < at + interval '1 minute'
    ) starts
    cross join lateral (
      select count(*)::int as stopped,
        (count(*) filter (where reason in ('provision_failed', 'provision_timeout')))::int as provisioning_failed
      from relay_sessions
      where state = 'stopped' and stopped_at >= at and stopped_at < at + interval '1 minute'
    ) stops
    order by at`

interface ProvisioningFigures {
  /** Sessions of the last hour that became active. */
  readonly sessions: number
  /** Null without any. */
  readonly p50Seconds: number | null
  readonly p95Seconds: number | null
}

/** The time from the accepted start to active. */
export const readProvisioningTimes = async (sql: Sql): Promise<ProvisioningFigures> =>
  (await first(sql<ProvisioningFigures[]>`
    select count(*)::int as sessions,
      percentile_cont(0.5) within group (order by seconds) as p50_seconds,
      percentile_cont(0.95) within group (order by seconds) as p95_seconds
    from (
      -- This computes a float, and extract a numeric, which takes longer.
      select date_part('epoch', active_at - created_at) as seconds from relay_sessions
      where created_at > now() - interval '1 hour' and active_at is not null
    ) provisioned`)) ?? { sessions: 0, p50Seconds: null, p95Seconds: null }
