/** Health reports of relays: what came, what stayed away, and whether anything could have come at all. */
import { first, type Sql } from './connection.ts'
import type { BoundSession } from './instances.ts'
import { presenceSeconds } from './presence.ts'
import type { RelayCommand, RelayReason, RelayState } from './relay-sessions.ts'

export interface HealthReport {
  readonly sessionId: string
  readonly instanceId: string
  /** Nobody sends through the relay; undefined when the report does not say. */
  readonly idle: boolean | undefined
}

export interface ReportedSession {
  state: RelayState
  reason: RelayReason
  command: RelayCommand
  /** The instance that is bound to the session, if one is yet. */
  bound: string | null
}

/**
 * Keeps a round of reports and answers each report's session as it is, in their order; nothing for an unknown one.
 * A report for a stopped session, or from an instance that is not the bound one, is not kept.
 */
export async function recordReports(
  sql: Sql,
  reports: readonly HealthReport[],
): Promise<(ReportedSession | undefined)[]> {
  const rows = await sql<(ReportedSession & { place: number })[]>`
    with asked as (
      select session_id, instance_id, idle, place from unnest(
        ${reports.map((one) => one.sessionId)}::uuid[], ${reports.map((one) => one.instanceId)}::text[],
        ${reports.map((one) => String(one.idle ?? false))}::text[]::bool[]
      ) with ordinality as report (session_id, instance_id, idle, place), set_config('synchronous_commit', 'off', true)
    ), known as (
      select a.*, s.state, s.reason, s.command, s.instance_id as bound
      from asked a join relay_sessions s on s.id = a.session_id
    ), kept as (
      insert into relay_health as h (session_id, instance_id, last_report_at, idle_since)
      select distinct on (session_id) session_id, instance_id, now(), case when idle then now() end
      from known where state <> 'stopped' and (bound is null or bound = instance_id)
      order by session_id, place desc
      on conflict (session_id) do update set
        instance_id = excluded.instance_id, last_report_at = excluded.last_report_at,
        idle_since = case when excluded.idle_since is not null then coalesce(h.idle_since, excluded.idle_since) end
    )
    select place::int, state, reason, command, bound from known`
  const answers = new Map(rows.map(({ place, ...session }) => [place, session] as const))
  return reports.map((_, index) => answers.get(index + 1))
}

export interface SilentRegion {
  region: string
  /** Relays that ought to report. */
  active: number
  /** Those that have not for half the timeout: the ones that are about to be silent. */
  quiet: number
  /** Those that have not for the whole timeout. */
  silent: BoundSession[]
}

/** Active sessions whose relay did not report for `timeoutSeconds` in which it could have been heard, by region. */
export const silentSessions = async (sql: Sql, timeoutSeconds: number): Promise<SilentRegion[]> =>
  sql<SilentRegion[]>`
    with heard as (
      select s.id, s.instance_id, s.region,
        now() - greatest(coalesce(h.last_report_at, s.active_at), a.since, s.active_at) as silence
      from relay_sessions s join presence a on a.role = 'api'
      left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
      where s.state = 'active' and a.seen_at >= now() - make_interval(secs => ${presenceSeconds('api', timeoutSeconds)})
    )
    select region, count(*)::int as active,
      (count(*) filter (where silence > make_interval(secs => ${timeoutSeconds / 2})))::int as quiet,
      coalesce(jsonb_agg(jsonb_build_object('id', id, 'instanceId', instance_id))
        filter (where silence > make_interval(secs => ${timeoutSeconds})), '[]') as silent
    from heard group by region`

/** Sessions that wait for a report which did come: what the api told their actors got lost on its way. */
export async function overlookedReports(sql: Sql, limit: number): Promise<{ ready: string[]; restored: string[] }> {
  const rows = await sql<{ id: string; state: RelayState }[]>`
    select s.id, s.state from relay_sessions s
    join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
    where s.state in ('provisioning', 'grace') and h.last_report_at < now() - interval '2 seconds'
      and (s.state = 'provisioning' or (s.reason = 'health_lost' and h.last_report_at > s.grace_started_at))
    limit ${limit}`
  const idsIn = (state: RelayState) => rows.filter((row) => row.state === state).map((row) => row.id)
  return { ready: idsIn('provisioning'), restored: idsIn('grace') }
}

/** Sessions that are provisioning on an instance that was bound `timeoutSeconds` ago and has not reported, though it could. */
export const unreportedInstances = async (
  sql: Sql,
  timeoutSeconds: number,
  limit: number,
): Promise<(BoundSession & { region: string })[]> =>
  sql<(BoundSession & { region: string })[]>`
    select s.id, s.instance_id, s.region from relay_sessions s join presence a on a.role = 'api'
    where s.state = 'provisioning' and s.instance_id is not null
      and greatest(s.instance_bound_at, a.since) < now() - make_interval(secs => ${timeoutSeconds})
      and a.seen_at >= now() - make_interval(secs => ${presenceSeconds('api', timeoutSeconds)})
      and not exists (select from relay_health h where h.session_id = s.id and h.instance_id = s.instance_id)
    limit ${limit}`

/** Active sessions older than `longestSeconds` through which nobody sends. */
export const idleSessions = async (sql: Sql, longestSeconds: number): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
    select s.id from relay_sessions s join relay_health h on h.session_id = s.id
    where s.state = 'active' and s.created_at < now() - make_interval(secs => ${longestSeconds}) and h.idle_since is not null`
  ).map((row) => row.id)

/** Live sessions older than `longestSeconds`. */
export const countOverlongSessions = async (sql: Sql, longestSeconds: number): Promise<number> =>
  first(
    await sql<{ sessions: number }[]>`
      select count(*)::int as sessions from relay_sessions
      where state <> 'stopped' and created_at < now() - make_interval(secs => ${longestSeconds})`,
  )?.sessions ?? 0
