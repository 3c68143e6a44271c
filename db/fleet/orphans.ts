/** Compares the providers' lists with the rows: instances without an owner. */

import type { UnownedInstance } from '../../domain/fleet/orphan-sweep.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Fragment, Sql } from '../connection.ts'
import { keptUntil } from './kept-instances.ts'

export interface ListedInstance {
  readonly instanceId: string
  /** The session in its tag, which may be another text than a UUID, since tags can be edited at the provider. */
  readonly sessionId: string | null
}

/** All instances of a region that its provider shows. */
export interface CompleteList {
  readonly region: string
  readonly listed: readonly ListedInstance[]
  /** How long the list may lack an instance that was created. */
  readonly listLagSeconds: number
}

/** The session that a tag names; null for any other text. */
export const sessionIdOfTag = (text: string | null): string | null => (text !== null && isUuid(text) ? text : null)

/**
 * Whether an instance has an owner: it is a warm one without a session, or the instance of a live session, or is to
 * take over in one.
 * @param sessionIds those of its row and of its tag, which differ when a report named another session.
 */
export const isOwned = (sql: Sql, sessionIds: Fragment) => sql`
  i.retired_at is null and ((i.is_warm and i.session_id is null) or exists (
    select from relay_sessions s where s.id in (${sessionIds}) and s.state <> 'stopped'
      and (s.instance_id is null or s.instance_id = i.instance_id
        or (s.state = 'grace' and s.reason = 'health_lost' and i.binding > s.binding))
  ))`

/** The named queries `listed` and `checked`: the instances of a provider's list with their rows and owners. */
export const checkedInstances = (sql: Sql, listed: readonly ListedInstance[]) => {
  const sessionIds = listed.map(({ sessionId }) => sessionIdOfTag(sessionId))
  return sql`
    listed as (
      select * from unnest(${listed.map(({ instanceId }) => instanceId)}::text[], ${sessionIds}::uuid[]) as l (instance_id, tagged_session_id)
    ), checked as (
      select l.*, case when i.instance_id is null then exists (
          select from relay_sessions s where s.id = l.tagged_session_id and s.state <> 'stopped'
            and (s.instance_id is null or s.instance_id = l.instance_id)
        ) else ${isOwned(sql, sql`i.session_id, l.tagged_session_id`)} end as owned
      from listed l left join instances i on i.instance_id = l.instance_id
    )`
}

/** Longer than the time from the beginning of a list until it is compared. */
const listAgeSecondsMax = 60

/** A list may have been read before an instance was launched, so its absence counts only after this time. */
const unlistedSecondsMin = 60

/**
 * An instance whose creation is attempted is not listed yet. Its attempts follow each other faster than this, in
 * seconds.
 */
const attemptSecondsMax = 900

/**
 * Whether an instance is gone that its provider does not list. No attempt follows once it is retired or its session is
 * stopped, even if no workflow is left to destroy it: then the lag of the list alone counts since the last attempt.
 * @param listLagSeconds how long the list may lack an instance that was created.
 */
export const isGoneUnlisted = (sql: Sql, listLagSeconds: number) => sql`(
  coalesce(launched_at, created_at) < now() - make_interval(
    secs => case when retired_at is null then ${unlistedSecondsMin}::float8 else ${listLagSeconds}::float8 end)
  and (launched_at is not null or provider is null or create_attempted_at < now() - make_interval(
    secs => case when retired_at is not null or exists (
      select from relay_sessions s where s.id = session_id and s.state = 'stopped'
    ) then ${listLagSeconds}::float8 else ${attemptSecondsMax}::float8 end)))`

/**
 * Compares a complete list of a region's instances with the rows, and stores the observations: since when an instance
 * has no owner, and which are gone.
 * @returns the listed instances that have no owner. One observation is not enough to destroy them, because a session
 * may be about to bind its instance.
 */
export const recordObservations = async (
  sql: Sql,
  { region, listed, listLagSeconds }: CompleteList,
): Promise<UnownedInstance[]> =>
  sql<UnownedInstance[]>`
    with ${checkedInstances(sql, listed)}, stored as (
      insert into instances as i (instance_id, session_id, region, unowned_since)
      select instance_id, tagged_session_id, ${region}, case when not owned then now() end from checked
      on conflict (instance_id) do update set
        -- A list that was read before an instance was destroyed still contains it.
        gone_at = case when i.gone_at > now() - make_interval(secs => ${listAgeSecondsMax}) then i.gone_at end,
        unowned_since = case when excluded.unowned_since is not null then coalesce(i.unowned_since, excluded.unowned_since) end
      returning i.*
    ), vanished as (
      update instances set gone_at = now()
      where region = ${region} and gone_at is null and instance_id not in (select instance_id from listed)
        and ${isGoneUnlisted(sql, listLagSeconds)}
    )
    select instance_id, retired_at is not null as is_retired, ${keptUntil(sql, sql`stored`)} as kept_until,
      coalesce(extract(epoch from now() - unowned_since), 0)::float8 as unowned_seconds
    from stored where retired_at is not null or unowned_since is not null order by instance_id`

/**
 * Marks the instance of a stopped session as an orphan. Its report counts as the first observation of a minute ago, so
 * the next sweep destroys it if its provider lists it.
 */
export const markOrphan = async (sql: Sql, instanceId: string, sessionId: string): Promise<void> => {
  await sql`
    insert into instances (instance_id, session_id, region, unowned_since)
    select ${instanceId}, id, region, now() - interval '1 minute' from relay_sessions
    where id = ${sessionId} and state = 'stopped'
    on conflict (instance_id) do update set
      -- A report that was sent before the instance was destroyed is answered after it.
      gone_at = case when instances.gone_at > now() - make_interval(secs => ${listAgeSecondsMax}) then instances.gone_at end,
      unowned_since = least(instances.unowned_since, excluded.unowned_since)
      where instances.session_id = excluded.session_id`
}

interface OrphanFigures {
  region: string
  orphans: number
  /** Since the oldest of them was first observed without an owner. */
  oldestSeconds: number
}

/** Existing instances without an owner, retired ones included, by region. */
export const countOrphans = async (sql: Sql): Promise<OrphanFigures[]> =>
  sql<OrphanFigures[]>`
    select region, count(*)::int as orphans, extract(epoch from now() - min(unowned_since))::float8 as oldest_seconds
    from instances where gone_at is null and unowned_since is not null group by region`
