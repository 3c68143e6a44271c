/**
 * What is remembered of one subscription. Every part merges in any order and any number of times to the same value: the latest
 * of its kind, a greatest, a least, or a set. Nothing is concluded here, because a conclusion may fall with the next fact.
 */
import type { BillingEvent } from './billing-event.ts'

/** Milliseconds since 1970, by the clock of whoever tells. */
export type Millis = number

export interface SubscriptionFacts {
  readonly provider: BillingEvent['provider']
  readonly subscriptionId: string
  readonly kind: BillingEvent['kind']
  readonly status: { readonly at: Millis; readonly status: 'active' | 'cancelled' | 'ended' } | null
  /** Of add-ons alone. */
  readonly quantity: { readonly at: Millis; readonly quantity: number } | null
  readonly period: { readonly at: Millis; readonly start: Millis | null; readonly end: Millis } | null
  /** The latest `activate`, and the beginning of the period that it told, or else its own time. */
  readonly activation: { readonly at: Millis; readonly start: Millis } | null
  /** By id; the one without an id holds what names no invoice. */
  readonly invoices: readonly InvoiceFacts[]
}

export interface InvoiceFacts {
  readonly invoiceId: string | null
  /** `other` as soon as one fact says so. */
  readonly reason: 'period' | 'other' | null
  /** The latest payment. */
  readonly paidAt: Millis | null
  /** Failures that its own payments have not settled, in order. */
  readonly failedAt: readonly Millis[]
  readonly coverages: readonly Coverage[]
  /** Full ones, in order. */
  readonly refunds: readonly Refund[]
}

/** A stretch of time that an activation or a payment told to be paid for. */
export interface Coverage {
  readonly end: Millis | null
  /**
   * The earliest told, since a period that is told again has not begun again. What tells neither invoice nor end can't be known
   * again: there it is the latest.
   */
  readonly start: Millis
  /** When it was told last. */
  readonly at: Millis
}

export interface Refund {
  readonly at: Millis
  /** The end of the period that is paid back, where it is told. */
  readonly periodEnd: Millis | null
}

export const nothingOf = ({ provider, subscriptionId, kind }: BillingEvent): SubscriptionFacts => ({
  provider,
  subscriptionId,
  kind,
  status: null,
  quantity: null,
  period: null,
  activation: null,
  invoices: [],
})

const createInvoice = (invoiceId: string | null): InvoiceFacts => ({
  invoiceId,
  reason: null,
  paidAt: null,
  failedAt: [],
  coverages: [],
  refunds: [],
})

/** The subscription with the fact in it; the very same value when it adds nothing. */
export function withFact(known: SubscriptionFacts, fact: BillingEvent): SubscriptionFacts {
  return sameOr(known, {
    ...known,
    status: later(known.status, statusTold(fact), ({ at, status }) => [at, statusRank[status]]),
    quantity: later(known.quantity, quantityTold(fact), ({ at, quantity }) => [at, quantity]),
    period: later(known.period, periodTold(fact), ({ at, end, start }) => [at, end, start]),
    activation: later(known.activation, activationTold(fact), ({ at, start }) => [at, start]),
    invoices: withInvoice(known.invoices, fact),
  })
}

/** At one and the same time the worse news counts. */
const statusRank = { active: 0, cancelled: 1, ended: 2 } as const

function statusTold({ action, at }: BillingEvent): SubscriptionFacts['status'] {
  switch (action) {
    case 'activate':
    case 'update_addon':
      return { at, status: 'active' }
    case 'cancelled':
      return { at, status: 'cancelled' }
    case 'downgrade':
      return { at, status: 'ended' }
    default:
      return null
  }
}

const quantityTold = ({ action, kind, at, quantity }: BillingEvent): SubscriptionFacts['quantity'] =>
  kind === 'addon' && quantity !== null && action !== 'refund' ? { at, quantity } : null

/** A refund tells of the period that is paid back, and a late payment may tell of one that is over: neither is the present one. */
function periodTold(fact: BillingEvent): SubscriptionFacts['period'] {
  const { action, at, periodStart: start, periodEnd: end } = fact
  if (end === null || action === 'refund' || fact.invoiceReason === 'other') return null
  const isOfInvoice = action === 'payment_recovery' || action === 'payment_failed'
  return isOfInvoice && end <= at ? null : { at, start, end }
}

const activationTold = ({ action, at, periodStart }: BillingEvent): SubscriptionFacts['activation'] =>
  action === 'activate' ? { at, start: periodStart ?? at } : null

function withInvoice(known: readonly InvoiceFacts[], fact: BillingEvent): readonly InvoiceFacts[] {
  const before = known.find((one) => one.invoiceId === fact.invoiceId)
  const unknown = createInvoice(fact.invoiceId)
  const after = invoiceWith(mergeReason(before ?? unknown, fact), fact)
  return after === (before ?? unknown) ? known : placed(known, after, ({ invoiceId }) => [invoiceId])
}

const reasonRank = { period: 0, other: 1 } as const

