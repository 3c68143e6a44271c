/** Subscriptions that their provider charges for although they bring nothing. */
import type { PlanTier, SubscriptionKind, SubscriptionStatus } from './plans.ts'

interface Subscription {
  readonly kind: SubscriptionKind
  readonly status: SubscriptionStatus
  readonly quantity: number
}

/** Whether the provider will charge for the subscription, or still tries to. */
const isBilled = ({ kind, status, quantity }: Subscription): boolean =>
  (status === 'active' || status === 'past_due') && (kind === 'plan' || quantity > 0)

export const isBilledPlan = (subscription: Subscription): boolean =>
  subscription.kind === 'plan' && isBilled(subscription)
export const isBilledAddon = (subscription: Subscription): boolean =>
  subscription.kind === 'addon' && isBilled(subscription)

export interface UnusedBilling {
  /** The number of billed add-ons of an account without a plan. */
  readonly addonsWithoutPlan: number
  /** The number of billed plans; only one of them has an effect. */
  readonly billedPlans: number
}

export const findUnusedBilling = (planTier: PlanTier, subscriptions: readonly Subscription[]): UnusedBilling => ({
  addonsWithoutPlan:
    planTier === 'paid' ? 0 : subscriptions.filter(isBilledAddon).reduce((sum, { quantity }) => sum + quantity, 0),
  billedPlans: subscriptions.filter(isBilledPlan).length,
})
