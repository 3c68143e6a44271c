/** What the service has measured of its parts: the figures that incidents are computed from. */
import type { Failures } from '../../domain/operations/incident-measurements.ts'
import { absenceSeconds, probeTrustedHours } from '../../domain/relay/health.ts'
import { first, type Sql } from '../connection.ts'

/** Failures count for this long. */
const windowMinutes = 10

interface FailuresRow {
  readonly failed: number
  readonly tried: number
  readonly since: Date | null
}

const toFailures = ({ failed, tried, since }: FailuresRow): Failures => ({
  failed,
  tried,
  since: since?.getTime() ?? null,
})

const none: FailuresRow = { failed: 0, tried: 0, since: null }

interface ApiFigures {
  readonly apiBadSince: number | null
  readonly apiSince: number
}

/**
 * Whether api processes work, and whether the address that relays report to leads to them. A probe that fails counts
 * while no report arrives either: then not only the worker has no way to the API.
 */
export async function readApiFigures(sql: Sql, healthTimeoutSeconds: number): Promise<ApiFigures> {
  const absence = sql`make_interval(secs => ${absenceSeconds('api', healthTimeoutSeconds)})`
  const row = await first(sql<{ badSince: Date | null; since: Date }[]>`
    select api.since, case
      when api.seen_at < now() - ${absence} then api.seen_at
      when probe.reached_at > now() - make_interval(hours => ${probeTrustedHours})
        and not exists (select from report_paths where seen_at >= now() - ${absence}) then probe.failing_since
      end as bad_since
    from presence api, api_probe probe where api.role = 'api'`)
  if (!row) throw new Error('the presence of the api has no row')
  return { apiBadSince: row.badSince?.getTime() ?? null, apiSince: row.since.getTime() }
}

/** Mails that wait although they were tried. One that is delivered meanwhile shows that the others are to blame. */
export async function readMailFailures(sql: Sql): Promise<Failures> {
  const row = await first(sql<FailuresRow[]>`
    select failed, failed + (
      select count(distinct user_id) from outbox_messages
      where channel = 'email' and next_attempt_at is null and sent_at is not null
        and created_at > now() - make_interval(mins => ${2 * windowMinutes})
    )::int as tried, since
    from (
      select count(distinct user_id)::int as failed, min(created_at) as since from outbox_messages
      where channel = 'email' and next_attempt_at is not null and attempts > 0
        and created_at < now() - make_interval(mins => ${windowMinutes})
    ) waiting`)
  return toFailures(row ?? none)
}

/** Billing events that wait for the provider or for their workflow. Parked ones wait for their account. */
export async function readBillingFailures(sql: Sql): Promise<Failures> {
  const row = await first(sql<FailuresRow[]>`
    with waiting as (
      -- Each status has an index of its own.
      select user_id, provider, subscription_id, received_at from billing_events where status = 'pending'
      union all
      select user_id, provider, subscription_id, received_at from billing_events where status = 'unresolved'
    )
    select count(distinct coalesce(user_id::text, provider || subscription_id))::int as failed, 0 as tried,
      min(received_at) as since
    from waiting where received_at < now() - make_interval(mins => ${windowMinutes})`)
  return toFailures(row ?? none)
}

interface RegionRow extends FailuresRow {
  readonly region: string
}

/** The last start of each account in a region that became active or failed. */
export async function readStartFailures(sql: Sql): Promise<ReadonlyMap<string, Failures>> {
  const rows = await sql<RegionRow[]>`
    with outcome as (
      select region, user_id, active_at as at, false as has_failed from relay_sessions
      -- The index over the times of creation leads to those that became active: none is in provisioning for longer.
      where created_at > now() - interval '1 hour' and active_at > now() - make_interval(mins => ${windowMinutes})
      union all
      select region, user_id, stopped_at, true from relay_sessions
      where state = 'stopped' and stopped_at > now() - make_interval(mins => ${windowMinutes})
        and reason in ('provision_failed', 'provision_timeout')
    ), latest as (
      select distinct on (region, user_id) region, user_id, at, has_failed from outcome order by region, user_id, at desc
    )
    select region, (count(*) filter (where has_failed))::int as failed, count(*)::int as tried,
      min(at) filter (where has_failed) as since
    from latest group by region`
  return byRegion(rows)
}

/** The accounts whose relay was replaced because it failed, and those with a live relay. */
export async function readRelayLosses(sql: Sql): Promise<ReadonlyMap<string, Failures>> {
  const rows = await sql<RegionRow[]>`
    select region, count(distinct user_id)::int as failed, min(failed_at) as since, (
        select count(distinct user_id) from relay_sessions s
        where s.region = lost.region and s.state in ('active', 'grace')
      )::int as tried
    from (
      select s.region, s.user_id, r.failed_at from relay_replacements r join relay_sessions s on s.id = r.session_id
      where r.failed_at > now() - make_interval(mins => ${windowMinutes})
    ) lost group by region`
  return byRegion(rows)
}

const byRegion = (rows: readonly RegionRow[]): ReadonlyMap<string, Failures> =>
  new Map(rows.map((row) => [row.region, toFailures(row)]))

interface RegionState {
  readonly region: string
  readonly closedSince: number | null
  readonly cutSince: number | null
}

/**
 * Whether regions are drained or their provider refuses, and whether their relays reach the API. A provider that failed
 * once may have been asked at a bad moment.
 */
export async function readRegionStates(
  sql: Sql,
  regions: readonly string[],
  healthTimeoutSeconds: number,
): Promise<RegionState[]> {
  const absence = sql`make_interval(secs => ${absenceSeconds('api', healthTimeoutSeconds)})`
  const rows = await sql<{ region: string; closedSince: Date | null; cutSince: Date | null }[]>`
    select name as region,
      least(drained_at, case when failing_since < checked_at then failing_since end) as closed_since,
      case when seen_at < now() - ${absence} and (
        exists (select from relay_sessions s where s.region = name and s.state <> 'stopped')
        or exists (select from instances i where i.region = name and i.gone_at is null)
      ) then seen_at end as cut_since
    from unnest(${regions as string[]}::text[]) as named (name)
    left join regions r on r.region = name
    left join provider_checks c on c.region = name
    left join report_paths p on p.region = name`
  return rows.map(({ region, closedSince, cutSince }) => ({
    region,
    closedSince: closedSince?.getTime() ?? null,
    cutSince: cutSince?.getTime() ?? null,
  }))
}
