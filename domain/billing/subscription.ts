/**
 * One subscription as a state machine. Its billing events are sorted by the provider's time and then applied one by
 * one, so neither the order of their arrival nor a repetition matters.
 */
import type { Millis } from '../millis.ts'
import type { BillingEvent, BillingEventAction } from './event.ts'
import { addPaidPeriod, applyRefund, type PaidState } from './paid-periods.ts'

/** The fields are replaced while events are applied, and never afterwards. */
export interface Subscription extends PaidState {
  readonly provider: BillingEvent['provider']
  readonly subscriptionId: string
  readonly kind: BillingEvent['kind']
  /** The provider's last status, whether or not payments fail or are refunded; null before the first one. */
  status: { readonly value: 'active' | 'cancelled' | 'ended'; readonly at: Millis } | null
  /** Of add-ons. */
  quantity: { readonly value: number; readonly at: Millis } | null
  /** Of a plan: the add-ons that the same subscription contains. */
  addonsIncluded: { readonly value: number; readonly at: Millis } | null
  /** While the provider does not collect payments, failures have no effect. */
  isCollectionPaused: boolean
  /** The present billing period. */
  period: { readonly start: Millis | null; readonly end: Millis; readonly at: Millis } | null
  /** When the period of the last activation began. */
  activatedFrom: Millis | null
  /**
   * The first failure of each unpaid invoice, the earliest one first. The key null stands for failures that name no
   * invoice.
   */
  readonly failures: Map<string | null, Millis>
  readonly paidInvoices: Set<string>
}

/**
 * Events of the same moment are applied in this order: a payment after the failure that it settles, and what takes the
 * most away last.
 */
const severity: Readonly<Record<BillingEventAction, number>> = {
  activate: 0,
  update_addon: 0,
  grant: 0,
  payment_failed: 1,
  payment_recovery: 2,
  cancelled: 3,
  downgrade: 4,
  withdraw: 4,
  refund: 5,
}

/** A refund that came back is applied after the refund. */
const severityOf = ({ action, amount }: BillingEvent): number =>
  action === 'refund' && amount === 'none' ? 6 : severity[action]

/**
 * The order in which events are applied: by time, severity and content, which includes the key. Only identical events
 * are equal.
 */
export const compareEvents = (a: BillingEvent, b: BillingEvent): number =>
  a.at - b.at || severityOf(a) - severityOf(b) || compareTexts(JSON.stringify(a), JSON.stringify(b))

const compareTexts = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)

/** @param events of one subscription and kind, at least one, sorted by {@link compareEvents}. */
export function subscriptionFrom(events: readonly BillingEvent[]): Subscription {
  const [first] = events
  if (!first) throw new Error('a subscription has at least one event')
  const subscription: Subscription = {
    provider: first.provider,
    subscriptionId: first.subscriptionId,
    kind: first.kind,
    status: null,
    quantity: null,
    addonsIncluded: null,
    isCollectionPaused: false,
    period: null,
    activatedFrom: null,
    failures: new Map(),
    paidInvoices: new Set(),
    knownInvoices: new Set(),
    paidPeriod: null,
    paidPeriodStarts: new Map(),
    refunds: [],
  }
  for (const event of withInvoiceReasons(events)) applyEvent(subscription, event)
  return subscription
}

/** One event that states what an invoice is for is enough for all events of the invoice. */
function withInvoiceReasons(events: readonly BillingEvent[]): BillingEvent[] {
  const others = new Set(
    events.filter(({ invoiceReason }) => invoiceReason === 'other').map(({ invoiceId }) => invoiceId),
  )
  others.delete(null)
  return events.map((event) => (others.has(event.invoiceId) ? { ...event, invoiceReason: 'other' } : event))
}

