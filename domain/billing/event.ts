/**
 * The normalised form of one billing event, whether a billing provider or an operator caused it. Adapters produce it,
 * the inbox stores it and the subscription workflow applies it. Plain JSON; times are milliseconds since 1970.
 */
import type { SubscriptionKind } from './plans.ts'

/** The seven actions that providers' events are mapped to. */
export const providerActions = [
  'activate',
  'update_addon',
  'payment_recovery',
  'payment_failed',
  'cancelled',
  'downgrade',
  'refund',
] as const

export type ProviderAction = (typeof providerActions)[number]

/** An operator's actions: `grant` gives a complimentary plan, `withdraw` ends it. */
export const operatorActions = ['grant', 'withdraw'] as const

export const billingEventActions = [...providerActions, ...operatorActions] as const

export type BillingEventAction = (typeof billingEventActions)[number]

export const billingSources = ['sandbox', 'lemonsqueezy', 'stripe', 'operator'] as const

export type BillingSource = (typeof billingSources)[number]

/** `none`: what was refunded came back, because the refund failed or the dispute was won. */
export const refundAmounts = ['full', 'partial', 'none'] as const

export type RefundAmount = (typeof refundAmounts)[number]

export interface BillingEvent {
  /** Identical in every repetition of the event, and unique among the events of its provider. */
  readonly key: string
  readonly action: BillingEventAction
  readonly provider: BillingSource
  /** The provider's id of the subscription; `grant` for an operator's events. */
  readonly subscriptionId: string
  readonly kind: SubscriptionKind
  /** When it happened, by the provider's clock. */
  readonly at: number
  /** Number of add-ons, 0 to 3; null when the event does not state it. */
  readonly quantity: number | null
  readonly invoiceId: string | null
  /** Of a refund: how much of the invoice is refunded now. */
  readonly amount: RefundAmount | null
  /**
   * `period`: the invoice is for a period of the subscription. `other`: it is for something else, such as a proration
   * or a manual fee. Null or absent when the provider does not state it.
   */
  readonly invoiceReason?: 'period' | 'other' | null
  /**
   * Of a plan: the number of add-ons in the same subscription, 0 to 3. Absent for none, and when the event does not
   * state it.
   */
  readonly addons?: number | null
  /**
   * Stated by the events that state the status of a subscription. `paused`: the provider does not collect payments for
   * now, and the service goes on. Absent in events of payments, and in those that an earlier release stored.
   */
  readonly collection?: 'running' | 'paused' | null
  readonly periodStart: number | null
  /** Of a grant: when it ends, or null when it has no end. */
  readonly periodEnd: number | null
}

/**
 * The status of an event in the inbox. `unresolved`: a request to the provider is necessary first. `pending`: the
 * subscription workflow has not applied it. `applied`. `ignored`: it does not concern this service. `parked`: it has no
 * account or cannot be used. `dead`: it was parked for too long. `dismissed`: an operator set it aside.
 */
export const billingEventStatuses = [
  'unresolved',
  'pending',
  'applied',
  'ignored',
  'parked',
  'dead',
  'dismissed',
] as const

export type BillingEventStatus = (typeof billingEventStatuses)[number]
