/** An account's subscriptions at billing providers, and which of them are billed for nothing. */
import type { BillingSource } from '../domain/billing-event.ts'
import type { Sql } from './connection.ts'

export interface AccountSubscription {
  readonly provider: BillingSource
  readonly subscriptionId: string
  readonly kind: 'plan' | 'addon'
  readonly status: 'active' | 'past_due' | 'cancelled' | 'ended'
  readonly quantity: number
  readonly periodStart: Date | null
  readonly periodEnd: Date | null
  readonly updatedAt: Date
  /** The provider's own customer who pays for it, where that is known. */
  readonly customerId: string | null
}

interface SubscriptionFilter {
  readonly subscriptionId?: string
  readonly withoutEnded?: boolean
}

/** More than any account has that go on. Of those that have ended the latest are listed. */
const shownMax = 100

/** As the account's workflow last wrote them: those that go on first, then by the end of their period, the latest first. */
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
    limit ${shownMax}`

type Billed = Pick<AccountSubscription, 'kind' | 'status' | 'quantity'>

/** Its provider takes money for it again, or still tries to. */
const isBilled = ({ kind, status, quantity }: Billed): boolean =>
  (status === 'active' || status === 'past_due') && (kind === 'plan' || quantity > 0)

export const isBilledPlan = (one: Billed): boolean => one.kind === 'plan' && isBilled(one)
export const isBilledAddon = (one: Billed): boolean => one.kind === 'addon' && isBilled(one)

export interface BilledForNothing {
  /** Add-ons that are billed while they do nothing. */
  readonly addonsWithoutPlan: number
  /** Plans that are billed: more than one brings no more than one does. */
  readonly billedPlans: number
}

export const billedForNothing = (planTier: 'free' | 'paid', subscriptions: readonly Billed[]): BilledForNothing => ({
  addonsWithoutPlan:
    planTier === 'paid' ? 0 : subscriptions.filter(isBilledAddon).reduce((sum, { quantity }) => sum + quantity, 0),
  billedPlans: subscriptions.filter(isBilledPlan).length,
})
