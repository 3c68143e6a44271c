/**
 * Stable addresses of regions in a cloud: the row of each, what it leads to, and whether it is still used. A new
 * instance has its own; when the instance of a session is replaced, its session keeps the address.
 */
import { backoffSeconds } from '../backoff.ts'
import { first, type Sql } from '../connection.ts'
import { leadsTo } from './relay-names.ts'

/** The list of a provider may lack a new address for some time. */
const unlistedSecondsMin = 300
/** Between the two observations that find an address without a row unused. */
const observationSeconds = 60
/** A session shows the address of its instance while its own has not led there for this long. */
const failingSecondsMax = 10
/** A name may lead to an address that is given back for this long. The next tenant would get the stream. */
const namedSecondsMax = 300
const backoff = { firstSeconds: 1, secondsMax: 30 }

interface AddressKey {
  readonly region: string
  readonly addressId: string
}

export interface RelayAddress extends AddressKey {
  readonly host: string
  /** Whether it can lead to another running instance. */
  readonly canMove: boolean
  /** The instance that it led to when it was last seen. */
  readonly instanceId: string | null
}

/** Records what a provider answered about the address of a new instance. */
export const recordAddress = async (sql: Sql, { region, addressId, host, canMove, instanceId }: RelayAddress) => {
  await sql`
    insert into relay_addresses (region, address_id, host, can_move, instance_id)
    values (${region}, ${addressId}, ${host}, ${canMove}, ${instanceId})
    on conflict (region, address_id) do update set host = excluded.host, instance_id = excluded.instance_id,
      next_attempt_at = now(), attempts = 0, failing_since = null, error = null`
}

/**
 * The address that a session keeps over its instances. At the first replacement it is that of the lost instance.
 * Safe to repeat.
 */
export const keepAddress = async (sql: Sql, sessionId: string): Promise<RelayAddress | undefined> =>
  first(sql<RelayAddress[]>`
    with present as (
      select a.* from relay_addresses a join relay_sessions s on s.id = a.session_id and s.region = a.region
      where s.id = ${sessionId}
    ), kept as (
      update relay_addresses a set session_id = s.id from relay_sessions s
      where s.id = ${sessionId} and a.region = s.region and a.instance_id = s.instance_id and a.host = s.relay_host
        and a.session_id is null and not exists (select from present)
      returning a.*
    )
    select region, address_id, host, can_move, instance_id from present
    union all select region, address_id, host, can_move, instance_id from kept`)

/**
 * A session's own address is used while the session lives in its region: it moves to each of its instances, or waits in
 * a grace for the next one. That of an instance is used while the instance has it as its host and no session's address
 * in its place.
 */
const isUsed = (sql: Sql) => sql`
  ((s.id is not null and (a.can_move or s.instance_id = a.instance_id or s.state = 'grace'))
    or (i.instance_id is not null and (i.host is null or i.host = a.host) and (a.session_id is not null or not exists (
      select from relay_addresses kept
      where kept.region = a.region and kept.instance_id = a.instance_id and kept.session_id is not null))))`

const withOwners = (sql: Sql) => sql`
  relay_addresses a
  left join relay_sessions s on s.id = a.session_id and s.state <> 'stopped' and s.region = a.region
  left join instances i on i.instance_id = a.instance_id and i.gone_at is null
  left join instances target on target.instance_id = s.instance_id and a.can_move and target.gone_at is null
    and target.provider_id is not null and target.instance_id is distinct from a.instance_id`

export interface DueAddress extends AddressKey {
  readonly host: string
  /** Where it is to lead to; null for an address that is to be released. */
  readonly target: { readonly sessionId: string; readonly instanceId: string; readonly providerId: string } | null
  /** A name still leads to it, so it cannot be released yet. */
  readonly isNamed: boolean
}

/** Addresses of these regions that are to be moved or released, the longest due first. */
export const listDueAddresses = async (sql: Sql, regions: readonly string[], limit: number): Promise<DueAddress[]> =>
  sql<DueAddress[]>`
    select a.region, a.address_id, a.host,
      case when ${isUsed(sql)} then jsonb_build_object(
        'sessionId', s.id, 'instanceId', target.instance_id, 'providerId', target.provider_id) end as target,
      exists (select from relay_names n where ${leadsTo(sql, sql`a.host`)})
        and coalesce(a.failing_since, now()) > now() - make_interval(secs => ${namedSecondsMax}) as is_named
    from ${withOwners(sql)}
    where a.region = any(${regions}::text[]) and a.next_attempt_at <= now()
      and (not ${isUsed(sql)} or target.instance_id is not null)
    order by a.next_attempt_at limit ${limit}`

/** Forgets the failures of addresses that need no change any more, since a lost instance has come back for example. */
export const clearSettledFailures = async (sql: Sql): Promise<void> => {
  await sql`
    update relay_addresses failing set attempts = 0, failing_since = null, error = null from ${withOwners(sql)}
    where failing.failing_since is not null and a.region = failing.region and a.address_id = failing.address_id
      and ${isUsed(sql)} and target.instance_id is null`
}

/** Stores that the address leads to the present instance of its session, which shows it from now on. */
export const recordMovedAddress = async (sql: Sql, { region, addressId, host, target }: DueAddress): Promise<void> => {
  const { sessionId = null, instanceId = null } = target ?? {}
  await sql`
    update relay_addresses set instance_id = ${instanceId}, next_attempt_at = now(), attempts = 0, failing_since = null,
      error = null
    where region = ${region} and address_id = ${addressId}`
  await sql`update instances set host = ${host}, host_v6 = null where instance_id = ${instanceId}`
  await sql`
    update relay_sessions set relay_host = ${host}, relay_host_v6 = null
    where id = ${sessionId} and state <> 'stopped' and instance_id = ${instanceId} and relay_host is distinct from ${host}`
}

