/** What reconciliation compares with a provider's list: our subscriptions, and the latest events of them. */
import type { BillingEvent } from '../../domain/billing/event.ts'
import type { SubscriptionKind, SubscriptionStatus } from '../../domain/billing/plans.ts'
import { first, type Sql } from '../connection.ts'

interface SubscriptionQuery {
  readonly subscriptionId: string
  readonly kind: SubscriptionKind
  /** The account that the provider names, a UUID; null if it names none. */
  readonly userId: string | null
}

export interface StoredSubscription {
  /** The account that the provider names if it exists, or else the subscription's owner; null if neither exists. */
  readonly userId: string | null
  /** The subscription's owner; null if the subscription is not stored. */
  readonly ownerId: string | null
  /** Null if the subscription is not stored. */
  readonly status: SubscriptionStatus | null
  readonly quantity: number | null
  /** Add-ons that the subscription contains beside the plan. */
  readonly addons: number | null
  readonly periodEnd: Date | null
}

/** One result for each query, in the order of the queries. */
export const findSubscriptions = async (
  sql: Sql,
  provider: string,
  queries: readonly SubscriptionQuery[],
): Promise<StoredSubscription[]> =>
  sql<StoredSubscription[]>`
    select coalesce(u.id, s.user_id, other.user_id) as user_id, s.user_id as owner_id, s.status, s.quantity, s.addons,
      s.period_end
    from unnest(
        ${queries.map(({ subscriptionId }) => subscriptionId)}::text[], ${queries.map(({ kind }) => kind)}::text[],
        ${queries.map(({ userId }) => userId)}::uuid[]
      ) with ordinality as l (subscription_id, kind, user_id, place)
      left join users u on u.id = l.user_id
      left join subscriptions s
        on s.provider = ${provider} and s.subscription_id = l.subscription_id and s.kind = l.kind
      -- A subscription that changed its kind has the same owner.
      left join subscriptions other
        on other.provider = ${provider} and other.subscription_id = l.subscription_id and other.kind <> l.kind
    order by l.place`

interface RecordedState {
  readonly event: BillingEvent
  /** Whether the account's workflow has applied the event. */
  readonly isApplied: boolean
}

/** The event of an account's subscription that was accepted last. */
export const findNewestEvent = async (
  sql: Sql,
  provider: string,
  subscriptionId: string,
  userId: string,
): Promise<RecordedState | undefined> =>
  first(sql<RecordedState[]>`
    select event, status = 'applied' as is_applied from billing_events
    where user_id = ${userId} and provider = ${provider} and subscription_id = ${subscriptionId} and event is not null
    order by seq desc limit 1`)

/** Returns undefined for an unknown key. */
export const findRecordedEvent = async (
  sql: Sql,
  provider: string,
  key: string,
): Promise<Pick<RecordedState, 'isApplied'> | undefined> =>
  first(sql<Pick<RecordedState, 'isApplied'>[]>`
    select status = 'applied' as is_applied from billing_events where provider = ${provider} and event_key = ${key}`)
