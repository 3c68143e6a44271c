/** The ledger of relay time: an interval is opened when a relay becomes active and closed when its session ends. */

import type { Sql } from './connection.ts'
import { presenceSeconds } from './presence.ts'

/** A relay that died is counted this long beyond its last report, in seconds, or one report interval where that is longer. */
const afterLastReportSeconds = 30

export const openUsageInterval = async (sql: Sql, sessionId: string, userId: string): Promise<void> => {
  await sql`
    insert into usage_intervals (session_id, user_id, started_at) values (${sessionId}, ${userId}, now())
    on conflict (session_id) where ended_at is null do nothing`
}

interface Reporting {
  readonly healthIntervalSeconds: number
  readonly settings: { readonly healthTimeoutSeconds: number }
}

/**
 * Closes the interval now, unless the relay died before: then it was used until shortly after its last report. It counts as
 * dead only after a silence longer than the health timeout in which reports could be taken.
 */
export const closeUsageInterval = async (
  sql: Sql,
  sessionId: string,
  { healthIntervalSeconds, settings: { healthTimeoutSeconds } }: Reporting,
): Promise<void> => {
  const beyond = Math.max(afterLastReportSeconds, healthIntervalSeconds)
  await sql`
    with heard as (
      select greatest(h.last_report_at, a.since) as until,
        a.seen_at >= now() - make_interval(secs => ${presenceSeconds('api', healthTimeoutSeconds)}) as is_open
      from relay_sessions s join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id, presence a
      where s.id = ${sessionId} and a.role = 'api'
    )
    update usage_intervals u set ended_at = greatest(u.started_at, least(now(), coalesce(
      (select until + make_interval(secs => ${beyond}) from heard
        where is_open and until < now() - make_interval(secs => ${healthTimeoutSeconds})), now())))
    where session_id = ${sessionId} and ended_at is null`
}
