/** What reconciliation asks of our own books, about subscriptions that a provider lists. */
import type { BillingEvent } from '../domain/billing-event.ts'
import { first, type Sql } from './connection.ts'

export interface SubscriptionQuery {
  readonly subscriptionId: string
  readonly kind: 'plan' | 'addon'
  /** The account, as a UUID that the provider said; null when it said none. */
  readonly userId: string | null
}

export interface StoredSubscription {
  /** The account that the provider names, or else the one that has it here; null when neither exists. */
  readonly userId: string | null
  /** The account that has it here; null when none has. */
  readonly holderId: string | null
  /** Null when we know nothing of it. */
  readonly status: 'active' | 'past_due' | 'cancelled' | 'ended' | null
  readonly quantity: number | null
  readonly periodEnd: Date | null
}

/** What we have for each of them, in their order. */
export const findSubscriptions = async (
  sql: Sql,
  provider: string,
  asked: readonly SubscriptionQuery[],
): Promise<StoredSubscription[]> =>
  sql<StoredSubscription[]>`
    select coalesce(u.id, s.user_id, other.user_id) as user_id, s.user_id as holder_id, s.status, s.quantity,
      s.period_end
    from unnest(
        ${asked.map((one) => one.subscriptionId)}::text[], ${asked.map((one) => one.kind)}::text[],
        ${asked.map((one) => one.userId)}::uuid[]
      ) with ordinality as l (subscription_id, kind, user_id, place)
      left join users u on u.id = l.user_id
      left join subscriptions s
        on s.provider = ${provider} and s.subscription_id = l.subscription_id and s.kind = l.kind
      -- The same subscription of the other kind: its owner is the same.
      left join subscriptions other
        on other.provider = ${provider} and other.subscription_id = l.subscription_id and other.kind <> l.kind
    order by l.place`

export interface RecordedState {
  readonly event: BillingEvent
  /** Whether the account's workflow has judged with it. */
  readonly isApplied: boolean
}

/** What was told last of an account's subscription, whether it was taken yet or not. */
export const findNewestEvent = async (
  sql: Sql,
  provider: string,
  subscriptionId: string,
  userId: string,
): Promise<RecordedState | undefined> =>
  first(
    await sql<RecordedState[]>`
      select event, status = 'applied' as is_applied from billing_events
      where user_id = ${userId} and provider = ${provider} and subscription_id = ${subscriptionId} and event is not null
      order by seq desc limit 1`,
  )

/** Whether the workflow of the event's account has judged with it; nothing for an unknown key. */
export const findRecordedEvent = async (
  sql: Sql,
  provider: string,
  key: string,
): Promise<Pick<RecordedState, 'isApplied'> | undefined> =>
  first(
    await sql<Pick<RecordedState, 'isApplied'>[]>`
      select status = 'applied' as is_applied from billing_events where provider = ${provider} and event_key = ${key}`,
  )
