/**
 * Builders of billing events, and the entitlement that follows from some. Fields that a test does not give are null.
 */

import { type AccountEntitlement, entitlementAt } from '../../../domain/billing/entitlement.ts'
import type { BillingEvent, BillingEventAction } from '../../../domain/billing/event.ts'
import type { Millis } from '../../../domain/millis.ts'

export const hour = 3_600_000
export const day = 24 * hour
export const graceSeconds = 48 * 3600
/** When the subscriptions of the examples begin. */
export const begin = Date.UTC(2026, 0, 10, 12)
export const monthLater = Date.UTC(2026, 1, 10, 12)
export const twoMonthsLater = Date.UTC(2026, 2, 10, 12)

type Fields = Partial<Omit<BillingEvent, 'action' | 'at'>>

/** An event of the plan's subscription. Its key follows from its content. */
export function planEvent(action: BillingEventAction, at: Millis, fields: Fields = {}): BillingEvent {
  const content = {
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
    ...fields,
  }
  return { key: JSON.stringify(content), ...content }
}

/** An event of the add-ons' subscription. */
export const addonEvent = (action: BillingEventAction, at: Millis, fields: Fields = {}): BillingEvent =>
  planEvent(action, at, { subscriptionId: 'addon-1', kind: 'addon', ...fields })

/** The plan's first month, paid by invoice `i1`. */
export const firstMonth = planEvent('activate', begin, { invoiceId: 'i1', periodStart: begin, periodEnd: monthLater })
export const secondMonth = planEvent('activate', monthLater, {
  invoiceId: 'i2',
  periodStart: monthLater,
  periodEnd: twoMonthsLater,
})

/** A failed payment of the next invoice, within the first month. */
export const failedAt = begin + 20 * day
export const failed = planEvent('payment_failed', failedAt, { invoiceId: 'i2' })

/** An operator gives a complimentary plan. */
export const granted = (at: Millis, addons = 0, until: Millis | null = null): BillingEvent =>
  planEvent('grant', at, { provider: 'operator', subscriptionId: 'grant', quantity: addons, periodEnd: until })

export const withdrawn = (at: Millis): BillingEvent =>
  planEvent('withdraw', at, { provider: 'operator', subscriptionId: 'grant' })

export const entitlement = (at: Millis, ...events: readonly BillingEvent[]): AccountEntitlement =>
  entitlementAt(events, at, graceSeconds)

/** The entitlement in short: tier, status and number of add-ons, such as `paid active 2`. */
export function planAt(at: Millis, ...events: readonly BillingEvent[]): string {
  const { planTier, planStatus, addons } = entitlement(at, ...events)
  return `${planTier} ${planStatus} ${addons}`
}
