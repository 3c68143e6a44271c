/** What reconciliation asks of our own books, about subscriptions that a provider lists. */
import type { BillingFact } from '../platform/billing-fact.ts'
import { first, type Sql } from './connection.ts'

export interface Asked {
  readonly subscriptionId: string
  readonly kind: 'plan' | 'addon'
  /** The account, as a UUID that the provider said; null when it said none. */
  readonly userId: string | null
}

export interface OwnSubscription {
  /** Null when nobody is known to have it. */
  readonly userId: string | null
  /** Null when we know nothing of it. */
  readonly status: 'active' | 'past_due' | 'cancelled' | 'ended' | null
  readonly quantity: number | null
  readonly periodEnd: Date | null
}

/** What we have for each of them, in their order. */
export const ownSubscriptions = async (
  sql: Sql,
  provider: string,
  asked: readonly Asked[],
): Promise<OwnSubscription[]> =>
  sql<OwnSubscription[]>`
    select u.id as "userId", s.status, s.quantity, s.period_end as "periodEnd"
    from unnest(
        ${asked.map((one) => one.subscriptionId)}::text[], ${asked.map((one) => one.kind)}::text[],
        ${asked.map((one) => one.userId)}::uuid[]
      ) with ordinality as l (subscription_id, kind, user_id, place)
      left join users u on u.id = coalesce(l.user_id, (
        select user_id from subscriptions where provider = ${provider} and subscription_id = l.subscription_id limit 1))
      left join subscriptions s
        on s.provider = ${provider} and s.subscription_id = l.subscription_id and s.kind = l.kind and s.user_id = u.id
    order by l.place`

/** What was told last of an account's subscription, whether it was taken yet or not. */
export const newestFact = async (
  sql: Sql,
  provider: string,
  subscriptionId: string,
  userId: string,
): Promise<BillingFact | undefined> =>
  first(
    await sql<{ fact: BillingFact }[]>`
      select fact from billing_events
      where user_id = ${userId} and provider = ${provider} and subscription_id = ${subscriptionId} and fact is not null
      order by seq desc limit 1`,
  )?.fact
