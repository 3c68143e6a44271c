/**
 * What an account may use by the events of its provider and operators: a model that shares no code with the product.
 */
import type { AccountRecord, DeliveryRecord } from './journal.ts'

export interface ModelEvent {
  readonly at: number
  readonly type: string
  readonly subscriptionId: string
  readonly invoiceId: string | null
  readonly quantity: number | null
  /** The end of a grant. */
  readonly until: number | null
}

export interface Entitlement {
  readonly planTier: 'free' | 'paid'
  readonly addons: number
  /** How many relays may run. */
  readonly limit: number
}

export const toModelEvent = ({ body }: DeliveryRecord): ModelEvent => ({
  at: Date.parse(body.occurred_at),
  type: body.type,
  subscriptionId: body.data.subscription_id ?? '',
  invoiceId: body.data.invoice_id ?? null,
  quantity: typeof body.data.quantity === 'number' ? body.data.quantity : null,
  until: null,
})

export const toGrantEvent = ({ sentAt, until }: AccountRecord): ModelEvent => ({
  at: sentAt,
  type: 'grant',
  subscriptionId: 'grant',
  invoiceId: null,
  quantity: 0,
  until,
})

interface Plan {
  isOpen: boolean
  /** The first failure of each unpaid invoice. */
  readonly failures: Map<string, number>
}

/** @param events in any order. @param at the time of interest, which may lie before events that are dated later. */
export function modelEntitlement(events: readonly ModelEvent[], at: number, graceMillis: number): Entitlement {
  const plans = new Map<string, Plan>()
  const paid = new Set<string>()
  let addons = 0
  let grantedUntil = Number.NEGATIVE_INFINITY
  for (const event of events.toSorted((a, b) => a.at - b.at)) {
    const { type, subscriptionId, invoiceId } = event
    const plan = plans.get(subscriptionId) ?? { isOpen: false, failures: new Map<string, number>() }
    if (type === 'grant') grantedUntil = event.until ?? Number.POSITIVE_INFINITY
    else if (type === 'addon.updated') addons = event.quantity ?? 0
    else plans.set(subscriptionId, plan)
    const invoice = invoiceId ?? ''
    if (type === 'subscription.activated') {
      plan.isOpen = true
      plan.failures.clear()
    }
    if (type === 'subscription.downgraded' || type === 'payment.refunded') plan.isOpen = false
    if (type === 'payment.failed' && !paid.has(invoice) && !plan.failures.has(invoice))
      plan.failures.set(invoice, event.at)
    if (type === 'payment.recovered') {
      paid.add(invoice)
      plan.failures.delete(invoice)
    }
  }
  const isPaid = (plan: Plan) => plan.isOpen && [...plan.failures.values()].every((failed) => at < failed + graceMillis)
  const planTier = at < grantedUntil || [...plans.values()].some(isPaid) ? 'paid' : 'free'
  return { planTier, addons, limit: planTier === 'paid' ? 1 + Math.min(3, addons) : 0 }
}
