/** The state of regions: how many places are taken, and whether they are drained. */
import type { RegionUse } from '../../domain/fleet/regions.ts'
import { hasRow, type Sql } from '../connection.ts'

export interface RegionRow {
  region: string
  /** Since when the region takes no new sessions; null when it takes them. */
  drainedAt: Date | null
  /** Live sessions. */
  sessions: number
  /** Existing instances of live sessions. */
  bound: number
  /** Warm instances without a session: those that have reported, and those that have not yet. */
  warmReady: number
  warmBooting: number
  /** Existing instances that neither a live session nor a start can use. */
  leftover: number
  /** Live sessions and leftover instances. Unbound warm instances are room for sessions. */
  placesTaken: number
  /**
   * Live sessions, and leftover instances that have been observed for a minute. Others are being destroyed, and a
   * session waits for their room.
   */
  placesBlocked: number
  isDrained: boolean
}

/** One row for each of these regions, in their order. */
export const listRegionRows = async (sql: Sql, regions: readonly string[]): Promise<RegionRow[]> =>
  sql<RegionRow[]>`
    select name as region, drained_at, sessions, bound, warm_ready, warm_booting, leftover,
      sessions + leftover as places_taken, sessions + stuck as places_blocked, drained_at is not null as is_drained
    from unnest(${regions}::text[]) with ordinality as named (name, position)
    left join regions on region = name
    cross join lateral (
      select count(*)::int as sessions from relay_sessions s where s.region = name and s.state <> 'stopped'
    ) live
    cross join lateral (
      select count(*) filter (where is_owned)::int as bound,
        count(*) filter (where is_unbound and has_reported)::int as warm_ready,
        count(*) filter (where is_unbound and not has_reported)::int as warm_booting,
        count(*) filter (where not is_owned and not is_unbound)::int as leftover,
        count(*) filter (where not is_owned and not is_unbound and is_stuck)::int as stuck
      from (
        -- An instance is owned by the same rule as in the comparison with the provider's list; see db/fleet/orphans.ts.
        select s.id is not null and i.retired_at is null as is_owned, 
          i.launched_at is not null and i.last_report_at is not null as has_reported,
          i.is_warm and i.session_id is null and i.retired_at is null as is_unbound,
          coalesce(i.unowned_since < now() - interval '1 minute', false) as is_stuck
        from instances i left join relay_sessions s
          -- With the region Postgres reads the sessions of this region only.
          on s.region = name and s.id = i.session_id and s.state <> 'stopped'
            and (s.instance_id is null or s.instance_id = i.instance_id)
        where i.region = name and i.gone_at is null
      ) existing
    ) counted
    order by position`

/**
 * Lets one start at a time reserve a place of the region, until its transaction ends or returns to a savepoint before
 * this. It is a statement of its own, since the next one sees the sessions that were committed while this one waited.
 */
export const lockRegion = async (tx: Sql, region: string): Promise<void> => {
  await tx`select pg_advisory_xact_lock(hashtextextended('region:' || ${region}, 0))`
}

/**
 * What a start finds in a region, without what only operators see of it. The places are
 * {@link RegionRow.placesBlocked}. The statement has no list of regions, since Postgres makes a plan for each list.
 */
export async function findRegionUse(sql: Sql, region: string): Promise<RegionUse> {
  const [use] = await sql<RegionUse[]>`
    select name as region, exists (select from regions r where r.region = name and drained_at is not null) as is_drained,
      (select count(*) from relay_sessions s where s.region = name and s.state <> 'stopped')::int
      + (
        select count(*) from instances i
        where i.region = name and i.gone_at is null and i.unowned_since < now() - interval '1 minute'
          and not (i.is_warm and i.session_id is null and i.retired_at is null)
          -- Few instances get here. Each has no owner by the same rule as in the statement above.
          and (i.retired_at is not null or not exists (
            select from relay_sessions s
            where s.id = i.session_id and s.region = name and s.state <> 'stopped'
              and (s.instance_id is null or s.instance_id = i.instance_id)))
      )::int as places_taken
    from (values (${region}::text)) as named (name)`
  if (!use) throw new Error('a select from one value returned no row')
  return use
}

export const listDrainedRegions = async (sql: Sql): Promise<string[]> =>
  (await sql<{ region: string }[]>`select region from regions where drained_at is not null`).map(({ region }) => region)

export const isRegionDrained = async (sql: Sql, region: string): Promise<boolean> =>
  hasRow(sql`select from regions where region = ${region} and drained_at is not null`)

/** A region that is drained already keeps its time. Live sessions run on, and may be resumed from a stop. */
export const drainRegion = async (sql: Sql, region: string): Promise<void> => {
  await sql`
    insert into regions as r (region, drained_at) values (${region}, now())
    on conflict (region) do update set drained_at = coalesce(r.drained_at, excluded.drained_at)`
}

export const resumeRegion = async (sql: Sql, region: string): Promise<void> => {
  await sql`update regions set drained_at = null where region = ${region}`
}
