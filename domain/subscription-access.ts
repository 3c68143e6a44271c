/** What one subscription gives, as a function of what is remembered of it: whether it is paid for, and the two deadlines it may have. */
import {
  type Coverage,
  type InvoiceFacts,
  later,
  type Millis,
  type Refund,
  type SubscriptionFacts,
  selectPeriodInvoices,
} from './subscription-facts.ts'

export interface Terms {
  /** False when it never began, was ended, or was paid back: then it has no deadlines. */
  readonly isPaidFor: boolean
  /** Past due: when access ends unless the failure is settled. */
  readonly graceEndsAt: Millis | null
  /** Cancelled: when access ends. */
  readonly endsAt: Millis | null
}

export type Access =
  | { readonly isOpen: true; readonly status: 'active' | 'past_due' | 'cancelled' }
  /** A subscription whose grace is over gives nothing, and is past due none the less. */
  | { readonly isOpen: false; readonly status: 'past_due' | 'ended' }

/** A payment of the account that was accepted, of which only its provider knows what it is for. */
export interface UnresolvedPayment {
  readonly acceptedAt: Millis
  readonly holdsUntil: Millis
}

export function termsOf(
  facts: SubscriptionFacts,
  graceSeconds: number,
  unresolved: readonly UnresolvedPayment[] = [],
): Terms {
  const status = lastingStatus(facts)
  if (status === 'ended' || isPaidBack(facts)) return { isPaidFor: false, graceEndsAt: null, endsAt: null }
  const failedAt = firstUnsettledFailure(facts)
  return {
    isPaidFor: true,
    graceEndsAt: failedAt === null ? null : heldGrace(failedAt + graceSeconds * 1000, unresolved),
    endsAt: status === 'cancelled' ? cancelledUntil(facts) : null,
  }
}

/**
 * The end of the grace, or of the latest hold: a payment that was accepted before the grace ended may turn out to settle the
 * failure, or to pay for another subscription that gives the same.
 */
const heldGrace = (endsAt: Millis, unresolved: readonly UnresolvedPayment[]): Millis =>
  unresolved
    .filter(({ acceptedAt }) => acceptedAt < endsAt)
    .reduce((latest, { holdsUntil }) => Math.max(latest, holdsUntil), endsAt)

export function accessAt(terms: Terms, now: Millis): Access {
  const { isPaidFor, graceEndsAt, endsAt } = terms
  if (!isPaidFor || (endsAt !== null && now >= endsAt)) return { isOpen: false, status: 'ended' }
  if (graceEndsAt !== null) return { isOpen: now < graceEndsAt, status: 'past_due' }
  return { isOpen: true, status: endsAt === null ? 'active' : 'cancelled' }
}

/** When its access ends by time alone. */
export const lastsUntil = ({ graceEndsAt, endsAt }: Terms): Millis | null =>
  graceEndsAt !== null && endsAt !== null ? Math.min(graceEndsAt, endsAt) : (graceEndsAt ?? endsAt)

/**
 * The status without regard to failures and time. A subscription that the provider ended stays ended until a later
 * activation: a payment does not restart it at the provider either.
 */
const lastingStatus = (facts: SubscriptionFacts): 'active' | 'cancelled' | 'ended' =>
  facts.status?.status ?? (lastPaidAt(facts) === null ? 'ended' : 'active')

const lastPaidAt = ({ invoices }: SubscriptionFacts): Millis | null =>
  greatest(
    selectPeriodInvoices(invoices)
      .map((one) => one.paidAt)
      .filter((at) => at !== null),
  )

const greatest = (times: readonly Millis[]): Millis | null =>
  times.reduce<Millis | null>((most, at) => (most === null || at > most ? at : most), null)

/**
 * When the subscription fell behind. Besides an invoice's own payment, what settles its failures is a payment without an
 * invoice, from then on, and a later activation; failures without an invoice are settled by any payment.
 */
function firstUnsettledFailure(facts: SubscriptionFacts): Millis | null {
  const anyPaidAt = lastPaidAt(facts)
  const namelessPaidAt = facts.invoices.find((one) => one.invoiceId === null)?.paidAt ?? null
  const open = facts.invoices.flatMap(({ invoiceId, failedAt }) => {
    const paidAt = invoiceId === null ? anyPaidAt : namelessPaidAt
    return failedAt.filter((at) => (paidAt === null || at > paidAt) && at >= (facts.activation?.at ?? at))
  })
  return open.length === 0 ? null : Math.min(...open)
}

