/**
 * The owner of a provider's subscription: the account that its latest event names, by the provider's time and then by
 * acceptance. All events of a subscription are in the inbox of its owner and in no other, so that their order of
 * arrival has no effect.
 */
import type { Fragment } from 'postgres'
import { firstValue, type Sql } from '../connection.ts'

export interface SubscriptionRef {
  readonly provider: string
  readonly subscriptionId: string
}

/** The account id in a provider's text; null for other text. Compared as uuid, which uses the index. */
export const accountIdIn = (sql: Sql, ref: Fragment): Fragment =>
  sql`case when ${ref} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (${ref})::uuid end`

const isOfSubscription = (sql: Sql, { provider, subscriptionId }: SubscriptionRef): Fragment =>
  sql`e.provider = ${provider} and e.subscription_id = ${subscriptionId}`

/**
 * Serialises changes of the subscriptions' owners until the end of the transaction. Must precede any lock of an
 * account, which rules out deadlocks.
 */
export async function lockSubscriptions(tx: Sql, subscriptions: readonly SubscriptionRef[]): Promise<void> {
  const names = subscriptions.map(({ provider, subscriptionId }) => `billing ${provider} ${subscriptionId}`).sort()
  for (const name of names) await tx`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`
}

/**
 * Locks the accounts that have events of the locked subscriptions or that such events name.
 * @param userRefs further accounts, as named by a provider.
 * @param exclusive whether inboxes change even if there is a single account.
 */
export async function lockAccounts(
  tx: Sql,
  subscriptions: readonly SubscriptionRef[],
  userRefs: readonly (string | null)[],
  exclusive = false,
): Promise<void> {
  const ids = await findConcernedAccounts(tx, subscriptions, userRefs)
  // For a single account a shared lock is enough: it delays the write of an entitlement, but not other events.
  if (exclusive || ids.length > 1)
    await tx`select id from users where id = any(${ids}::uuid[]) order by id for no key update`
  else if (ids.length === 1) await tx`select id from users where id = any(${ids}::uuid[]) for share`
}

async function findConcernedAccounts(
  sql: Sql,
  subscriptions: readonly SubscriptionRef[],
  userRefs: readonly (string | null)[],
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select u.id from unnest(${userRefs.filter((userRef) => userRef !== null)}::text[]) as r (ref)
      join users u on u.id = ${accountIdIn(sql, sql`r.ref`)}
    union
    select u.id
    from unnest(
        ${subscriptions.map(({ provider }) => provider)}::text[], ${subscriptions.map(({ subscriptionId }) => subscriptionId)}::text[]
      ) as s (provider, subscription_id)
      join billing_events e on e.provider = s.provider and e.subscription_id = s.subscription_id
      join users u on u.id in (e.user_id, ${accountIdIn(sql, sql`e.user_ref`)})`
  return rows.map((row) => row.id)
}

/** Returns null if the named account does not exist. */
export const findNamedAccount = async (sql: Sql, userRef: string | null): Promise<string | null> =>
  userRef === null
    ? null
    : ((await firstValue(
        sql<{ id: string }[]>`select id from users where id = ${accountIdIn(sql, sql`${userRef}::text`)}`,
      )) ?? null)

/**
 * Moves all events of the subscription to the inbox of its owner; without an owner they are parked. The caller has
 * locked the subscription. Returns the accounts whose inbox changed.
 */
export async function assignOwner(tx: Sql, subscription: SubscriptionRef): Promise<string[]> {
  const ownerId = await findOwner(tx, subscription)
  const moved = await tx<{ previous: string | null }[]>`
    with misplaced as (
      select e.id, e.user_id as previous from billing_events e
      where ${isOfSubscription(tx, subscription)} and e.event is not null and e.status in ('pending', 'applied', 'parked')
        and (e.user_id is distinct from ${ownerId}::uuid or (e.status = 'parked' and ${ownerId}::uuid is not null))
        -- A parked event that names an unknown account stays parked until that account exists.
        and (e.status <> 'parked' or e.user_ref is null
          or exists (select from users u where u.id = ${accountIdIn(tx, tx`e.user_ref`)})))
    update billing_events e set user_id = ${ownerId},
      status = case when ${ownerId}::uuid is null then 'parked' else 'pending' end,
      error = case when ${ownerId}::uuid is null then 'no account is known for this subscription' end
    from misplaced m where e.id = m.id
    returning m.previous`
  await assignUnresolved(tx, subscription, ownerId)
  const previousIds = [...new Set(moved.map(({ previous }) => previous))].filter((id) => id !== null && id !== ownerId)
  await markInboxChanged(tx, previousIds as string[])
  return moved.length === 0 ? [] : [...previousIds, ownerId].filter((id) => id !== null)
}

/**
 * Events that name the subscription's account precede those that name the account of an invoice; of these the latest
 * applies.
 */
const findOwner = async (sql: Sql, subscription: SubscriptionRef): Promise<string | null> =>
  (await firstValue(sql<{ id: string }[]>`
    select u.id from billing_events e join users u on u.id = ${accountIdIn(sql, sql`e.user_ref`)}
    where ${isOfSubscription(sql, subscription)} and e.event is not null and e.status in ('pending', 'applied', 'parked')
    order by e.user_ref_source = 'subscription' desc, e.occurred_at desc, e.seq desc limit 1`)) ?? null

/** An unresolved event does not affect the owner: it moves with the subscription. */
async function assignUnresolved(tx: Sql, subscription: SubscriptionRef, ownerId: string | null): Promise<void> {
  await tx`
    update billing_events e set user_id =
      coalesce(${ownerId}::uuid, (select u.id from users u where u.id = ${accountIdIn(tx, tx`e.user_ref`)}))
    where ${isOfSubscription(tx, subscription)} and e.status = 'unresolved'`
}

/**
 * Records that events were removed from the accounts' inboxes or replaced in them: the jobs wake their workflows until
 * these have read the inboxes again. The caller has locked the accounts.
 */
export async function markInboxChanged(tx: Sql, userIds: readonly string[]): Promise<void> {
  if (userIds.length === 0) return
  await tx`
    update users set entitlement_version = entitlement_version + 1,
      inbox_changed_at = coalesce(inbox_changed_at, clock_timestamp()), wake_attempts = 0, next_wake_at = null
    where id = any(${userIds}::uuid[])`
}

/** Subscriptions with a parked event that names an existing account. */
export const findClaimedSubscriptions = async (sql: Sql, limit: number): Promise<SubscriptionRef[]> =>
  sql<SubscriptionRef[]>`
    select distinct e.provider, e.subscription_id
    from billing_events e join users u on u.id = ${accountIdIn(sql, sql`e.user_ref`)}
    where e.status = 'parked' and e.event is not null and e.provider <> 'operator'
    limit ${limit}`
