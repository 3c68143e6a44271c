/** The period that a subscription is paid for, and the refunds that take it back. */
import type { Millis } from '../millis.ts'
import type { BillingEvent } from './event.ts'

/** The fields are replaced while events are applied, and never afterwards. */
export interface PaidState {
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

/** Records what an activation or a payment is for. */
export function addPaidPeriod(state: PaidState, event: BillingEvent): void {
  const { paidPeriod: current, refunds } = state
  const isPayment = event.action === 'payment_recovery'
  const next = paidPeriodOf(state, event)
  const isBoughtAnew = !isPayment && current !== null && current.refundedAt !== null && next.start > current.refundedAt
  if (current !== null && isSamePeriod(current, next) && !isBoughtAnew)
    state.paidPeriod = {
      invoiceId: next.invoiceId ?? current.invoiceId,
      start: Math.min(current.start, next.start),
      end: current.end ?? next.end,
      // Paid again after its refund.
      refundedAt: isPayment ? null : current.refundedAt,
    }
  else if (current === null || next.start >= current.start) {
    const refund = isPayment ? undefined : refunds.find((candidate) => isRefundOf(state, candidate, next))
    state.paidPeriod = { ...next, refundedAt: refund?.at ?? null }
  }
}

type Period = Pick<PaidPeriod, 'invoiceId' | 'start' | 'end'>

/** The period that an activation or a payment is for. It begins when it was stated to begin first. */
function paidPeriodOf({ paidPeriodStarts: starts }: PaidState, event: BillingEvent): Period {
  // An activation names the latest invoice, which may be for something else than the period.
  const invoiceId = event.invoiceReason === 'other' ? null : event.invoiceId
  const [start, end] = [event.periodStart ?? event.at, event.periodEnd]
  const name = invoiceId ?? end
  if (name === null) return { invoiceId, start, end }
  starts.set(name, Math.min(start, starts.get(name) ?? start))
  return { invoiceId, start: starts.get(name) ?? start, end }
}

/**
 * Two periods with invoices are the same if the invoice is. Otherwise they are the same if they end together, or if one
 * has no known end and they overlap.
 */
function isSamePeriod(a: Period, b: Period): boolean {
  if (a.invoiceId !== null && b.invoiceId !== null) return a.invoiceId === b.invoiceId
  if (a.end !== null && b.end !== null) return a.end === b.end
  return a.start < (b.end ?? Number.POSITIVE_INFINITY) && b.start < (a.end ?? Number.POSITIVE_INFINITY)
}

/** Only full refunds have an effect, unless they are undone, and none of an invoice that is not for a period. */
export function applyRefund(state: PaidState, event: BillingEvent): void {
  const { at, invoiceId, periodEnd } = event
  if (event.amount === 'none') undoRefunds(state, invoiceId)
  if (event.amount !== 'full' || event.invoiceReason === 'other') return
  const refund = { invoiceId, at, periodEnd }
  state.refunds.push(refund)
  const { paidPeriod: current } = state
  if (current && isRefundOf(state, refund, current)) state.paidPeriod = { ...current, refundedAt: at }
}

/** The money of these refunds came back. Another refund of the same period still counts. */
function undoRefunds(state: PaidState, invoiceId: string | null): void {
  const { paidPeriod: current, refunds } = state
  const undone = refunds.filter((refund) => refund.invoiceId === invoiceId)
  state.refunds = refunds.filter((refund) => refund.invoiceId !== invoiceId)
  if (!current || !undone.some(({ at }) => at === current.refundedAt)) return
  const other = state.refunds.findLast((refund) => isRefundOf(state, refund, current))
  state.paidPeriod = { ...current, refundedAt: other?.at ?? null }
}

/**
 * A refund of a known invoice is of that invoice's period. A refund that names no invoice is of any period that had
 * begun by then; a refund of an unknown invoice too, unless the period has an invoice.
 */
function isRefundOf({ knownInvoices }: PaidState, refund: Refund, period: Period): boolean {
  if (refund.invoiceId !== null && knownInvoices.has(refund.invoiceId)) return refund.invoiceId === period.invoiceId
  const hadBegun = period.start <= refund.at && (refund.periodEnd === null || period.start < refund.periodEnd)
  return hadBegun && (refund.invoiceId === null || period.invoiceId === null)
}

/** Whether the newest paid period is refunded, or everything if no payment is known. */
export const isRefunded = ({ paidPeriod, refunds }: PaidState): boolean =>
  paidPeriod === null ? refunds.length > 0 : paidPeriod.refundedAt !== null