/** The facts without an invoice id may belong to several invoices, which have no reason in common. */
const mergeReason = (known: InvoiceFacts, { invoiceId, invoiceReason }: BillingEvent): InvoiceFacts =>
  invoiceId === null
    ? known
    : sameOr(known, { ...known, reason: later(known.reason, invoiceReason ?? null, (one) => [reasonRank[one]]) })

function invoiceWith(known: InvoiceFacts, fact: BillingEvent): InvoiceFacts {
  const isOther = fact.invoiceReason === 'other'
  if (isOther && fact.invoiceId === null && fact.action !== 'payment_failed') return known
  switch (fact.action) {
    case 'activate':
      return sameOr(known, { ...known, coverages: covered(known, fact) })
    case 'payment_recovery': {
      const paidAt = Math.max(known.paidAt ?? fact.at, fact.at)
      const open = known.failedAt.filter((at) => !isSettled({ ...known, paidAt }, at))
      const failedAt = open.length === known.failedAt.length ? known.failedAt : open
      return sameOr(known, { ...known, paidAt, failedAt, coverages: isOther ? known.coverages : covered(known, fact) })
    }
    case 'payment_failed':
      if (isSettled(known, fact.at) || known.failedAt.includes(fact.at)) return known
      return { ...known, failedAt: placed(known.failedAt, fact.at, (at) => [at]) }
    case 'refund':
      return withRefund(known, fact)
    default:
      return known
  }
}

/** An invoice that was paid, whenever, owes nothing; payments that name none pay for what failed before them. */
const isSettled = ({ invoiceId, paidAt }: InvoiceFacts, failedAt: Millis): boolean =>
  paidAt !== null && (invoiceId !== null || failedAt <= paidAt)

const covered = (known: InvoiceFacts, { periodStart, periodEnd: end, at }: BillingEvent): readonly Coverage[] =>
  mergeCoverage(known, { end, start: periodStart ?? at, at })

function mergeCoverage({ invoiceId, coverages }: InvoiceFacts, { end, start, at }: Coverage): readonly Coverage[] {
  const known = coverages.find((one) => one.end === end)
  if (!known) return placed(coverages, { end, start, at }, (one) => [one.end])
  const begins = invoiceId === null && end === null ? Math.max : Math.min
  const merged = sameOr(known, { end, start: begins(known.start, start), at: Math.max(known.at, at) })
  return merged === known ? coverages : placed(coverages, merged, (one) => [one.end])
}

/**
 * The invoices that pay for periods. An activation names the latest invoice, which may be one that pays for no period: its
 * coverage then counts as one without an invoice.
 */
export function selectPeriodInvoices(invoices: readonly InvoiceFacts[]): readonly InvoiceFacts[] {
  const others = invoices.filter(({ reason }) => reason === 'other')
  if (others.length === 0) return invoices
  const nameless = invoices.find(({ invoiceId }) => invoiceId === null) ?? createInvoice(null)
  const coverages = others
    .flatMap((one) => one.coverages)
    .reduce((known, coverage) => mergeCoverage({ ...nameless, coverages: known }, coverage), nameless.coverages)
  const ofPeriods = invoices.filter(({ reason, invoiceId }) => reason !== 'other' && invoiceId !== null)
  return [{ ...nameless, coverages }, ...ofPeriods]
}

function withRefund(known: InvoiceFacts, { amount, at, periodEnd }: BillingEvent): InvoiceFacts {
  const isKnown = known.refunds.some((one) => one.at === at && one.periodEnd === periodEnd)
  if (amount !== 'full' || isKnown) return known
  const refunds = placed(known.refunds, { at, periodEnd }, (one) => [one.at, one.periodEnd])
  return { ...known, refunds }
}

/** What things are ordered by, the first difference deciding; null comes before everything. */
type Rank = readonly (string | number | null)[]

export function compare(one: Rank, other: Rank): number {
  for (const [index, value] of one.entries()) {
    const against = other[index] ?? null
    if (value === against) continue
    return value === null || (against !== null && value < against) ? -1 : 1
  }
  return 0
}

/** Of what is known and what is told the one of the higher rank; the known one when they are equal. */
export const later = <T>(known: T | null, told: T | null, rankOf: (one: T) => Rank): T | null =>
  told !== null && (known === null || compare(rankOf(told), rankOf(known)) > 0) ? told : known

/** The list, in the order of its names, with the item in the place of the one that has its name. */
export function placed<T>(list: readonly T[], item: T, nameOf: (one: T) => Rank): readonly T[] {
  const name = nameOf(item)
  let [place, end] = [0, list.length]
  // By halves: a list of thousands would take long to go through for each fact.
  while (place < end) {
    const middle = (place + end) >> 1
    if (compare(nameOf(list[middle] as T), name) < 0) place = middle + 1
    else end = middle
  }
  const known = list[place]
  const isReplaced = known !== undefined && compare(nameOf(known), name) === 0
  return list.toSpliced(place, isReplaced ? 1 : 0, item)
}

/** The known value when no part of the next one differs. */
export const sameOr = <T extends object>(known: T, next: T): T =>
  (Object.keys(next) as (keyof T)[]).every((part) => known[part] === next[part]) ? known : next
