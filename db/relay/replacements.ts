/** The instances that were replaced in a session. */
import type { LossCause } from '../../domain/relay/session.ts'
import { first, firstValue, type Sql } from '../connection.ts'

interface NewReplacement {
  readonly sessionId: string
  readonly binding: number
  readonly replacedBy: string
}

/**
 * Records that an instance takes over from the bound one. The time of the failure is that of the end of its open
 * report, or of its last report where that did not end before.
 */
export const insertReplacement = async (tx: Sql, { sessionId, binding, replacedBy }: NewReplacement): Promise<void> => {
  await tx`
    insert into relay_replacements (session_id, binding, instance_id, replaced_by, cause, failed_at, last_report_at)
    select s.id, ${binding}, s.instance_id, ${replacedBy},
      case when s.detail = 'relay_gone' then 'relay_gone' else 'relay_silent' end,
      coalesce(case when h.suspect_since > h.last_report_at and h.suspect_since <= s.grace_started_at then h.suspect_since end,
        h.last_report_at, s.grace_started_at),
      coalesce(h.last_report_at, s.grace_started_at)
    from relay_sessions s left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
    where s.id = ${sessionId}
    on conflict (session_id, binding) do nothing`
}

export interface FinishedReplacement {
  readonly failedAt: Date
  readonly lastReportAt: Date
  readonly restoredAt: Date
  readonly cause: LossCause
}

/**
 * Completes the replacement of a session that is active again; undefined when none was under way. Several are one when
 * an instance was lost again before the session was active: from the failure of the first to the report of the last.
 */
export const finishReplacement = async (tx: Sql, sessionId: string): Promise<FinishedReplacement | undefined> =>
  first(tx<FinishedReplacement[]>`
    with finished as (
      update relay_replacements set restored_at = greatest(bound_at, last_report_at)
      where session_id = ${sessionId} and restored_at is null
      returning binding, failed_at, last_report_at, restored_at, cause
    )
    select failed_at, last_report_at, (select max(restored_at) from finished) as restored_at, cause
    from finished order by binding limit 1`)

/** The number of replacements of a session within the last hour. */
export const countRecentReplacements = async (sql: Sql, sessionId: string): Promise<number> =>
  (await firstValue(sql<{ count: number }[]>`
    select count(*)::int as count from relay_replacements
    where session_id = ${sessionId} and restored_at > now() - interval '1 hour'`)) ?? 0

export interface ReplacementRow {
  readonly failedAt: Date
  readonly awaySeconds: number
  readonly cause: LossCause
}

/** The completed replacements of a session, the first one first. */
export const listReplacements = async (sql: Sql, sessionId: string): Promise<ReplacementRow[]> =>
  sql<ReplacementRow[]>`
    select failed_at, cause, extract(epoch from restored_at - failed_at)::float8 as away_seconds
    from relay_replacements where session_id = ${sessionId} and restored_at is not null order by binding`
