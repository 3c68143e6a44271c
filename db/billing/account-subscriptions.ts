/** An account's subscriptions at billing providers. */
import type { BillingSource } from '../../domain/billing/event.ts'
import type { SubscriptionKind, SubscriptionStatus } from '../../domain/billing/plans.ts'
import type { Sql } from '../connection.ts'

export interface AccountSubscription {
  readonly provider: BillingSource
  readonly subscriptionId: string
  readonly kind: SubscriptionKind
  readonly status: SubscriptionStatus
  readonly quantity: number
  readonly periodStart: Date | null
  readonly periodEnd: Date | null
  readonly updatedAt: Date
  /** The provider's customer who pays for it, if known. */
  readonly customerId: string | null
}

interface SubscriptionFilter {
  readonly subscriptionId?: string
  readonly withoutEnded?: boolean
}

/** More than an account has without the ended ones. */
const listedMax = 100

/**
 * As last written by the account's workflow: ended subscriptions last, and otherwise the latest end of the period
 * first.
 */
export const listSubscriptions = async (
  sql: Sql,
  userId: string,
  { subscriptionId, withoutEnded }: SubscriptionFilter = {},
): Promise<AccountSubscription[]> =>
  sql<AccountSubscription[]>`
    select s.provider, s.subscription_id, s.kind, s.status, s.quantity, s.period_start,
      s.period_end, s.updated_at, c.customer_id
    from subscriptions s left join billing_customers c using (provider, subscription_id)
    where s.user_id = ${userId} ${subscriptionId === undefined ? sql`` : sql`and s.subscription_id = ${subscriptionId}`}
      ${withoutEnded ? sql`and s.status <> 'ended'` : sql``}
    order by s.status = 'ended', s.kind desc, s.period_end desc nulls last, s.subscription_id
    limit ${listedMax}`