function applyEvent(subscription: Subscription, event: BillingEvent): void {
  const { action, at, invoiceId, periodStart } = event
  const { failures, knownInvoices, paidInvoices } = subscription
  // The quantity and the period in a refund are those that are paid back.
  if (action !== 'refund') {
    if (invoiceId !== null) knownInvoices.add(invoiceId)
    setQuantity(subscription, event)
    setAddonsIncluded(subscription, event)
    setPeriod(subscription, event)
    setCollection(subscription, event)
  }
  switch (action) {
    case 'activate':
      subscription.status = { value: 'active', at }
      subscription.activatedFrom = periodStart ?? at
      failures.clear()
      addPaidPeriod(subscription, event)
      break
    case 'update_addon':
      subscription.status = { value: 'active', at }
      // The provider's own status: nothing is outstanding.
      if (event.collection != null) failures.clear()
      // Bought after the refund. Where payments are known, their periods decide.
      if (subscription.paidPeriod === null) subscription.refunds = []
      break
    case 'payment_recovery':
      applyPayment(subscription, event)
      break
    case 'payment_failed':
      // A paid invoice has no open failures, whenever it was paid.
      if (invoiceId !== null && paidInvoices.has(invoiceId)) break
      if (!failures.has(invoiceId)) failures.set(invoiceId, at)
      break
    case 'cancelled':
      subscription.status = { value: 'cancelled', at }
      break
    case 'downgrade':
      subscription.status = { value: 'ended', at }
      break
    case 'refund':
      applyRefund(subscription, event)
      break
  }
}

/** Of two numbers that are stated for the same moment the greater one counts. */
function setQuantity(subscription: Subscription, { kind, at, quantity: value }: BillingEvent): void {
  const { quantity: known } = subscription
  if (kind !== 'addon' || value === null || (known?.at === at && known.value > value)) return
  subscription.quantity = { value, at }
}

/** What an activation or a cancellation does not state, the subscription does not contain. */
function setAddonsIncluded(subscription: Subscription, { action, kind, at, addons }: BillingEvent): void {
  const { addonsIncluded: known } = subscription
  const value = addons ?? (action === 'activate' || action === 'cancelled' ? 0 : null)
  if (kind !== 'plan' || value === null || (known?.at === at && known.value > value)) return
  subscription.addonsIncluded = { value, at }
}

/** When the provider collects payments again, the payment grace period of what is still unpaid begins. */
function setCollection(subscription: Subscription, { collection, at }: BillingEvent): void {
  if (collection == null) return
  const wasPaused = subscription.isCollectionPaused
  subscription.isCollectionPaused = collection === 'paused'
  if (!wasPaused || collection === 'paused') return
  for (const invoiceId of subscription.failures.keys()) subscription.failures.set(invoiceId, at)
}

/** Of two periods that are stated for the same moment the later one counts. */
function setPeriod(subscription: Subscription, event: BillingEvent): void {
  const { action, at, periodStart: start, periodEnd: end } = event
  const { period: known } = subscription
  if (end === null || (known?.at === at && known.end > end)) return
  // An invoice may be for something else than a period, or for a period that is over.
  const isOfInvoice = action === 'payment_recovery' || action === 'payment_failed'
  if (isOfInvoice && (event.invoiceReason === 'other' || end <= at)) return
  // A period that would begin after its end has no known beginning.
  subscription.period = { start: start !== null && start < end ? start : null, end, at }
}

/**
 * A payment settles all failures of its invoice, also later ones. A payment that names no invoice settles all earlier
 * failures.
 */
function applyPayment(subscription: Subscription, event: BillingEvent): void {
  const { invoiceId, invoiceReason } = event
  const { failures, paidInvoices } = subscription
  if (invoiceId !== null) {
    paidInvoices.add(invoiceId)
    failures.delete(invoiceId)
  }
  if (invoiceReason === 'other') return
  if (invoiceId === null) failures.clear()
  // Any payment for a period settles failures that name no invoice.
  failures.delete(null)
  addPaidPeriod(subscription, event)
}
