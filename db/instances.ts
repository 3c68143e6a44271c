/** What exists at the providers, as far as we know, and what of it belongs to nobody. */
import type { Sql } from './connection.ts'

/** The session's instances are confirmed gone. */
export const forgetInstances = async (sql: Sql, sessionId: string): Promise<void> => {
  await sql`update instances set gone_at = now() where session_id = ${sessionId} and gone_at is null`
}

export interface SeenInstance {
  readonly instanceId: string
  readonly sessionId: string | null
}

/**
 * Takes one complete listing of a region and answers the instances that no live session owned in this round and in one at
 * least `apartSeconds` ago. A single round never condemns anything, since a session may just be about to bind its instance.
 */
export async function orphansAmong(
  sql: Sql,
  region: string,
  seen: readonly SeenInstance[],
  apartSeconds: number,
): Promise<string[]> {
  const rows = await sql<{ instanceId: string }[]>`
    with seen as (
      select * from unnest(${seen.map((one) => one.instanceId)}::text[], ${seen.map((one) => one.sessionId)}::uuid[]) as i (instance_id, session_id)
    ), judged as (
      select seen.*, exists (
        select from relay_sessions s where s.id = seen.session_id and s.state <> 'stopped'
          and (s.instance_id is null or s.instance_id = seen.instance_id)
      ) as owned from seen
    ), kept as (
      insert into instances as i (instance_id, session_id, region, unowned_since)
      select instance_id, session_id, ${region}, case when not owned then now() end from judged
      on conflict (instance_id) do update set
        gone_at = null,
        unowned_since = case when excluded.unowned_since is not null then coalesce(i.unowned_since, excluded.unowned_since) end
      returning instance_id, unowned_since
    ), vanished as (
      update instances set gone_at = now()
      where region = ${region} and gone_at is null and instance_id not in (select instance_id from seen)
        and created_at < now() - interval '1 minute'
    )
    select instance_id from kept where unowned_since <= now() - make_interval(secs => ${apartSeconds})`
  return rows.map((row) => row.instanceId)
}

export const noteInstanceGone = async (sql: Sql, instanceId: string): Promise<void> => {
  await sql`update instances set gone_at = now() where instance_id = ${instanceId}`
}

export interface InstanceRow {
  instanceId: string
  sessionId: string | null
  region: string
  createdAt: Date
  goneAt: Date | null
  unownedSince: Date | null
  /** Whether a live session owns it, by the same rule as {@link orphansAmong}. */
  owned: boolean
}

export interface InstanceFilter {
  readonly region?: string | undefined
  readonly isGone?: boolean | undefined
  /** The last instance of the page before, by its id. */
  readonly after?: string | undefined
}

/** Instances, newest first, one page. */
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

/** Instances known to exist, by region. */
export const existingInstances = async (sql: Sql): Promise<{ region: string; count: number }[]> =>
  sql<{ region: string; count: number }[]>`
    select region, count(*)::int as count from instances where gone_at is null group by region`

export interface BoundSession {
  readonly id: string
  readonly instanceId: string | null
}

/** An observation older than this belongs to an earlier silence, in seconds. */
const missingSecondsMax = 600

/**
 * Compares silent sessions with a complete listing of their provider, and answers those whose instance was missing in this
 * listing and in one at least `apartSeconds` ago: one listing alone proves nothing.
 */
export async function missingInstances(
  sql: Sql,
  sessions: readonly BoundSession[],
  listed: ReadonlySet<string>,
  apartSeconds: number,
): Promise<BoundSession[]> {
  const bound = sessions.filter(({ instanceId }) => instanceId !== null)
  const missing = bound.map(({ instanceId }) => !listed.has(instanceId ?? ''))
  return sql<BoundSession[]>`
    with asked as (
      select s.id, s.instance_id, m.is_missing, s.instance_missing_since as since,
        s.instance_missing_since > now() - make_interval(secs => ${missingSecondsMax}) as is_recent
      from relay_sessions s
      join unnest(${bound.map(({ id }) => id)}::uuid[], ${bound.map(({ instanceId }) => instanceId)}::text[],
        ${missing.map(String)}::text[]::bool[]) as m (id, instance_id, is_missing)
        on m.id = s.id and m.instance_id = s.instance_id
      where s.state <> 'stopped' order by s.id for update of s
    ), judged as (
      select *, is_missing and coalesce(is_recent, false) and since <= now() - make_interval(secs => ${apartSeconds}) as is_gone
      from asked
    ), kept as (
      -- One that is answered as gone begins again: should the signal get lost, the next two listings repeat it.
      update relay_sessions s set instance_missing_since = case
        when not j.is_missing or j.is_gone then null when j.is_recent then j.since else now() end
      from judged j where s.id = j.id and (j.is_missing or j.since is not null)
    )
    select id, instance_id from judged where is_gone`
}

/** Has the reporting instance of a stopped session destroyed in the next round of the sweep, if its provider lists it. */
export const condemnInstance = async (sql: Sql, instanceId: string, sessionId: string): Promise<void> => {
  await sql`
    insert into instances (instance_id, session_id, region, unowned_since)
    select ${instanceId}, id, region, now() - interval '1 day' from relay_sessions
    where id = ${sessionId} and state = 'stopped'
    on conflict (instance_id) do update set unowned_since = excluded.unowned_since, gone_at = null
      where instances.session_id = excluded.session_id`
}
