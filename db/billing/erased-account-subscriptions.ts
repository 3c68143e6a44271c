/**
 * Subscriptions that their provider bills although their account was erased: bought at a payment page that was still
 * open, or resumed at the provider. They are queued when an event or the provider's list shows them, and a job cancels
 * them. All times are those of the database.
 */
import type { Fragment } from 'postgres'
import type { BillingSource } from '../../domain/billing/event.ts'
import { backoffSeconds } from '../backoff.ts'
import { firstValue, hasRow, type Sql } from '../connection.ts'
import { accountIdIn } from './owners.ts'

const backoff = { firstSeconds: 5, secondsMax: 3600 }

/**
 * The erased account that any event of the subscription names; null if there is none, or if the subscription belongs to
 * another account by now.
 */
const erasedOwnerOf = (sql: Sql, provider: Fragment, subscriptionId: Fragment): Fragment => sql`(
  select x.user_id from billing_events o join erased_accounts x on x.user_id = ${accountIdIn(sql, sql`o.user_ref`)}
  where o.provider = ${provider} and o.subscription_id = ${subscriptionId} and not exists (
    select from billing_events b
    where b.provider = ${provider} and b.subscription_id = ${subscriptionId} and b.user_id is not null)
  limit 1)`

/** A subscription that is found again after its cancellation was resumed since. */
const onConflict = (sql: Sql): Fragment => sql`
  on conflict (provider, subscription_id) do update set requests = erased_account_subscriptions.requests + 1,
    found_at = case when erased_account_subscriptions.next_attempt_at is null then now()
      else erased_account_subscriptions.found_at end,
    attempts = case when erased_account_subscriptions.next_attempt_at is null then 0
      else erased_account_subscriptions.attempts end,
    next_attempt_at = coalesce(erased_account_subscriptions.next_attempt_at, now())`

/**
 * Ignores parked events of subscriptions that belonged to an erased account, and deletes their bodies. Those that state
 * that the subscription is billed queue its cancellation in the same statement. Returns the number of events.
 */
export const ignoreEventsOfErasedAccounts = async (sql: Sql): Promise<number> =>
  (await firstValue(sql<{ ignored: number }[]>`
    with ignored as (
      update billing_events e set status = 'ignored', error = null, body = null, settled_at = clock_timestamp()
      where e.status = 'parked' and exists (
        select from billing_events o join erased_accounts x on x.user_id = ${accountIdIn(sql, sql`o.user_ref`)}
        where o.provider = e.provider and o.subscription_id = e.subscription_id)
      returning e.provider, e.subscription_id, e.event is not null
        and e.action in ('activate', 'update_addon', 'payment_recovery', 'payment_failed') as is_billed),
    billed as (
      select distinct provider, subscription_id, ${erasedOwnerOf(sql, sql`i.provider`, sql`i.subscription_id`)} as account_id
      from ignored i where is_billed),
    queued as (
      insert into erased_account_subscriptions (provider, subscription_id, account_id)
      select provider, subscription_id, account_id from billed where account_id is not null ${onConflict(sql)})
    select count(*)::int as ignored from ignored`)) ?? 0

export interface ListedOfNobody {
  readonly subscriptionId: string
  /** The account that the provider names, a UUID; null if it names none. */
  readonly userId: string | null
  /** Whether the provider charges for it, or tries to. */
  readonly isBilled: boolean
}

/**
 * Queues those subscriptions of the provider's list that are billed and belong to an erased account.
 * @returns the ids of all that belong to one.
 */
export const queueListedOfErasedAccounts = async (
  sql: Sql,
  provider: string,
  listed: readonly ListedOfNobody[],
): Promise<string[]> => {
  const billedIds = listed.filter(({ isBilled }) => isBilled).map(({ subscriptionId }) => subscriptionId)
  const rows = await sql<{ subscriptionId: string }[]>`
    with listed as (
      select l.subscription_id, l.subscription_id = any(${billedIds}::text[]) as is_billed, coalesce(
          (select x.user_id from erased_accounts x where x.user_id = l.user_id),
          ${erasedOwnerOf(sql, sql`${provider}`, sql`l.subscription_id`)}) as account_id
      from unnest(
        ${listed.map(({ subscriptionId }) => subscriptionId)}::text[], ${listed.map(({ userId }) => userId)}::uuid[]) as l (subscription_id, user_id)),
    queued as (
      insert into erased_account_subscriptions (provider, subscription_id, account_id)
      select distinct on (subscription_id) ${provider}, subscription_id, account_id from listed
      where account_id is not null and is_billed ${onConflict(sql)})
    select subscription_id from listed where account_id is not null`
  return rows.map(({ subscriptionId }) => subscriptionId)
}

export interface BilledSubscription {
  readonly provider: BillingSource
  readonly subscriptionId: string
  readonly accountId: string
  readonly requests: number
}

/** Subscriptions whose next attempt is due, the most overdue first. */
export const listDueCancellations = async (sql: Sql, rowsMax: number): Promise<BilledSubscription[]> =>
  sql<BilledSubscription[]>`
    select provider, subscription_id, account_id, requests from erased_account_subscriptions
    where next_attempt_at <= now() order by next_attempt_at limit ${rowsMax}`

/** @returns false if it was found to be billed again since it was read: then it is cancelled once more. */
export const markCancelled = async (
  sql: Sql,
  { provider, subscriptionId, requests }: BilledSubscription,
): Promise<boolean> =>
  hasRow(sql`
    update erased_account_subscriptions set next_attempt_at = null, last_error = null
    where provider = ${provider} and subscription_id = ${subscriptionId} and requests = ${requests}`)

export const postponeCancellation = async (
  sql: Sql,
  { provider, subscriptionId }: BilledSubscription,
  error: string,
): Promise<void> => {
  await sql`
    update erased_account_subscriptions set attempts = attempts + 1, last_error = ${error},
      next_attempt_at = now() + make_interval(secs => ${backoffSeconds(sql, sql`attempts`, backoff)})
    where provider = ${provider} and subscription_id = ${subscriptionId}`
}

/** The subscriptions of erased accounts that are not cancelled yet. */
export const countBilledOfErasedAccounts = async (sql: Sql): Promise<number> =>
  (await firstValue(sql<{ billed: number }[]>`
    select count(*)::int as billed from erased_account_subscriptions where next_attempt_at is not null`)) ?? 0
