/**
 * Instances: one row for each, stored before its provider is called. The row is the record of the intention, so a
 * repeated call creates the same instance, and none is unknown when a reply gets lost.
 */
import { first, firstValue, type Sql } from '../connection.ts'
import { canTakePorts, selectKeptPorts } from './kept-ports.ts'

/** What a new instance of a region is. */
export interface Placement {
  readonly region: string
  readonly provider: string
  /** What it runs; see `imageKey`. */
  readonly image: string
  /** The maximum number of instances in the region. */
  readonly capacity: number
  /** A warm instance gets a session only when it has reported within this time; see `warmReportSecondsMax`. */
  readonly reportSecondsMax: number
}

export interface ReservedInstance {
  readonly instanceId: string
  readonly zone: number
  /** When the present attempt to create it began, as Postgres writes it. */
  readonly attemptedAt: string
}

const attemptedAt = (sql: Sql) => sql`create_attempted_at::text as attempted_at`

/** The instance that an earlier attempt reserved. Its creation may have succeeded although its reply was lost. */
export const findReservation = async (tx: Sql, sessionId: string): Promise<ReservedInstance | undefined> =>
  first(tx<ReservedInstance[]>`
    update instances set create_attempted_at = now() where instance_id = (
      select instance_id from instances
      where session_id = ${sessionId} and gone_at is null and retired_at is null order by created_at desc limit 1
    ) returning instance_id, zone, ${attemptedAt(tx)}`)

/**
 * Gives a session a warm instance that reported lately, and binds it. One that runs an old image serves while none runs
 * the region's image. Waits for one whose row is locked, by its report for example, since that takes milliseconds and a
 * new instance far longer. The lock is the last of its transaction.
 * @returns the statement, whose row is the instance. It has none when there is no such instance.
 */
export const claimWarmInstance = (tx: Sql, sessionId: string, placement: WarmPlacement) => tx<{ instanceId: string }[]>`
  with claimed as (
    update instances set session_id = ${sessionId}, assigned_at = now()
    where instance_id = (${selectWarmInstance(tx, placement)}) returning *
  )
  update relay_sessions s set instance_id = c.instance_id, relay_host = c.host, relay_host_v6 = c.host_v6,
    srtla_port = coalesce(kept.srtla_port, c.srtla_port), publish_port = coalesce(kept.publish_port, c.publish_port),
    play_port = coalesce(kept.play_port, c.play_port), stats_port = coalesce(kept.stats_port, c.stats_port),
    instance_bound_at = now(), instance_missing_since = null
  from claimed c left join (${selectKeptPorts(tx, sessionId)}) kept on ${canTakePorts(tx, tx`c`)}
  where s.id = ${sessionId}
  returning s.instance_id`

/**
 * Gives a session a warm instance, as {@link claimWarmInstance} does, and leaves the lost one bound until the new one
 * reports.
 */
export const claimWarmReplacement = (
  tx: Sql,
  { sessionId, binding }: { readonly sessionId: string; readonly binding: number },
  placement: WarmPlacement,
) => tx<{ instanceId: string }[]>`
  update instances set session_id = ${sessionId}, binding = ${binding}, assigned_at = now()
  where instance_id = (${selectWarmInstance(tx, placement)})
  returning instance_id`

type WarmPlacement = Pick<Placement, 'region' | 'image' | 'reportSecondsMax'>

const selectWarmInstance = (tx: Sql, { region, image, reportSecondsMax }: WarmPlacement) => tx`
  select instance_id from instances
  where region = ${region} and is_warm and session_id is null and retired_at is null and gone_at is null
    and launched_at is not null and last_report_at > now() - make_interval(secs => ${reportSecondsMax})
  order by image is not distinct from ${image} desc, last_report_at desc limit 1 for update`

interface Replacement extends ReservedInstance {
  readonly region: string
  readonly isLaunched: boolean
}

