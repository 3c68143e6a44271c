/** Deletion of ended relay sessions. Their relay time is kept by day and connection in `usage_days`. */
import type { RetentionConfig } from '../../platform/config/retention.ts'
import type { Sql } from '../connection.ts'

/**
 * Deletes up to `rowsMax` sessions that ended long ago, with all rows that refer to them, and adds their relay time to
 * the days of the account, in one statement. @returns the number of sessions.
 *
 * A session stays while its relay time is open, while its instance exists, and during the billing period in which it
 * ended: the current usage cycle is measured from its intervals. The rows of an account that is to be erased are left
 * to that deletion, which locks them in another order.
 */
export const deleteEndedRelaySessions = async (
  sql: Sql,
  { sessionDays }: RetentionConfig,
  rowsMax: number,
): Promise<number> =>
  (
    await sql`
      with expired as materialized (
        select s.id, s.connection_id from relay_sessions s
        where s.state = 'stopped' and s.stopped_at < now() - make_interval(days => ${sessionDays})
          and not exists (select from usage_intervals u where u.session_id = s.id and u.ended_at is null)
          and not exists (select from instances i where i.session_id = s.id and i.gone_at is null)
          -- A scalar query looks up one account for each session; a join could read all accounts.
          and (select a.deletion_due_at is null and (a.period_start <= s.stopped_at and a.period_end > now()) is not true
            from users a where a.id = s.user_id)
        order by s.stopped_at limit ${rowsMax} for update of s skip locked),
      used as (
        select u.user_id, e.connection_id, u.started_at at time zone 'UTC' as from_at, u.ended_at at time zone 'UTC' as to_at
        from expired e join usage_intervals u on u.session_id = e.id),
      rolled_up as (
        insert into usage_days as d (user_id, day, connection_id, seconds)
        select user_id, day::date, connection_id,
          sum(extract(epoch from least(to_at, day + interval '1 day') - greatest(from_at, day)))
        -- Days are counted in "timestamp", where each has 24 hours in any time zone of the connection.
        from used, generate_series(date_trunc('day', from_at), to_at, interval '1 day') day
        where from_at < to_at and to_at > day
        group by user_id, day, connection_id
        on conflict (user_id, day, connection_id) do update set seconds = d.seconds + excluded.seconds)
      delete from relay_sessions where id in (select id from expired)`
  ).count
