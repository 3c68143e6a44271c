/**
 * The names of relays: what they should lead to, which is the present instance of each connection, and what the name
 * server was last seen to have. The server itself is written by `providers/dns`.
 */
import { backoffSeconds } from '../backoff.ts'
import { type Fragment, hasRow, type Sql } from '../connection.ts'

/** The server is compared again after this time, since others may write to it. */
const comparedSeconds = 300
/** A session shows the address while its name has not led to it for this long. */
const failingSecondsMax = 10
/** A name without a connection is removed when two observations this far apart found it so. */
const unownedSeconds = 60
const backoff = { firstSeconds: 1, secondsMax: 30 }

export interface DueName {
  readonly label: string
  /** The live session whose instance the name leads to; null for none. */
  readonly sessionId: string | null
  readonly v4: string | null
  readonly v6: string | null
  /** No connection has the label, so the name is to be removed. */
  readonly isUnowned: boolean
}

/** A host may also be a name, which needs no other one. */
const v4Of = (sql: Sql) => sql`case when s.relay_host ~ '^\\d+(\\.\\d+){3}$' then s.relay_host end`
const v6Of = (sql: Sql) => sql`case when s.relay_host ~ ':' then s.relay_host else s.relay_host_v6 end`

/** What each label should lead to: the instance of the newest live session of its connection. */
const wantedNames = (sql: Sql) => sql`
  select distinct on (k.label) k.label, s.id as session_id, ${v4Of(sql)} as v4, ${v6Of(sql)} as v6
  from relay_sessions s join connections k on k.user_id = s.user_id and k.name = s.connection_id
  where s.state <> 'stopped' and s.relay_host ~ '^[0-9.]+$|:'
  order by k.label, s.command = 'disconnect', s.created_at desc`

/** Names that the server does not have as they should be, or that are to be compared again. */
export const listDueNames = async (sql: Sql, limit: number): Promise<DueName[]> =>
  sql<DueName[]>`
    with wanted as (${wantedNames(sql)})
    select coalesce(w.label, n.label) as label, w.session_id, w.v4, w.v6,
      not exists (select from connections k where k.label = n.label) and w.label is null as is_unowned
    from wanted w full join relay_names n on n.label = w.label
    where n.label is null or (n.next_attempt_at <= now() and (
      n.shown_v4 is distinct from w.v4 or n.shown_v6 is distinct from w.v6 or n.failing_since is not null
      or n.writing_v4 is not null
      or (n.shown_v4 is not null and n.compared_at < now() - make_interval(secs => ${comparedSeconds}))
      or not exists (select from connections k where k.label = n.label)))
    order by n.next_attempt_at nulls first limit ${limit}`

/**
 * Stores that a name is about to lead to an address, which is not given back from then on. @returns false when its
 * session has another address meanwhile, or has stopped.
 */
export const beginWriting = async (sql: Sql, { label, sessionId, v4, v6 }: DueName): Promise<boolean> => {
  if (sessionId === null) return true
  return hasRow(sql`
    insert into relay_names as n (label, writing_v4)
    select ${label}, ${v4}::text from relay_sessions s
    where s.id = ${sessionId} and s.state <> 'stopped' and s.relay_host in (${v4}, ${v6}) for share
    on conflict (label) do update set writing_v4 = coalesce(excluded.writing_v4, n.writing_v4)
    returning label`)
}

/** Stores that the server has the name as wanted, which the session shows from now on. */
export const recordShownName = async (sql: Sql, { label, sessionId, v4, v6 }: DueName, domain: string) => {
  await sql`
    insert into relay_names (label, shown_v4, shown_v6, compared_at) values (${label}, ${v4}, ${v6}, now())
    on conflict (label) do update set shown_v4 = excluded.shown_v4, shown_v6 = excluded.shown_v6, compared_at = now(),
      next_attempt_at = now(), attempts = 0, failing_since = null, error = null, unowned_since = null, writing_v4 = null`
  await sql`
    update relay_sessions s set relay_name = ${`${label}.${domain}`}
    where s.id = ${sessionId} and s.state <> 'stopped' and s.relay_host in (${v4}, ${v6})
      and relay_name is distinct from ${`${label}.${domain}`}`
}

/** Stores that the name could not be written. After some seconds its session shows the address in its place. */
export const recordFailedName = async (sql: Sql, { label, sessionId }: DueName, error: string): Promise<void> => {
  const attempts = sql`relay_names.attempts + 1`
  await sql`
    insert into relay_names (label, attempts, failing_since, error, next_attempt_at)
    values (${label}, 1, now(), ${error}, now() + interval '1 second')
    on conflict (label) do update set attempts = ${attempts}, failing_since = coalesce(relay_names.failing_since, now()),
      error = excluded.error, next_attempt_at = now() + make_interval(secs => ${backoffSeconds(sql, attempts, backoff)})`
  await sql`
    update relay_sessions s set relay_name = null from relay_names n
    where s.id = ${sessionId} and n.label = ${label} and relay_name is not null
      and n.failing_since < now() - make_interval(secs => ${failingSecondsMax})
      and n.shown_v4 is distinct from s.relay_host and n.shown_v6 is distinct from s.relay_host`
}

/** Whether a name without a connection was found so before. Otherwise the first observation is stored. */
export const isUnownedForLong = async (sql: Sql, label: string): Promise<boolean> =>
  hasRow(sql`
    with marked as (
      update relay_names n set unowned_since = coalesce(n.unowned_since, now()),
        next_attempt_at = now() + make_interval(secs => ${unownedSeconds}::float8)
      where label = ${label}
    )
    select from relay_names
    where label = ${label} and unowned_since <= now() - make_interval(secs => ${unownedSeconds}::float8)`)

export const deleteName = async (sql: Sql, label: string): Promise<void> => {
  await sql`delete from relay_names where label = ${label}`
}

/** Whether a name leads to an address, or may do so after an attempt to write it. */
export const leadsTo = (sql: Sql, host: Fragment) => sql`${host} in (n.shown_v4, n.writing_v4)`

/**
 * Those of the instances of ended sessions, and of the replaced ones, whose address a name still leads to, for five
 * minutes at most. The next tenant of the address would get the stream. Instances that share a host keep its address.
 */
export const listNamedInstances = async (sql: Sql, instanceIds: readonly string[]): Promise<ReadonlySet<string>> =>
  new Set(
    (
      await sql<{ instanceId: string }[]>`
        select i.instance_id from instances i
          join relay_names n on ${leadsTo(sql, sql`i.host`)}
          left join relay_sessions s on s.id = i.session_id
        where i.instance_id = any(${instanceIds as string[]}::text[]) and i.provider <> 'local'
          and greatest(i.retired_at, s.stopped_at) > now() - interval '5 minutes'`
    ).map(({ instanceId }) => instanceId),
  )

/** Whether an instance that was replaced in a session exists. */
export const hasRetiredInstance = async (sql: Sql, sessionId: string): Promise<boolean> =>
  hasRow(sql`select from instances where session_id = ${sessionId} and retired_at is not null and gone_at is null`)

/** Since the oldest failure of a name, in seconds; 0 without one. */
export const failingNameSeconds = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ seconds: number }[]>`
    select coalesce(extract(epoch from now() - min(failing_since)), 0)::float8 as seconds from relay_names`
  return row?.seconds ?? 0
}
