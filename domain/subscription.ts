/**
 * One subscription as a state machine. Its billing events are sorted by the provider's time and then applied one by one, so neither
 * the order of their arrival nor a repetition matters.
 */
import type { BillingEvent, BillingEventAction } from './billing-event.ts'

/** Milliseconds since 1970. */
export type Millis = number

/** The fields are replaced while events are applied, and never afterwards. */
export interface Subscription {
  readonly provider: BillingEvent['provider']
  readonly subscriptionId: string
  readonly kind: BillingEvent['kind']
  /** The provider's last status, whether or not payments fail or are refunded; null before the first one. */
  status: { readonly value: 'active' | 'cancelled' | 'ended'; readonly at: Millis } | null
  /** Of add-ons. */
  quantity: { readonly value: number; readonly at: Millis } | null
  /** The present billing period. */
  period: { readonly start: Millis | null; readonly end: Millis; readonly at: Millis } | null
  /** When the period of the last activation began. */
  activatedFrom: Millis | null
  /** The first failure of each unpaid invoice, the earliest one first. The key null stands for failures that name no invoice. */
  readonly failures: Map<string | null, Millis>
  readonly paidInvoices: Set<string>
  /** The invoices that any event but a refund names. */
  readonly knownInvoices: Set<string>
  /** The newest period that an activation or a payment is for. */
  paidPeriod: PaidPeriod | null
  /** When each paid period began, by its invoice, or by its end if no invoice is named. */
  readonly paidPeriodStarts: Map<string | Millis, Millis>
  /** Full refunds. */
  refunds: Refund[]
}

interface PaidPeriod {
  readonly invoiceId: string | null
  readonly start: Millis
  readonly end: Millis | null
  readonly refundedAt: Millis | null
}

interface Refund {
  readonly invoiceId: string | null
  readonly at: Millis
  /** The end of the refunded period, if the event states it. */
  readonly periodEnd: Millis | null
}

/**
 * Events of the same moment are applied in this order: a payment after the failure that it settles, and what takes the most away
 * last.
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

/** The order in which events are applied: by time, severity and content, which includes the key. Only identical events are equal. */
export const compareEvents = (one: BillingEvent, other: BillingEvent): number =>
  one.at - other.at ||
  severity[one.action] - severity[other.action] ||
  compareTexts(JSON.stringify(one), JSON.stringify(other))

const compareTexts = (one: string, other: string): number => (one === other ? 0 : one < other ? -1 : 1)

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
  const others = new Set(events.filter((one) => one.invoiceReason === 'other').map((one) => one.invoiceId))
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
    setPeriod(subscription, event)
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

/** A payment settles all failures of its invoice, also later ones. A payment that names no invoice settles all earlier failures. */
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

function addPaidPeriod(subscription: Subscription, event: BillingEvent): void {
  const { paidPeriod: current, refunds } = subscription
  const isPayment = event.action === 'payment_recovery'
  const next = paidPeriodOf(subscription, event)
  const isBoughtAnew = !isPayment && current !== null && current.refundedAt !== null && next.start > current.refundedAt
  if (current !== null && isSamePeriod(current, next) && !isBoughtAnew)
    subscription.paidPeriod = {
      invoiceId: next.invoiceId ?? current.invoiceId,
      start: Math.min(current.start, next.start),
      end: current.end ?? next.end,
      // Paid after its refund: paid again, or a dispute that was won.
      refundedAt: isPayment ? null : current.refundedAt,
    }
  else if (current === null || next.start >= current.start) {
    const refund = isPayment ? undefined : refunds.find((one) => isRefundOf(subscription, one, next))
    subscription.paidPeriod = { ...next, refundedAt: refund?.at ?? null }
  }
}

type Period = Pick<PaidPeriod, 'invoiceId' | 'start' | 'end'>

/** The period that an activation or a payment is for. It begins when it was stated to begin first. */
function paidPeriodOf({ paidPeriodStarts: starts }: Subscription, event: BillingEvent): Period {
  // An activation names the latest invoice, which may be for something else than the period.
  const invoiceId = event.invoiceReason === 'other' ? null : event.invoiceId
  const [start, end] = [event.periodStart ?? event.at, event.periodEnd]
  const name = invoiceId ?? end
  if (name === null) return { invoiceId, start, end }
  starts.set(name, Math.min(start, starts.get(name) ?? start))
  return { invoiceId, start: starts.get(name) ?? start, end }
}

/**
 * Two periods with invoices are the same if the invoice is. Otherwise they are the same if they end together, or if one has no known
 * end and they overlap.
 */
function isSamePeriod(one: Period, other: Period): boolean {
  if (one.invoiceId !== null && other.invoiceId !== null) return one.invoiceId === other.invoiceId
  if (one.end !== null && other.end !== null) return one.end === other.end
  return one.start < (other.end ?? Number.POSITIVE_INFINITY) && other.start < (one.end ?? Number.POSITIVE_INFINITY)
}

/** Only full refunds have an effect, and none of an invoice that is not for a period. */
function applyRefund(subscription: Subscription, event: BillingEvent): void {
  const { at, invoiceId, periodEnd } = event
  if (event.amount !== 'full' || event.invoiceReason === 'other') return
  const refund = { invoiceId, at, periodEnd }
  subscription.refunds.push(refund)
  const { paidPeriod: current } = subscription
  if (current && isRefundOf(subscription, refund, current)) subscription.paidPeriod = { ...current, refundedAt: at }
}

/**
 * A refund of a known invoice is of that invoice's period. A refund that names no invoice is of any period that had begun by then;
 * a refund of an unknown invoice too, unless the period has an invoice.
 */
function isRefundOf({ knownInvoices }: Subscription, refund: Refund, period: Period): boolean {
  if (refund.invoiceId !== null && knownInvoices.has(refund.invoiceId)) return refund.invoiceId === period.invoiceId
  const hadBegun = period.start <= refund.at && (refund.periodEnd === null || period.start < refund.periodEnd)
  return hadBegun && (refund.invoiceId === null || period.invoiceId === null)
}

/** Whether the newest paid period is refunded, or everything if no payment is known. */
export const isRefunded = ({ paidPeriod, refunds }: Subscription): boolean =>
  paidPeriod === null ? refunds.length > 0 : paidPeriod.refundedAt !== null
