/**
 * One thing that a billing provider, or an operator, told about somebody's subscription: what all layers between the webhook
 * and the subscription actor hand on. Plain JSON; times in milliseconds since 1970.
 */

/** What providers tell (specification, "Events"). */
export const billingActions = [
  'activate',
  'update_addon',
  'payment_recovery',
  'payment_failed',
  'cancelled',
  'downgrade',
  'refund',
] as const

export type BillingAction = (typeof billingActions)[number]

/** `grant` and `withdraw` are an operator's: a complimentary plan, and its end. */
export type FactAction = BillingAction | 'grant' | 'withdraw'

export type BillingSource = 'sandbox' | 'lemonsqueezy' | 'stripe' | 'operator'

export interface BillingFact {
  /** The same in every repetition of the event, and in no other event of the provider. */
  readonly key: string
  readonly action: FactAction
  readonly provider: BillingSource
  /** The provider's name for the subscription; `grant` for what operators give. */
  readonly subscriptionId: string
  readonly kind: 'plan' | 'addon'
  /** When it happened, by the provider's clock. */
  readonly at: number
  /** Add-ons, 0 to 3; null when it says nothing of them. */
  readonly quantity: number | null
  readonly invoiceId: string | null
  /** Of a refund. */
  readonly amount: 'full' | 'partial' | null
  /**
   * What the invoice was made for: a `period` of the subscription, or anything `other`, such as a proration or a manual fee;
   * null, or absent, when the provider does not say.
   */
  readonly invoiceReason?: 'period' | 'other' | null
  readonly periodStart: number | null
  /** For a grant: when it ends; null for never. */
  readonly periodEnd: number | null
}