/** What was never seen to begin, and tells no period, gives nothing: else a lost activation would be worth a free month. */
function cancelledUntil(facts: SubscriptionFacts): Millis | null {
  const { period, activation, quantity, status } = facts
  if (status === null) return null
  if (period !== null) return period.end
  const hasBegun = activation !== null || quantity !== null || lastPaidAt(facts) !== null
  return hasBegun ? nextAnniversary(activation?.start ?? status.at, status.at) : status.at
}

/** The first of the anchor's monthly anniversaries (UTC, at the latest the month's last day) that comes after the time. */
function nextAnniversary(anchor: Millis, after: Millis): Millis {
  const [from, to] = [new Date(anchor), new Date(after)]
  const apart = (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth()
  const near = monthsAfter(from, Math.max(0, apart))
  const next = near > after ? near : monthsAfter(from, Math.max(0, apart) + 1)
  // Times outside the calendar have no anniversaries.
  return Number.isFinite(next) ? next : after
}

function monthsAfter(date: Date, months: number): Millis {
  const moved = new Date(date)
  moved.setUTCDate(1)
  moved.setUTCMonth(moved.getUTCMonth() + months)
  const lastDay = new Date(moved)
  lastDay.setUTCMonth(lastDay.getUTCMonth() + 1, 0)
  return moved.setUTCDate(Math.min(date.getUTCDate(), lastDay.getUTCDate()))
}

/**
 * Whether the newest coverage was paid back. Of those that begin together one with an invoice is newer, since what comes
 * without only says again what the subscription is like; then the one that was told later.
 */
function isPaidBack({ invoices: all, quantity }: SubscriptionFacts): boolean {
  const invoices = selectPeriodInvoices(all)
  const newest = invoices
    .flatMap((invoice) => invoice.coverages.map((coverage) => ({ invoice, coverage })))
    .reduce<Covered | null>((known, one) => later(known, one, newnessOf), null)
  // Nobody told what was paid: then it is all that there was, but not what was bought afterwards.
  if (newest === null)
    return invoices.some(({ refunds }) => refunds.some(({ at }) => quantity === null || quantity.at <= at))
  return invoices.some((returned) =>
    returned.refunds.some((refund) => takesBack(invoices, { returned, refund }, newest)),
  )
}

interface Covered {
  readonly invoice: InvoiceFacts
  readonly coverage: Coverage
}

const newnessOf = ({ invoice, coverage: { start, at } }: Covered) => [start, invoice.invoiceId === null ? 0 : 1, at]

/**
 * Whether a full refund takes the coverage away. One of a known invoice takes that invoice's, and what only told its period
 * again; another takes whatever had begun by then, but an unknown invoice is none of the known ones. No refund gives back
 * what was paid after it: that is new money, or a dispute that was won.
 */
function takesBack(
  invoices: readonly InvoiceFacts[],
  { returned, refund }: { returned: InvoiceFacts; refund: Refund },
  { invoice, coverage }: Covered,
): boolean {
  const isPaidAfterwards = ({ paidAt }: InvoiceFacts) => paidAt !== null && paidAt > refund.at
  if (isPaidAfterwards(invoice)) return false
  const hadBegun = coverage.start <= refund.at
  const namesNone = invoice.invoiceId === null
  if (returned.invoiceId !== null && isNamedElsewhere(returned)) {
    if (isPaidAfterwards(returned)) return false
    const tellsAgain = namesNone && coverage.end !== null && coverage.end === paidUntil(invoices, returned)
    return returned === invoice || (tellsAgain && hadBegun)
  }
  const isOfPeriod = refund.periodEnd === null || coverage.start < refund.periodEnd
  return hadBegun && isOfPeriod && (returned.invoiceId === null || namesNone)
}

/** By more than its refund. */
const isNamedElsewhere = ({ coverages, failedAt }: InvoiceFacts): boolean => coverages.length > 0 || failedAt.length > 0

/** The end of the period that the invoice paid: as it tells itself, or the next one that the subscription tells. */
function paidUntil(invoices: readonly InvoiceFacts[], { coverages }: InvoiceFacts): Millis | null {
  const own = greatest(coverages.map((one) => one.end).filter((end) => end !== null))
  if (own !== null || coverages.length === 0) return own
  const paidFrom = Math.min(...coverages.map((one) => one.start))
  const told = invoices.filter((one) => one.invoiceId === null).flatMap((one) => one.coverages.map(({ end }) => end))
  const ahead = told.filter((end) => end !== null).filter((end) => end > paidFrom)
  return ahead.length === 0 ? null : Math.min(...ahead)
}
