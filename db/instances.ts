/** Instances that exist at the providers, and those of them that no live session owns. */
import type { Sql } from './connection.ts'

/** Records that the provider lists no instance of the session. */
export const markInstancesGone = async (sql: Sql, sessionId: string): Promise<void> => {
  await sql`update instances set gone_at = now() where session_id = ${sessionId} and gone_at is null`
}

export interface ListedInstance {
  readonly instanceId: string
  readonly sessionId: string | null
}

/**
 * Compares a complete list of a region's instances with the live sessions.
 * @returns the instances that no live session owned, neither now nor in a comparison at least `apartSeconds` ago. One
 * comparison is not enough, because a session may be about to bind its instance.
 */
export async function findOrphans(
  sql: Sql,
  region: string,
  listed: readonly ListedInstance[],
  apartSeconds: number,
): Promise<string[]> {
  const rows = await sql<{ instanceId: string }[]>`
    with listed as (
      select * from unnest(${listed.map((one) => one.instanceId)}::text[], ${listed.map((one) => one.sessionId)}::uuid[]) as i (instance_id, session_id)
    ), checked as (
      select listed.*, exists (
        select from relay_sessions s where s.id = listed.session_id and s.state <> 'stopped'
          and (s.instance_id is null or s.instance_id = listed.instance_id)
      ) as owned from listed
    ), stored as (
      insert into instances as i (instance_id, session_id, region, unowned_since)
      select instance_id, session_id, ${region}, case when not owned then now() end from checked
      on conflict (instance_id) do update set
        gone_at = null,
        unowned_since = case when excluded.unowned_since is not null then coalesce(i.unowned_since, excluded.unowned_since) end
      returning instance_id, unowned_since
    ), vanished as (
      update instances set gone_at = now()
      where region = ${region} and gone_at is null and instance_id not in (select instance_id from listed)
        and created_at < now() - interval '1 minute'
    )
    select instance_id from stored where unowned_since <= now() - make_interval(secs => ${apartSeconds})`
  return rows.map((row) => row.instanceId)
}

export const markInstanceGone = async (sql: Sql, instanceId: string): Promise<void> => {
  await sql`update instances set gone_at = now() where instance_id = ${instanceId}`
}

export interface InstanceRow {
  instanceId: string
  sessionId: string | null
  region: string
  createdAt: Date
  goneAt: Date | null
  unownedSince: Date | null
  /** Whether a live session owns it, by the same rule as {@link findOrphans}. */
  owned: boolean
}

export interface InstanceFilter {
  readonly region?: string | undefined
  readonly isGone?: boolean | undefined
  /** The id of the last instance of the previous page. */
  readonly after?: string | undefined
}

/** One page of instances, newest first. */
export const listInstances = async (sql: Sql, filter: InstanceFilter, limit: number): Promise<InstanceRow[]> =>
  sql<InstanceRow[]>`
    select i.instance_id, i.session_id, i.region, i.created_at, i.gone_at, i.unowned_since,
      i.gone_at is null and exists (
        select from relay_sessions s where s.id = i.session_id and s.state <> 'stopped'
          and (s.instance_id is null or s.instance_id = i.instance_id)
      ) as owned
    from instances i
    where true
      ${filter.region ? sql`and region = ${filter.region}` : sql``}
      ${filter.isGone === undefined ? sql`` : filter.isGone ? sql`and gone_at is not null` : sql`and gone_at is null`}
      ${filter.after ? sql`and (created_at, instance_id) < (select created_at, instance_id from instances where instance_id = ${filter.after})` : sql``}
    order by created_at desc, instance_id desc limit ${limit}`

/** The number of existing instances by region. */
export const countInstances = async (sql: Sql): Promise<{ region: string; count: number }[]> =>
  sql<{ region: string; count: number }[]>`
    select region, count(*)::int as count from instances where gone_at is null group by region`

export interface BoundSession {
  readonly id: string
  readonly instanceId: string | null
}

/** A missing instance that was observed longer ago than this belongs to an earlier silence, in seconds. */
const missingSecondsMax = 600

/**
 * Compares silent sessions with a complete list of their provider's instances.
 * @returns the sessions whose instance is missing in this list and in one at least `apartSeconds` ago. One list alone may be
 * incomplete.
 */
export async function findMissingInstances(
  sql: Sql,
  sessions: readonly BoundSession[],
  listed: ReadonlySet<string>,
  apartSeconds: number,
): Promise<BoundSession[]> {
  const bound = sessions.filter(({ instanceId }) => instanceId !== null)
  const missing = bound.map(({ instanceId }) => !listed.has(instanceId ?? ''))
  return sql<BoundSession[]>`
    with suspect as (
      select s.id, s.instance_id, m.is_missing, s.instance_missing_since as since,
        s.instance_missing_since > now() - make_interval(secs => ${missingSecondsMax}) as is_recent
      from relay_sessions s
      join unnest(${bound.map(({ id }) => id)}::uuid[], ${bound.map(({ instanceId }) => instanceId)}::text[],
        ${missing.map(String)}::text[]::bool[]) as m (id, instance_id, is_missing)
        on m.id = s.id and m.instance_id = s.instance_id
      where s.state <> 'stopped' order by s.id for update of s
    ), checked as (
      select *, is_missing and coalesce(is_recent, false) and since <= now() - make_interval(secs => ${apartSeconds}) as is_gone
      from suspect
    ), stored as (
      -- A reported instance is observed from the start: when its signal is lost, the next two lists report it again.
      update relay_sessions s set instance_missing_since = case
        when not j.is_missing or j.is_gone then null when j.is_recent then j.since else now() end
      from checked j where s.id = j.id and (j.is_missing or j.since is not null)
    )
    select id, instance_id from checked where is_gone`
}

/** Marks the instance of a stopped session as an orphan, so that the next sweep destroys it if its provider lists it. */
export const markOrphan = async (sql: Sql, instanceId: string, sessionId: string): Promise<void> => {
  await sql`
    insert into instances (instance_id, session_id, region, unowned_since)
    select ${instanceId}, id, region, now() - interval '1 day' from relay_sessions
    where id = ${sessionId} and state = 'stopped'
    on conflict (instance_id) do update set unowned_since = excluded.unowned_since, gone_at = null
      where instances.session_id = excluded.session_id`
}