/** The instance that is to take over as the session's instance of this number. */
export const findReplacement = async (tx: Sql, sessionId: string, binding: number): Promise<Replacement | undefined> =>
  first(tx<Replacement[]>`
    update instances set create_attempted_at = case when launched_at is null then now() else create_attempted_at end
    where instance_id = (
      select instance_id from instances
      where session_id = ${sessionId} and binding = ${binding} and gone_at is null and retired_at is null
      order by created_at desc limit 1
    ) returning instance_id, zone, ${attemptedAt(tx)}, region, launched_at is not null as is_launched`)

/** An assumed upper bound of concurrent reservations in one region. */
const concurrentReservationsMax = 100

/** While a region has more room than concurrent reservations could take, they do not wait for each other. */
export async function hasRoom(tx: Sql, { region, capacity }: Pick<Placement, 'region' | 'capacity'>): Promise<boolean> {
  if ((await countExisting(tx, region)) + concurrentReservationsMax < capacity) return true
  await lockPlaces(tx, region)
  return (await countExisting(tx, region)) < capacity
}

/** Serialises reservations of a region until the end of the transaction. */
export const lockPlaces = async (tx: Sql, region: string): Promise<void> => {
  await tx`select pg_advisory_xact_lock(hashtextextended('instances:' || ${region}, 0))`
}

const countExisting = async (sql: Sql, region: string): Promise<number> =>
  (await firstValue(sql<{ count: number }[]>`
    select count(*)::int as count from instances where region = ${region} and gone_at is null`)) ?? 0

interface NewInstance extends Omit<ReservedInstance, 'attemptedAt'> {
  readonly sessionId: string | null
  /** That of a replacement; 1 by default. */
  readonly binding?: number
}

/** @param instance a warm one when its session is null. */
export const insertInstance = async (
  tx: Sql,
  { instanceId, sessionId, zone, binding = 1 }: NewInstance,
  { region, provider, image }: Placement,
): Promise<ReservedInstance> => {
  const [inserted] = await tx<[ReservedInstance]>`
    insert into instances (instance_id, session_id, region, provider, image, zone, is_warm, binding, create_attempted_at)
    values (${instanceId}, ${sessionId}, ${region}, ${provider}, ${image}, ${zone}, ${sessionId === null}, ${binding}, now())
    returning instance_id, zone, ${attemptedAt(tx)}`
  return inserted
}

interface LaunchedInstance {
  readonly instanceId: string
  readonly providerId: string | null
  readonly host: string
  readonly hostV6?: string | undefined
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  readonly statsPort: number
}

/** Records what the provider answered about an instance. */
export const recordLaunch = async (sql: Sql, reservedId: string, launched: LaunchedInstance): Promise<void> => {
  await sql`
    insert into instances as i (instance_id, session_id, region, provider, image, zone, is_warm, binding, provider_id,
      launched_at, host, host_v6, srtla_port, publish_port, play_port, stats_port)
    select ${launched.instanceId}, session_id, region, provider, image, zone, is_warm, binding, ${launched.providerId},
      now(), ${launched.host}, ${launched.hostV6 ?? null}, ${launched.srtlaPort}, ${launched.publishPort}, ${launched.playPort},
      ${launched.statsPort}
    from instances where instance_id = ${reservedId}
    on conflict (instance_id) do update set gone_at = null, provider_id = excluded.provider_id,
      -- The report of an instance whose session has stopped can be answered before its launch is recorded.
      unowned_since = case when exists (
        select from relay_sessions s where s.id = i.session_id and s.state = 'stopped') then i.unowned_since end,
      launched_at = coalesce(i.launched_at, excluded.launched_at), host = excluded.host, host_v6 = excluded.host_v6,
      srtla_port = excluded.srtla_port, publish_port = excluded.publish_port, play_port = excluded.play_port, stats_port = excluded.stats_port`
  // The provider had an instance of this session already.
  if (launched.instanceId !== reservedId)
    await sql`update instances set gone_at = now() where instance_id = ${reservedId}`
}

