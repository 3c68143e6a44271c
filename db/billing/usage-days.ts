/** Relay time of a cycle by day and by connection, measured from the same ledger and in the same way as `usage.ts`. */
import { toUsageDays, type UsageDay, type UsagePart } from '../../domain/billing/usage-days.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Sql } from '../connection.ts'
import { type EntitlementWithUsage, findEntitlementsWithUsage } from './entitlements.ts'
import type { Usage } from './usage.ts'

/** How many connections are listed by name: those with the most relay time. */
const namedConnectionsMax = 4

type TimeBank = Config['timeBank']

interface UsageByDay {
  readonly account: EntitlementWithUsage
  /** Days with relay time. They add up to the consumed seconds of the account. */
  readonly days: readonly UsageDay[]
}

/**
 * Undefined for an unknown account.
 * @param tx a snapshot, so that the days add up to the sum.
 */
export async function findUsageByDay(tx: Sql, userId: string, timeBank: TimeBank): Promise<UsageByDay | undefined> {
  const account = (await findEntitlementsWithUsage(tx, [userId], timeBank)).get(userId)
  return account && { account, days: toUsageDays(await listUsageParts(tx, userId, account.usage)) }
}

/**
 * The parts of intervals within the cycle, split at midnight in UTC, in the order of days and names. Intervals of a day
 * and a connection are added up. Days are counted in `timestamp`, where each has 24 hours in any time zone of the
 * connection.
 */
const listUsageParts = (
  sql: Sql,
  userId: string,
  { cycleStart, cycleEnd, asOf }: Pick<Usage, 'cycleStart' | 'cycleEnd' | 'asOf'>,
): Promise<UsagePart[]> =>
  sql<UsagePart[]>`
    with cycle as (
      select ${cycleStart.toISOString()}::timestamptz as starts, ${cycleEnd.toISOString()}::timestamptz as ends,
        ${asOf.toISOString()}::timestamptz as as_of),
    used as (
      select s.connection_id, greatest(u.started_at, starts) at time zone 'UTC' as from_at,
        least(coalesce(u.ended_at, as_of), ends) at time zone 'UTC' as to_at
      from cycle, usage_intervals u join relay_sessions s on s.id = u.session_id
      where u.user_id = ${userId} and u.started_at < ends and coalesce(u.ended_at, as_of) > starts),
    parts as (
      select connection_id, day, extract(epoch from least(to_at, day + interval '1 day') - greatest(from_at, day)) as seconds
      from used, generate_series(date_trunc('day', from_at), to_at, interval '1 day') day
      where from_at < to_at),
    ranks as (
      select connection_id, row_number() over (order by sum(seconds) desc, connection_id) as rank
      from parts group by connection_id)
    select to_char(day, 'YYYY-MM-DD') as day, name as connection_id, round(sum(seconds) * 1000000)::float8 as micros
    from (
      select day, seconds, case when rank <= ${namedConnectionsMax} then connection_id end as name
      from parts join ranks using (connection_id)) named
    group by day, name
    having sum(seconds) > 0
    order by day, name`
