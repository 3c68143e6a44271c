/** Health reports of relays, and the sessions whose reports are missing. The rules of silence are in `domain/relay-health.ts`. */
import type { ActiveObservation, ReportObservation } from '../domain/relay-health.ts'
import type { RelayCommand, RelayReason, RelayState } from '../domain/relay-session.ts'
import { first, type Sql } from './connection.ts'
import type { BoundSession } from './instances.ts'
import { presenceColumns, toPresence } from './presence.ts'

export interface HealthReport {
  readonly sessionId: string
  readonly instanceId: string
  /** Whether no stream comes in; undefined when the report does not state it. */
  readonly isIdle: boolean | undefined
}

export interface ReportedSession {
  state: RelayState
  reason: RelayReason
  command: RelayCommand
  /** The instance that is bound to the session; null before one is. */
  boundInstanceId: string | null
}

/**
 * Stores a batch of reports. Reports for a stopped session, and reports of an instance that is not the bound one, are not
 * stored.
 * @returns the session of each report, in their order; undefined for an unknown session.
 */
export async function recordReports(
  sql: Sql,
  reports: readonly HealthReport[],
): Promise<(ReportedSession | undefined)[]> {
  const rows = await sql<(ReportedSession & { place: number })[]>`
    with report as (
      select session_id, instance_id, is_idle, place from unnest(
        ${reports.map((one) => one.sessionId)}::uuid[], ${reports.map((one) => one.instanceId)}::text[],
        ${reports.map((one) => String(one.isIdle ?? false))}::text[]::bool[]
      ) with ordinality as r (session_id, instance_id, is_idle, place), set_config('synchronous_commit', 'off', true)
    ), matched as (
      select r.*, s.state, s.reason, s.command, s.instance_id as bound_instance_id
      from report r join relay_sessions s on s.id = r.session_id
    ), stored as (
      insert into relay_health as h (session_id, instance_id, last_report_at, idle_since)
      select distinct on (session_id) session_id, instance_id, now(), case when is_idle then now() end
      from matched where state <> 'stopped' and (bound_instance_id is null or bound_instance_id = instance_id)
      order by session_id, place desc
      on conflict (session_id) do update set
        instance_id = excluded.instance_id, last_report_at = excluded.last_report_at,
        idle_since = case when excluded.idle_since is not null then coalesce(h.idle_since, excluded.idle_since) end
    )
    select place::int, state, reason, command, bound_instance_id from matched`
  const sessions = new Map(rows.map(({ place, ...session }) => [place, session] as const))
  return reports.map((_, index) => sessions.get(index + 1))
}

export interface QuietSession extends BoundSession, ActiveObservation {}

/** Active sessions without a report for longer than `quietSeconds`. */
export async function listQuietSessions(sql: Sql, quietSeconds: number): Promise<QuietSession[]> {
  const rows = await sql<(Omit<QuietSession, 'api'> & { apiForSeconds: number; apiLastSeenSeconds: number })[]>`
    with active as (
      select s.id, s.instance_id, s.region, s.active_at, h.last_report_at,
        (count(*) over (partition by s.region))::int as active_in_region
      from relay_sessions s left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
      where s.state = 'active'
    )
    select id, instance_id, region, active_in_region,
      extract(epoch from clock_timestamp() - last_report_at)::float8 as last_report_seconds,
      extract(epoch from clock_timestamp() - active_at)::float8 as active_seconds, ${presenceColumns(sql, 'api')}
    from active, presence api
    where api.role = 'api'
      and greatest(last_report_at, active_at) < clock_timestamp() - make_interval(secs => ${quietSeconds})`
  return rows.map((row) => ({ ...row, api: toPresence(row, 'api') }))
}

/** Sessions that wait for a report although it came: the signal of the API was lost. */
export async function listMissedReports(sql: Sql, limit: number): Promise<{ ready: string[]; restored: string[] }> {
  const rows = await sql<{ id: string; state: RelayState }[]>`
    select s.id, s.state from relay_sessions s
    join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
    where s.state in ('provisioning', 'grace') and h.last_report_at < now() - interval '2 seconds'
      and (s.state = 'provisioning' or (s.reason = 'health_lost' and h.last_report_at > s.grace_started_at))
    limit ${limit}`
  const idsIn = (state: RelayState) => rows.filter((row) => row.state === state).map((row) => row.id)
  return { ready: idsIn('provisioning'), restored: idsIn('grace') }
}

export interface UnreportedInstance extends BoundSession, ReportObservation {
  readonly region: string
  /** Since the instance was bound to its session. */
  readonly boundSeconds: number
}

/** Sessions that are provisioning on an instance that was bound longer than `boundSeconds` ago and has never reported. */
export async function listUnreportedInstances(
  sql: Sql,
  boundSeconds: number,
  limit: number,
): Promise<UnreportedInstance[]> {
  const rows = await sql<
    (Omit<UnreportedInstance, 'api' | 'lastReportSeconds'> & { apiForSeconds: number; apiLastSeenSeconds: number })[]
  >`
    select s.id, s.instance_id, s.region,
      extract(epoch from clock_timestamp() - s.instance_bound_at)::float8 as bound_seconds, ${presenceColumns(sql, 'api')}
    from relay_sessions s join presence api on api.role = 'api'
    where s.state = 'provisioning' and s.instance_id is not null
      and s.instance_bound_at < clock_timestamp() - make_interval(secs => ${boundSeconds})
      and not exists (select from relay_health h where h.session_id = s.id and h.instance_id = s.instance_id)
    limit ${limit}`
  return rows.map((row) => ({ ...row, lastReportSeconds: null, api: toPresence(row, 'api') }))
}

/** Active sessions that are older than `ageSeconds` and through which no stream comes in. */
export const listIdleSessions = async (sql: Sql, ageSeconds: number): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      select s.id from relay_sessions s join relay_health h on h.session_id = s.id
      where s.state = 'active' and s.created_at < now() - make_interval(secs => ${ageSeconds}) and h.idle_since is not null`
  ).map((row) => row.id)

/** Live sessions older than `ageSeconds`. */
export const countOverlongSessions = async (sql: Sql, ageSeconds: number): Promise<number> =>
  first(
    await sql<{ sessions: number }[]>`
      select count(*)::int as sessions from relay_sessions
      where state <> 'stopped' and created_at < now() - make_interval(secs => ${ageSeconds})`,
  )?.sessions ?? 0