/** Stores a failure. After some seconds a session whose address does not move shows that of its instance. */
export const recordFailedAddress = async (sql: Sql, due: DueAddress, error: string): Promise<void> => {
  const { region, addressId, target } = due
  const attempts = sql`attempts + 1`
  await sql`
    update relay_addresses set attempts = ${attempts}, failing_since = coalesce(failing_since, now()), error = ${error},
      next_attempt_at = now() + make_interval(secs => ${backoffSeconds(sql, attempts, backoff)})
    where region = ${region} and address_id = ${addressId}`
  if (target === null) return
  await sql`
    update relay_sessions s set relay_host = i.host, relay_host_v6 = i.host_v6
    from instances i, relay_addresses a
    where s.id = ${target.sessionId} and s.instance_id = i.instance_id and i.instance_id = ${target.instanceId}
      and a.region = ${region} and a.address_id = ${addressId} and s.relay_host = a.host and i.host is not null
      and a.failing_since < now() - make_interval(secs => ${failingSecondsMax})`
}

export const deleteAddress = async (sql: Sql, { region, addressId }: AddressKey): Promise<void> => {
  await sql`delete from relay_addresses where region = ${region} and address_id = ${addressId}`
}

export const hasAddresses = async (sql: Sql, region: string): Promise<boolean> =>
  (await first(sql`select from relay_addresses where region = ${region} limit 1`)) !== undefined

/** An address as its provider shows it. */
interface ListedAddress {
  readonly addressId: string
  readonly host: string
  /** The instance in its tag. */
  readonly instanceId: string
  /** The provider's id of the instance that it leads to; null where that is not known. */
  readonly providerId: string | null
  readonly isAttached: boolean
}

interface CompleteAddressList {
  readonly region: string
  readonly canMove: boolean
  readonly listed: readonly ListedAddress[]
}

const listedRows = (sql: Sql, listed: readonly ListedAddress[]) => sql`
  select * from unnest(${listed.map(({ addressId }) => addressId)}::text[], ${listed.map(({ host }) => host)}::text[],
    ${listed.map(({ instanceId }) => instanceId)}::text[], ${listed.map(({ providerId }) => providerId)}::text[])
    as l (address_id, host, tagged_instance_id, provider_id)`

/**
 * Compares a complete list with the rows. An unknown address gets a row, and is released when it is unused a minute
 * later as well. One that leads nowhere is moved again. One that the provider does not have any more loses its row.
 */
export const recordListedAddresses = async (sql: Sql, { region, canMove, listed }: CompleteAddressList) => {
  const detached = listed.filter(({ isAttached }) => !isAttached).map(({ addressId }) => addressId)
  await sql`
    with listed as (${listedRows(sql, listed)}), vanished as (
      delete from relay_addresses where region = ${region} and address_id not in (select address_id from listed)
        and created_at < now() - make_interval(secs => ${unlistedSecondsMin})
    )
    insert into relay_addresses as a (region, address_id, host, can_move, instance_id, next_attempt_at)
    select ${region}, l.address_id, l.host, ${canMove}, coalesce(i.instance_id, l.tagged_instance_id),
      now() + make_interval(secs => ${observationSeconds})
    from listed l left join instances i on i.provider_id = l.provider_id and i.region = ${region}
    on conflict (region, address_id) do update set instance_id = null
      where a.session_id is not null and a.address_id = any(${detached}::text[])`
}

export interface AddressDifference extends AddressKey {
  /** `unused_address`: no session and no instance has it. `missing_address`: it has a row, and is not listed. */
  readonly kind: 'unused_address' | 'missing_address'
  readonly host: string
  readonly instanceId: string | null
  readonly sessionId: string | null
  /** When its row was made; null for an address without one. */
  readonly since: Date | null
  /** Of a missing address: it counts as gone. Otherwise its provider may not list it yet. */
  readonly isGone: boolean
}

/** The differences between a provider's list and the rows. Reads only. */
export const compareAddresses = async (
  sql: Sql,
  { region, listed }: Omit<CompleteAddressList, 'canMove'>,
): Promise<AddressDifference[]> =>
  sql<AddressDifference[]>`
    with listed as (${listedRows(sql, listed)})
    select 'unused_address' as kind, ${region} as region, l.address_id, l.host,
      coalesce(a.instance_id, l.tagged_instance_id) as instance_id, a.session_id, a.created_at as since,
      false as is_gone
    from listed l left join (${withOwners(sql)}) on a.region = ${region} and a.address_id = l.address_id
      left join instances tagged on tagged.instance_id = l.tagged_instance_id and tagged.gone_at is null
    where case when a.address_id is null then tagged.instance_id is null else not ${isUsed(sql)} end
    union all
    select 'missing_address', region, address_id, host, instance_id, session_id, created_at,
      created_at < now() - make_interval(secs => ${unlistedSecondsMin})
    from relay_addresses where region = ${region} and address_id not in (select address_id from listed)
    order by kind, address_id`

/** Since the oldest failure of an address, in seconds; 0 without one. */
export const failingAddressSeconds = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ seconds: number }[]>`
    select coalesce(extract(epoch from now() - min(failing_since)), 0)::float8 as seconds from relay_addresses`
  return row?.seconds ?? 0
}
