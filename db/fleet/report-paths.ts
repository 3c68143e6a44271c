/**
 * The worker's probe of the API through the address that relays report to, and the paths of their reports that it shows
 * open.
 */
import { absenceSeconds, probeTrustedHours } from '../../domain/relay/health.ts'
import type { Sql } from '../connection.ts'

interface Probe {
  readonly isReached: boolean
  /** The configured regions. Those that were configured before are looked at as well. */
  readonly regions: readonly string[]
  readonly healthTimeoutSeconds: number
}

interface ProbeRecord {
  /** Whether a probe ever reached the API. */
  readonly hasReached: boolean
  /** Regions with relays whose path has not been seen open for so long that their silence does not count. */
  readonly cut: readonly string[]
}

/**
 * Stores a probe, and confirms the paths that are open: those of all regions when it reached the API, or when none has
 * for a day. A region whose relays report since the probes fail has an open path as well: then only the worker cannot
 * reach it.
 */
export async function recordProbe(sql: Sql, { isReached, regions, healthTimeoutSeconds }: Probe): Promise<ProbeRecord> {
  const absence = sql`make_interval(secs => ${absenceSeconds('api', healthTimeoutSeconds)})`
  const rows = await sql<{ hasReached: boolean; cut: string[] }[]>`
    with probe as (
      update api_probe set
        reached_at = case when ${isReached} then now() else reached_at end,
        failing_since = case when ${isReached} then null else coalesce(failing_since, now()) end
      returning reached_at,
        ${isReached} or coalesce(reached_at < now() - make_interval(hours => ${probeTrustedHours}), true) as is_open,
        -- A report proves the path for as long as it takes until its relay is quiet.
        greatest(failing_since, now() - make_interval(secs => ${healthTimeoutSeconds / 2})) as heard_since
    ), path as (
      select region from report_paths union select unnest(${regions as string[]}::text[])
    ), confirmed as (
      insert into report_paths as p (region)
      select region from path, probe
      where is_open or exists (
        select from relay_sessions s join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
        where s.state <> 'stopped' and s.region = path.region and h.last_report_at > heard_since
      ) or exists (
        select from instances i where i.region = path.region and i.gone_at is null and i.last_report_at > heard_since
      )
      on conflict (region) do update set seen_at = now(),
        since = case when p.seen_at < now() - ${absence} then now() else p.since end
      returning region
    )
    select (select reached_at is not null from probe) as has_reached, array(
      select p.region from report_paths p
      where p.seen_at < now() - ${absence} and not exists (select from confirmed c where c.region = p.region)
        and (exists (select from relay_sessions s where s.region = p.region and s.state <> 'stopped')
          or exists (select from instances i where i.region = p.region and i.gone_at is null))
      order by p.region) as cut`
  return rows[0] ?? { hasReached: false, cut: [] }
}