/** Binds a launched instance to its session. @returns whether the instance has sent a health report already. */
export async function bindInstance(sql: Sql, sessionId: string, instanceId: string): Promise<boolean> {
  const row = await first(sql<{ hasReported: boolean }[]>`
    with bound as (
      update relay_sessions s set instance_id = i.instance_id, relay_host = i.host, relay_host_v6 = i.host_v6,
        srtla_port = i.srtla_port, publish_port = i.publish_port, play_port = i.play_port, stats_port = i.stats_port,
        instance_bound_at = now(), instance_missing_since = null
      from instances i
      where s.id = ${sessionId} and s.state <> 'stopped' and i.instance_id = ${instanceId} and i.retired_at is null
      returning s.id
    )
    select exists (
      select from relay_health where session_id = ${sessionId} and instance_id = ${instanceId}
    ) as has_reported from bound`)
  return row?.hasReported ?? false
}

/**
 * Instances that are to be destroyed and get no session any more. Those that got one meanwhile are left out by their
 * callers.
 */
export const retireInstances = async (sql: Sql, instanceIds: readonly string[]): Promise<void> => {
  await sql`
    update instances set retired_at = coalesce(retired_at, now()), unowned_since = coalesce(unowned_since, now())
    where instance_id = any(${instanceIds}::text[])`
}

/** Retires the instances that were to take over in a session and have not. */
export const retireReplacements = async (tx: Sql, sessionId: string): Promise<void> => {
  await tx`
    update instances i set retired_at = now(), unowned_since = coalesce(unowned_since, now())
    from relay_sessions s
    where s.id = ${sessionId} and i.session_id = s.id and i.binding > s.binding and i.retired_at is null and i.gone_at is null`
}

export interface StoredInstance {
  readonly instanceId: string
  readonly sessionId: string | null
  readonly region: string
  readonly providerId: string | null
  readonly zone: number
  readonly isRetired: boolean
  readonly isGone: boolean
  /** Whether its provider answered that it exists. */
  readonly isLaunched: boolean
  /** Since the last attempt to create it. */
  readonly attemptedSeconds: number
}

const storedColumns = (sql: Sql) => sql`
  instance_id, session_id, region, provider_id, zone, retired_at is not null as is_retired, gone_at is not null as is_gone,
  launched_at is not null as is_launched,
  extract(epoch from now() - coalesce(create_attempted_at, created_at))::float8 as attempted_seconds`

/**
 * Records an attempt to create an instance. For some time after it, its provider's list does not prove that it failed.
 */
export const recordAttempt = async (sql: Sql, instanceId: string): Promise<ReservedInstance | undefined> =>
  first(sql<ReservedInstance[]>`
    update instances set create_attempted_at = now() where instance_id = ${instanceId}
    returning instance_id, zone, ${attemptedAt(sql)}`)

export const findInstance = async (sql: Sql, instanceId: string): Promise<StoredInstance | undefined> =>
  first(sql<StoredInstance[]>`select ${storedColumns(sql)} from instances where instance_id = ${instanceId}`)

/** The instances of a session that may exist. */
export const listInstancesOfSession = async (sql: Sql, sessionId: string): Promise<StoredInstance[]> =>
  sql<StoredInstance[]>`
    select ${storedColumns(sql)} from instances where session_id = ${sessionId} and gone_at is null`

/** Records that the provider shows none of the instances. */
export const markInstancesGone = async (sql: Sql, instanceIds: readonly string[]): Promise<void> => {
  await sql`update instances set gone_at = now() where instance_id = any(${instanceIds}::text[]) and gone_at is null`
}

export const markInstanceGone = async (sql: Sql, instanceId: string): Promise<void> => {
  await sql`update instances set gone_at = now() where instance_id = ${instanceId}`
}
