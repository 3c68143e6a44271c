/** What a subscription gives: until when it is paid for, and whether it is open at a time. */
import type { Millis } from '../millis.ts'
import { isRefunded } from './paid-periods.ts'
import type { Subscription } from './subscription.ts'

export interface Terms {
  /** False when it never began, was ended, or was refunded: then it has no deadlines. */
  readonly isPaidFor: boolean
  /** Past due: when the payment grace period ends. */
  readonly graceEndsAt: Millis | null
  /** Cancelled: when access ends. */
  readonly endsAt: Millis | null
}

export type Access =
  | { readonly isOpen: true; readonly status: 'active' | 'past_due' | 'cancelled' }
  /** After the payment grace period a subscription gives nothing, and is still past due. */
  | { readonly isOpen: false; readonly status: 'past_due' | 'ended' }

/** An accepted payment of the account that only its provider can match to a subscription. */
export interface UnresolvedPayment {
  readonly acceptedAt: Millis
  readonly holdsUntil: Millis
}

export function termsOf(
  subscription: Subscription,
  graceSeconds: number,
  unresolved: readonly UnresolvedPayment[] = [],
): Terms {
  const { status, paidPeriod, failures, isCollectionPaused } = subscription
  const hasEnded = status === null ? paidPeriod === null : status.value === 'ended'
  if (hasEnded || isRefunded(subscription)) return notPaidFor
  const [failedAt] = failures.values()
  return {
    isPaidFor: true,
    graceEndsAt:
      failedAt === undefined || isCollectionPaused ? null : extendedGrace(failedAt + graceSeconds * 1000, unresolved),
    endsAt: status?.value === 'cancelled' ? cancelledUntil(subscription, status.at) : null,
  }
}

export const notPaidFor: Terms = { isPaidFor: false, graceEndsAt: null, endsAt: null }

/**
 * The end of the payment grace period, put off by payments that were accepted before it: they may turn out to settle
 * the failure, or to pay for another subscription that gives the same.
 */
const extendedGrace = (endsAt: Millis, unresolved: readonly UnresolvedPayment[]): Millis =>
  unresolved
    .filter(({ acceptedAt }) => acceptedAt < endsAt)
    .reduce((latest, { holdsUntil }) => Math.max(latest, holdsUntil), endsAt)

export function accessAt(terms: Terms, now: Millis): Access {
  const { isPaidFor, graceEndsAt, endsAt } = terms
  if (!isPaidFor || (endsAt !== null && now >= endsAt)) return { isOpen: false, status: 'ended' }
  if (graceEndsAt !== null) return { isOpen: now < graceEndsAt, status: 'past_due' }
  return { isOpen: true, status: endsAt === null ? 'active' : 'cancelled' }
}

/** When access ends without a further event. */
export const lastsUntil = ({ graceEndsAt, endsAt }: Terms): Millis | null =>
  graceEndsAt !== null && endsAt !== null ? Math.min(graceEndsAt, endsAt) : (graceEndsAt ?? endsAt)

/**
 * The end of the period, or else the next monthly anniversary of the activation. A subscription that is not known to
 * have begun ends at once: otherwise a lost activation would be worth a free month.
 */
function cancelledUntil({ period, activatedFrom, quantity, paidPeriod }: Subscription, cancelledAt: Millis): Millis {
  if (period !== null) return period.end
  const hasBegun = paidPeriod !== null || quantity !== null
  return hasBegun ? nextAnniversary(activatedFrom ?? cancelledAt, cancelledAt) : cancelledAt
}

/**
 * The first of the anchor's monthly anniversaries (UTC, at the latest the month's last day) that comes after the time.
 */
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
