/** The ledger of relay time: an interval is opened when a relay becomes active and closed when its session ends. */
import { usageEndedSecondsAgo } from '../../domain/relay/health.ts'
import { first, type Sql } from '../connection.ts'
import { joinPath, type ReceptionRow, receptionColumns, toReception } from '../presence.ts'

/** Opens an interval unless the session has an open one. */
export const openUsageInterval = async (sql: Sql, sessionId: string, userId: string): Promise<void> => {
  await sql`
    insert into usage_intervals (session_id, user_id, started_at) values (${sessionId}, ${userId}, now())
    on conflict (session_id) where ended_at is null do nothing`
}

/** Closes the open interval now, or at an earlier time when the relay died before. Both statements count from now(). */
export async function closeUsageInterval(
  sql: Sql,
  sessionId: string,
  limits: { readonly healthTimeoutSeconds: number; readonly healthIntervalSeconds: number },
): Promise<void> {
  const row = await first(sql<({ lastReportSeconds: number } & ReceptionRow)[]>`
    select extract(epoch from now() - h.last_report_at)::float8 as last_report_seconds,
      ${receptionColumns(sql, sql`now()`)}
    from relay_sessions s join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
      ${joinPath(sql, sql`s.region`)}, presence api
    where s.id = ${sessionId} and api.role = 'api'`)
  const observation = row && { lastReportSeconds: row.lastReportSeconds, ...toReception(row) }
  const endedSecondsAgo = observation ? usageEndedSecondsAgo(observation, limits) : 0
  await sql`
    update usage_intervals set ended_at = greatest(started_at, now() - make_interval(secs => ${endedSecondsAgo}))
    where session_id = ${sessionId} and ended_at is null`
}

/** Closes the open interval at a time in the past. */
export const closeUsageIntervalAt = async (sql: Sql, sessionId: string, at: Date): Promise<void> => {
  await sql`
    update usage_intervals set ended_at = greatest(started_at, ${at}) where session_id = ${sessionId} and ended_at is null`
}
