/** Warm instances: unbound ones that wait for a session, and the ones that are to be created or destroyed. */

import {
  planWarmInstances,
  type WarmInstance,
  type WarmPlan,
  type WarmTarget,
} from '../../domain/fleet/warm-instances.ts'
import { unboundSilentSeconds } from '../../domain/relay/health.ts'
import { first, type Sql } from '../connection.ts'
import { joinPath, type ReceptionRow, receptionColumns, toReception } from '../presence.ts'
import type { Placement } from './instances.ts'
import { keptUntil } from './kept-instances.ts'

export interface WarmRegion {
  readonly placement: Placement
  /** The configured number; the plan is 0 while the region is drained. */
  readonly warm: number
  readonly bootSecondsMax: number
  readonly healthTimeoutSeconds: number
}

export interface WarmWork {
  /** Reserved instances that their provider has not answered for. */
  readonly create: readonly string[]
  /** Retired warm instances that may exist. */
  readonly destroy: readonly string[]
  /** Instances without a session that are reserved or exist. */
  readonly unbound: number
}

/**
 * Whether `planWarm` (db/transactions/plan-warm-instances.ts) would change anything or return provider calls. Locks
 * nothing.
 */
export async function isWarmWorkDue(sql: Sql, region: WarmRegion): Promise<boolean> {
  const { retire, create } = await readWarmPlan(sql, region, true)
  const work = await readWork(sql, region.placement.region)
  return retire.length + create + work.create.length + work.destroy.length > 0
}

/**
 * The instances that the region is to retire, and the number that it is to create.
 * @param mayCreate false during the pause after a failed creation.
 */
export async function readWarmPlan(sql: Sql, region: WarmRegion, mayCreate: boolean): Promise<WarmPlan> {
  const unbound = await selectUnbound(sql, region)
  return planWarmInstances(unbound, await readTarget(sql, region, mayCreate))
}

/**
 * Locks those of the instances that have no session. One that a session claims, or that reports, at this moment is left
 * out. The instances that are kept are not locked, since a start would find none that is free.
 */
export const lockUnbound = async (tx: Sql, instanceIds: readonly string[]): Promise<string[]> =>
  instanceIds.length === 0
    ? []
    : (
        await tx<{ instanceId: string }[]>`
          select i.instance_id from instances i
          where i.instance_id = any(${instanceIds}::text[]) and ${isUnbound(tx)} for update skip locked`
      ).map(({ instanceId }) => instanceId)

async function selectUnbound(
  sql: Sql,
  { placement: { region, image }, healthTimeoutSeconds }: WarmRegion,
): Promise<WarmInstance[]> {
  const rows = await sql<(Omit<WarmInstance, 'silentSeconds'> & { quietSeconds: number } & ReceptionRow)[]>`
    select i.instance_id, i.image is not distinct from ${image} as is_current,
      i.last_report_at is not null as has_reported, ${keptUntil(sql, sql`i`)} is not null as may_have_stream,
      extract(epoch from clock_timestamp() - coalesce(i.last_report_at, i.launched_at, i.create_attempted_at))::float8 as quiet_seconds,
      ${receptionColumns(sql)}
    from instances i ${joinPath(sql, sql`i.region`)}, presence api
    where api.role = 'api' and i.region = ${region} and ${isUnbound(sql)}
    order by i.created_at, i.instance_id`
  return rows.map((row) => ({
    instanceId: row.instanceId,
    isCurrent: row.isCurrent,
    hasReported: row.hasReported,
    mayHaveStream: row.mayHaveStream,
    silentSeconds: unboundSilentSeconds(row.quietSeconds, toReception(row), healthTimeoutSeconds),
  }))
}

const isUnbound = (sql: Sql) => sql`i.is_warm and i.session_id is null and i.retired_at is null and i.gone_at is null`

async function readTarget(sql: Sql, region: WarmRegion, mayCreate: boolean): Promise<WarmTarget> {
  const { placement, warm, bootSecondsMax, healthTimeoutSeconds } = region
  const row = await first(sql<{ isDrained: boolean; existing: number; retired: number; waiting: number }[]>`
    select exists (select from regions r where r.region = ${placement.region} and r.drained_at is not null) as is_drained,
      counted.*,
      (select count(*)::int from relay_sessions s where s.region = ${placement.region} and s.state = 'provisioning'
        and s.instance_id is null and not exists (
          select from instances i where i.session_id = s.id and i.gone_at is null)) as waiting
    from (
      select count(*)::int as existing, (count(*) filter (where retired_at is not null))::int as retired
      from instances where region = ${placement.region} and gone_at is null
    ) counted`)
  return {
    warm: row?.isDrained ? 0 : warm,
    capacity: placement.capacity,
    placesTaken: (row?.existing ?? 0) + (row?.waiting ?? 0),
    retired: row?.retired ?? 0,
    bootSecondsMax,
    healthTimeoutSeconds,
    mayCreate,
  }
}

/** The provider calls that are due. */
export async function readWork(sql: Sql, region: string): Promise<WarmWork> {
  const rows = await sql<{ instanceId: string; isRetired: boolean; isLaunched: boolean }[]>`
    select i.instance_id, i.retired_at is not null as is_retired, i.launched_at is not null as is_launched
    from instances i
    where i.region = ${region} and i.is_warm and i.session_id is null and i.gone_at is null
    order by i.created_at, i.instance_id`
  const unbound = rows.filter(({ isRetired }) => !isRetired)
  return {
    create: unbound.filter(({ isLaunched }) => !isLaunched).map(({ instanceId }) => instanceId),
    destroy: rows.filter(({ isRetired }) => isRetired).map(({ instanceId }) => instanceId),
    unbound: unbound.length,
  }
}

interface UnboundFigures {
  readonly region: string
  /** Those that have reported, and those that have not yet. */
  readonly ready: number
  readonly booting: number
}

/** Counts warm instances without a session, for the regions that have any. Reads no instance of a session. */
export const countUnbound = async (sql: Sql): Promise<UnboundFigures[]> =>
  sql<UnboundFigures[]>`
    select i.region, (count(*) filter (where i.launched_at is not null and i.last_report_at is not null))::int as ready,
      (count(*) filter (where i.launched_at is null or i.last_report_at is null))::int as booting
    from instances i where ${isUnbound(sql)} group by i.region`

/** Regions that have a warm instance without a session. */
export const listRegionsWithUnbound = async (sql: Sql): Promise<string[]> =>
  (
    await sql<{ region: string }[]>`
      select distinct region from instances where is_warm and session_id is null and gone_at is null`
  ).map(({ region }) => region)

/** Retires an instance unless a session has claimed it. */
export const retireUnboundInstance = async (sql: Sql, instanceId: string): Promise<void> => {
  await sql`
    update instances set retired_at = coalesce(retired_at, now()), unowned_since = coalesce(unowned_since, now())
    where instance_id = ${instanceId} and session_id is null`
}

/** Records that the provider shows no such instance. */
export const markWarmInstanceGone = async (sql: Sql, instanceId: string): Promise<void> => {
  await sql`update instances set gone_at = now() where instance_id = ${instanceId} and retired_at is not null`
}
