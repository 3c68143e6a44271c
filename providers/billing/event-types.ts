/** The event types of the providers that are known here: what is done with them, and which are ignored on purpose. */
import type { BillingProviderName } from './provider.ts'

/** Types with an effect. Also these are ignored when they are about another product. */
const handledTypes: Readonly<Record<BillingProviderName, readonly string[]>> = {
  sandbox: [],
  lemonsqueezy: [
    'subscription_created',
    'subscription_updated',
    'subscription_resumed',
    'subscription_unpaused',
    'subscription_paused',
    'subscription_plan_changed',
    'subscription_cancelled',
    'subscription_expired',
    'subscription_payment_success',
    'subscription_payment_recovered',
    'subscription_payment_failed',
    'subscription_payment_refunded',
    'order_refunded',
  ],
  stripe: [
    'customer.subscription.created',
    'customer.subscription.updated',
    'customer.subscription.paused',
    'customer.subscription.resumed',
    'customer.subscription.deleted',
    'invoice.paid',
    'invoice.payment_failed',
    'charge.refunded',
    'charge.refund.updated',
    'refund.failed',
    'refund.updated',
    'charge.dispute.created',
    'charge.dispute.funds_withdrawn',
    'charge.dispute.funds_reinstated',
    'charge.dispute.closed',
  ],
}

/** Types that are ignored on purpose. docs/billing.md gives the reasons. */
export const ignoredTypes: Readonly<Record<BillingProviderName, readonly string[]>> = {
  sandbox: [],
  lemonsqueezy: [
    'order_created',
    'license_key_created',
    'license_key_updated',
    'affiliate_activated',
    'customer_updated',
  ],
  stripe: [
    'checkout.session.completed',
    'checkout.session.expired',
    'customer.created',
    'customer.updated',
    'customer.deleted',
    'customer.subscription.trial_will_end',
    'customer.subscription.pending_update_applied',
    'customer.subscription.pending_update_expired',
    'invoice.created',
    'invoice.updated',
    'invoice.finalized',
    'invoice.upcoming',
    'invoice.payment_succeeded',
    'invoice.payment_action_required',
    'invoice.overdue',
    'invoice.voided',
    'invoice.marked_uncollectible',
    'charge.succeeded',
    'charge.failed',
    'charge.updated',
    'charge.dispute.updated',
    'refund.created',
    'payment_intent.succeeded',
    'payment_intent.payment_failed',
  ],
}

/**
 * The type as the label of a metric: `other` for unknown ones, since a provider has hundreds and anyone with the secret
 * more.
 */
export const countedType = (provider: BillingProviderName, type: string): string =>
  handledTypes[provider].includes(type) || ignoredTypes[provider].includes(type) ? type : 'other'
