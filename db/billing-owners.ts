/**
 * Which account a provider's subscription belongs to. It has one owner at a time: the account that its latest event names, by
 * the provider's time, and of events of the same moment the one that was accepted last. All events of a subscription are in
 * the inbox of its owner and in no other, so that the order of their arrival makes no difference.
 */
import type { Fragment } from 'postgres'
import { first, type Sql } from './connection.ts'

export interface SubscriptionRef {
  readonly provider: string
  readonly subscriptionId: string
}

/** The account's id that a provider's text is; nothing when it is none. Not compared as text: no index would find it. */
export const accountNamed = (sql: Sql, ref: Fragment): Fragment =>
  sql`case when ${ref} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (${ref})::uuid end`

const ofSubscription = (sql: Sql, { provider, subscriptionId }: SubscriptionRef): Fragment =>
  sql`e.provider = ${provider} and e.subscription_id = ${subscriptionId}`

/**
 * Locks the subscriptions until the end of the transaction, so that one at a time changes whose they are. Before any account
 * is locked: two transactions could wait for each other otherwise.
 */
export async function lockSubscriptions(tx: Sql, subscriptions: readonly SubscriptionRef[]): Promise<void> {
  const names = subscriptions.map(({ provider, subscriptionId }) => `billing ${provider} ${subscriptionId}`).sort()
  for (const name of names) await tx`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`
}

/**
 * Locks the accounts that locked subscriptions may concern: those that have events of them, and those that an event names.
 * @param userRefs further accounts, as a provider may name them.
 * @param exclusive whether inboxes will change even when there is a single account.
 */
export async function lockAccounts(
  tx: Sql,
  subscriptions: readonly SubscriptionRef[],
  userRefs: readonly (string | null)[],
  exclusive = false,
): Promise<void> {
  const ids = await concernedAccounts(tx, subscriptions, userRefs)
  // One account alone is only kept from being judged meanwhile: events of its other subscriptions need not wait.
  if (exclusive || ids.length > 1)
    await tx`select id from users where id = any(${ids}::uuid[]) order by id for no key update`
  else if (ids.length === 1) await tx`select id from users where id = any(${ids}::uuid[]) for share`
}

async function concernedAccounts(
  sql: Sql,
  subscriptions: readonly SubscriptionRef[],
  userRefs: readonly (string | null)[],
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select u.id from unnest(${userRefs.filter((one) => one !== null)}::text[]) as r (ref)
      join users u on u.id = ${accountNamed(sql, sql`r.ref`)}
    union
    select u.id
    from unnest(
        ${subscriptions.map((one) => one.provider)}::text[], ${subscriptions.map((one) => one.subscriptionId)}::text[]
      ) as s (provider, subscription_id)
      join billing_events e on e.provider = s.provider and e.subscription_id = s.subscription_id
      join users u on u.id in (e.user_id, ${accountNamed(sql, sql`e.user_ref`)})`
  return rows.map((row) => row.id)
}

/** The account with the id that a provider names; nothing when there is none. */
export const findNamedAccount = async (sql: Sql, userRef: string | null): Promise<string | null> =>
  userRef === null
    ? null
    : (first(await sql<{ id: string }[]>`select id from users where id = ${accountNamed(sql, sql`${userRef}::text`)}`)
        ?.id ?? null)

/**
 * Moves all events of the subscription into the inbox of its owner; without an owner they are parked. The caller has locked
 * the subscription. Answers the accounts whose inbox changed.
 */
export async function assignOwner(tx: Sql, subscription: SubscriptionRef): Promise<string[]> {
  const ownerId = await claimedOwner(tx, subscription)
  const moved = await tx<{ former: string | null }[]>`
    with misplaced as (
      select e.id, e.user_id as former from billing_events e
      where ${ofSubscription(tx, subscription)} and e.event is not null and e.status in ('pending', 'applied', 'parked')
        and (e.user_id is distinct from ${ownerId}::uuid or (e.status = 'parked' and ${ownerId}::uuid is not null))
        -- What names an account that does not exist waits for it, or for an operator.
        and (e.status <> 'parked' or e.user_ref is null
          or exists (select from users u where u.id = ${accountNamed(tx, tx`e.user_ref`)})))
    update billing_events e set user_id = ${ownerId},
      status = case when ${ownerId}::uuid is null then 'parked' else 'pending' end,
      error = case when ${ownerId}::uuid is null then 'nobody is known to have this subscription' end
    from misplaced m where e.id = m.id
    returning m.former`
  await assignUnresolved(tx, subscription, ownerId)
  const formerIds = [...new Set(moved.map(({ former }) => former))].filter((id) => id !== null && id !== ownerId)
  await markInboxChanged(tx, formerIds as string[])
  return moved.length === 0 ? [] : [...formerIds, ownerId].filter((id) => id !== null)
}

/** The account named by the subscription itself rather than by an invoice, and of these the latest. */
const claimedOwner = async (sql: Sql, subscription: SubscriptionRef): Promise<string | null> =>
  first(
    await sql<{ id: string }[]>`
      select u.id from billing_events e join users u on u.id = ${accountNamed(sql, sql`e.user_ref`)}
      where ${ofSubscription(sql, subscription)} and e.event is not null and e.status in ('pending', 'applied', 'parked')
      order by e.user_ref_source = 'subscription' desc, e.occurred_at desc, e.seq desc limit 1`,
  )?.id ?? null

/** What an unresolved event says is not known yet, so it decides nothing: it goes with the subscription. */
async function assignUnresolved(tx: Sql, subscription: SubscriptionRef, ownerId: string | null): Promise<void> {
  await tx`
    update billing_events e set user_id =
      coalesce(${ownerId}::uuid, (select u.id from users u where u.id = ${accountNamed(tx, tx`e.user_ref`)}))
    where ${ofSubscription(tx, subscription)} and e.status = 'unresolved'`
}

/**
 * Notes that events were taken out of these accounts' inboxes or replaced in them: what their workflows have read is out of
 * date, and they have to be signalled until they have read it again. The caller has locked the accounts.
 */
export async function markInboxChanged(tx: Sql, userIds: readonly string[]): Promise<void> {
  if (userIds.length === 0) return
  await tx`
    update users set entitlement_version = entitlement_version + 1,
      inbox_changed_at = coalesce(inbox_changed_at, clock_timestamp()), wake_attempts = 0, next_wake_at = null
    where id = any(${userIds}::uuid[])`
}

/** Subscriptions of which a parked event names an account that exists by now. */
export const findClaimedSubscriptions = async (sql: Sql, limit: number): Promise<SubscriptionRef[]> =>
  sql<SubscriptionRef[]>`
    select distinct e.provider, e.subscription_id
    from billing_events e join users u on u.id = ${accountNamed(sql, sql`e.user_ref`)}
    where e.status = 'parked' and e.event is not null and e.provider <> 'operator'
    limit ${limit}`
