/** Trials: which accounts have begun one, how much of it they used, and what stays of those of erased accounts. */
import { erasedTrialDays, type TrialFacts, trialMillisLeft, trialsPerNetworkMax } from '../../domain/billing/trial.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { first, hasRow, type Sql } from '../connection.ts'

/** Addresses are compared without regard to case. */
const addressHashes = (sealing: Sealing, email: string): readonly Buffer[] =>
  sealing.hashes(email.toLowerCase(), 'trial address')

/** The hash of a network, which must be compared for a day only. */
export const hashTrialNetwork = (sealing: Sealing, network: string): Buffer => sealing.hash(network, 'trial network')

/**
 * Notes that a mail of our own has proved the account's address. Where an erased account with the address had its
 * trial, its hash is noted, which an earlier key may have made. The caller has locked the account's row.
 */
export async function proveTrialAddress(sql: Sql, sealing: Sealing, userId: string, email: string): Promise<void> {
  const hashes = addressHashes(sealing, email)
  // As hexadecimal text: the driver would send an array of buffers as a single value.
  const texts = hashes.map((hash) => hash.toString('hex'))
  await sql`
    update users set trial_address_hash = coalesce(
      (select address_hash from erased_trials
        where address_hash in (select decode(hash, 'hex') from unnest(${texts}::text[]) hash) limit 1),
      decode(${texts[0] ?? null}, 'hex'))
    where id = ${userId} and lower(email) = lower(${email})`
}

/** What was used since the trial began, in milliseconds. Relay time of deleted sessions is kept by day. */
const consumedMillis = (sql: Sql) => sql`
  (select coalesce(sum(extract(epoch from coalesce(u.ended_at, greatest(clock_timestamp(), u.started_at)) - u.started_at)), 0)
    from usage_intervals u where u.user_id = t.user_id and u.started_at >= t.started_at)
  + (select coalesce(sum(d.seconds), 0) from usage_days d
    where d.user_id = t.user_id and d.day >= (t.started_at at time zone 'UTC')::date)`

/** By the ids of the accounts, without unknown ones. */
export async function findTrialFacts(sql: Sql, userIds: readonly string[]): Promise<Map<string, TrialFacts>> {
  if (userIds.length === 0) return new Map()
  const rows = await sql<(TrialFacts & { userId: string })[]>`
    select a.id as user_id, a.trial_address_hash is not null as is_address_proved,
      exists (select from erased_trials e where e.address_hash = a.trial_address_hash
        and e.erased_at > now() - make_interval(days => ${erasedTrialDays})) as is_address_spent,
      case when t.user_id is not null then ((${consumedMillis(sql)}) * 1000)::float8 end as consumed_millis
    from users a left join trials t on t.user_id = a.id where a.id = any(${userIds}::uuid[])`
  return new Map(rows.map(({ userId, ...facts }) => [userId, facts]))
}

/**
 * How much is left of the begun trial of an account without a plan, in milliseconds; null for an account with a plan or
 * without a trial.
 */
export async function findTrialMillisLeft(sql: Sql, userId: string, totalSeconds: number): Promise<number | null> {
  const row = await first(sql<{ consumedMillis: number }[]>`
    select ((${consumedMillis(sql)}) * 1000)::float8 as consumed_millis
    from trials t join users a on a.id = t.user_id where t.user_id = ${userId} and a.plan_tier = 'free'`)
  return row ? trialMillisLeft(row.consumedMillis, totalSeconds) : null
}

export const hasBegunTrial = (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`select from trials where user_id = ${userId}`)

/**
 * Begins the trial of an account whose row the caller has locked, unless it has begun. The row of its network stays
 * locked until the transaction ends, so this is the last lock that the transaction waits for.
 * @returns false if as many trials as a network may have began there within a day. Then nothing is written.
 */
export async function beginTrial(sql: Sql, userId: string, networkHash: Buffer): Promise<boolean> {
  if (await hasBegunTrial(sql, userId)) return true
  const isCounted = await hasRow(sql`
    insert into trial_networks as n (network_hash, starts, last_at) values (${networkHash}, array[now()], now())
    on conflict (network_hash) do update set last_at = now(), starts = ${recentStarts(sql)} || now()
    where cardinality(${recentStarts(sql)}) < ${trialsPerNetworkMax}
    returning 1`)
  if (!isCounted) return false
  await sql`
    insert into trials (user_id, address_hash) select id, trial_address_hash from users where id = ${userId}`
  return true
}

const recentStarts = (sql: Sql) =>
  sql`array(select start from unnest(n.starts) start where start > now() - interval '1 day')`

/** Keeps the hashes of the addresses of an account that is erased, if it has begun its trial. */
export const keepTrialOfErased = async (sql: Sql, userId: string): Promise<void> => {
  await sql`
    insert into erased_trials (address_hash)
    select t.address_hash from trials t where t.user_id = ${userId}
    union select a.trial_address_hash from trials t join users a on a.id = t.user_id
      where t.user_id = ${userId} and a.trial_address_hash is not null
    on conflict (address_hash) do update set erased_at = excluded.erased_at`
}
