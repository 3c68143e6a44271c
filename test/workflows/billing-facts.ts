/** Facts of billing as tests tell them: what a test does not say of one is left open. */
import type { BillingEvent, BillingEventAction } from '../../domain/billing-event.ts'
import {
  type AccountEntitlement,
  applyEvent,
  entitlementAt,
  initialState,
  type Millis,
  type SubscriptionState,
} from '../../domain/subscription.ts'

export const hour = 3_600_000
export const day = 24 * hour
export const graceSeconds = 48 * 3600
/** When the subscriptions of the examples begin. */
export const begin = Date.UTC(2026, 0, 10, 12)
export const monthLater = Date.UTC(2026, 1, 10, 12)
export const twoMonthsLater = Date.UTC(2026, 2, 10, 12)

type Told = Partial<Omit<BillingEvent, 'action' | 'at'>>

/** Each fact has a key of its own, which follows from what it says. */
export function fact(action: BillingEventAction, at: Millis, told: Told = {}): BillingEvent {
  const said = {
    action,
    provider: 'sandbox' as const,
    subscriptionId: 'plan-1',
    kind: 'plan' as const,
    at,
    quantity: null,
    invoiceId: null,
    amount: action === 'refund' ? ('full' as const) : null,
    periodStart: null,
    periodEnd: null,
    ...told,
  }
  return { key: JSON.stringify(said), ...said }
}

/** What is told of add-ons. */
export const addon = (action: BillingEventAction, at: Millis, told: Told = {}): BillingEvent =>
  fact(action, at, { subscriptionId: 'addon-1', kind: 'addon', ...told })

/** The plan's first month, paid by invoice `i1`. */
export const firstMonth = fact('activate', begin, { invoiceId: 'i1', periodStart: begin, periodEnd: monthLater })
export const secondMonth = fact('activate', monthLater, {
  invoiceId: 'i2',
  periodStart: monthLater,
  periodEnd: twoMonthsLater,
})

/** The renewal fails when the first month is not yet over. */
export const failedAt = begin + 20 * day
export const failed = fact('payment_failed', failedAt, { invoiceId: 'i2' })

/** An operator's complimentary plan. */
export const granted = (at: Millis, addons = 0, until: Millis | null = null): BillingEvent =>
  fact('grant', at, { provider: 'operator', subscriptionId: 'grant', quantity: addons, periodEnd: until })

export const withdrawn = (at: Millis): BillingEvent =>
  fact('withdraw', at, { provider: 'operator', subscriptionId: 'grant' })

export const knowing = (...facts: readonly BillingEvent[]): SubscriptionState =>
  facts.reduce((state, one) => applyEvent(state, one), initialState)

/** What the account is entitled to at a time, when these facts are known. */
export const standing = (at: Millis, ...facts: readonly BillingEvent[]): AccountEntitlement =>
  entitlementAt(knowing(...facts), at, graceSeconds)

/** The account's plan and add-ons in three words. */
export function plan(at: Millis, ...facts: readonly BillingEvent[]): string {
  const { planTier, planStatus, addons } = standing(at, ...facts)
  return `${planTier} ${planStatus} ${addons}`
}
