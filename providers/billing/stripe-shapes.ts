/**
 * The shapes of Stripe's objects, limited to the fields in use, and the billing event that a subscription amounts to.
 * The shapes are those of the API version that the library requests. Webhooks have the API version of their endpoint:
 * payloads of versions before `basil` do not match.
 */
import { z } from 'zod'
import type { BillingEvent, ProviderAction } from '../../domain/billing/event.ts'
import type { SubscriptionKind } from '../../domain/billing/plans.ts'
import { clampAddons, parseUserRef, storableText, unixTime } from './payload.ts'

const id = storableText(200)
/** The id of an object, or the expanded object. */
const reference = z.union([id, z.object({ id }).transform((object) => object.id)])
const metadata = z.object({ user_id: z.unknown(), kind: z.unknown() }).partial().nullish()
const period = z.object({ start: unixTime, end: unixTime })

export const StripeSubscription = z.object({
  id,
  status: z.string(),
  metadata,
  cancel_at: unixTime.nullish(),
  cancel_at_period_end: z.boolean().nullish(),
  canceled_at: unixTime.nullish(),
  /**
   * Present while Stripe does not collect payments. The customer keeps the service, whatever happens to the invoices.
   */
  pause_collection: z.object({}).nullish(),
  customer: reference.nullish(),
  latest_invoice: reference.nullish(),
  items: z.object({
    data: z
      .array(
        z.object({
          quantity: z.int().nullish(),
          price: z.object({ id }),
          current_period_start: unixTime,
          current_period_end: unixTime,
        }),
      )
      .min(1),
  }),
})

/** A webhook about a subscription that names a customer. */
export const StripeSubscriptionEvent = z.object({
  type: z.string().startsWith('customer.subscription.'),
  data: z.object({ object: z.object({ id, customer: reference }) }),
})

/** An entry of the list, which is requested with expanded invoices. */
export const StripeListedSubscription = StripeSubscription.extend({
  livemode: z.boolean().nullish(),
  latest_invoice: z
    .object({
      id,
      status: z.string().nullish(),
      billing_reason: z.string().nullish(),
      created: unixTime,
      status_transitions: z.object({ finalized_at: unixTime.nullish() }).nullish(),
    })
    .nullish(),
})

/** The reasons of invoices for a period; invoices with other reasons are prorations, manual fees and the like. */
const periodReasons = ['subscription_create', 'subscription_cycle']

export const parseInvoiceReason = (reason: string | null | undefined): 'period' | 'other' | null =>
  reason == null ? null : periodReasons.includes(reason) ? 'period' : 'other'

export const StripeInvoice = z.object({
  id,
  billing_reason: z.string().nullish(),
  parent: z.object({ subscription_details: z.object({ subscription: reference, metadata }).nullish() }).nullable(),
  lines: z.object({
    data: z.array(
      z.object({
        period,
        pricing: z.object({ price_details: z.object({ price: reference }).nullish() }).nullish(),
        parent: z
          .object({ subscription_item_details: z.object({ proration: z.boolean().nullish() }).nullish() })
          .nullish(),
      }),
    ),
  }),
})

export const StripeCharge = z.object({ payment_intent: reference.nullish(), refunded: z.boolean() })
export const StripeRefund = z.object({ payment_intent: reference.nullish(), status: z.string().nullish() })
export const StripeDispute = z.object({ payment_intent: reference.nullish(), status: z.string() })

export interface StripePrices {
  readonly planPriceId: string
  readonly addonPriceId: string
}

type Metadata = z.infer<typeof metadata>

/**
 * The kind by price, or else by the metadata that our checkout writes and that only we can change; undefined for other
 * products.
 */
export function kindFromPrices(
  prices: readonly (string | undefined)[],
  metadata: Metadata,
  { planPriceId, addonPriceId }: StripePrices,
): SubscriptionKind | undefined {
  if (prices.includes(planPriceId)) return 'plan'
  if (prices.includes(addonPriceId)) return 'addon'
  return metadata?.kind === 'plan' || metadata?.kind === 'addon' ? metadata.kind : undefined
}

export const userRefFrom = (metadata: Metadata): string | null => parseUserRef(metadata?.user_id)

/**
 * The action that a subscription's status amounts to; `ignored` before the first payment, undefined for an unknown
 * status.
 */
export function stripeActionFrom({
  status,
  cancel_at,
  cancel_at_period_end,
  pause_collection,
}: Pick<z.infer<typeof StripeSubscription>, 'status' | 'cancel_at' | 'cancel_at_period_end' | 'pause_collection'>):
  | ProviderAction
  | 'ignored'
  | undefined {
  const isCancelled = cancel_at_period_end === true || cancel_at != null
  switch (status) {
    case 'incomplete':
      return 'ignored'
    case 'canceled':
    case 'incomplete_expired':
    case 'paused':
      return 'downgrade'
    case 'past_due':
    case 'unpaid':
      // Invoice events report a failed payment too; only the subscription reports a cancellation.
      if (isCancelled) return 'cancelled'
      return pause_collection ? 'activate' : 'payment_failed'
    case 'active':
    case 'trialing':
      return isCancelled ? 'cancelled' : 'activate'
    default:
      return undefined
  }
}

type SubscriptionFields = Pick<
  BillingEvent,
  'action' | 'quantity' | 'addons' | 'invoiceId' | 'collection' | 'periodStart' | 'periodEnd'
>

/**
 * The event that leads to the subscription's state. Our checkout creates one item per subscription, but others may add
 * items: the add-ons of all items count, also beside the plan. Items at other prices are for other products.
 */
export function stripeEventFieldsFrom(
  subscription: Omit<z.infer<typeof StripeSubscription>, 'status'>,
  kind: SubscriptionKind,
  action: ProviderAction,
  { planPriceId, addonPriceId }: StripePrices,
): SubscriptionFields {
  const { items, cancel_at, pause_collection, latest_invoice: invoice } = subscription
  const priceId = kind === 'plan' ? planPriceId : addonPriceId
  const item = items.data.find(({ price }) => price.id === priceId) ?? items.data[0]
  const addonItems = items.data.filter(({ price }) => price.id === addonPriceId)
  const counted = kind === 'addon' && addonItems.length === 0 ? items.data.slice(0, 1) : addonItems
  const addons = clampAddons(counted.reduce((sum, { quantity }) => sum + (quantity ?? 1), 0))
  const isStated = action !== 'downgrade'
  const hasPeriod = action === 'activate' || action === 'cancelled'
  return {
    action,
    quantity: kind === 'addon' && isStated ? addons : null,
    ...(kind === 'plan' && isStated && addons > 0 && { addons }),
    collection: pause_collection ? 'paused' : 'running',
    invoiceId: action === 'activate' ? (invoice ?? null) : null,
    periodStart: hasPeriod ? (item?.current_period_start ?? null) : null,
    periodEnd: hasPeriod ? ((action === 'cancelled' ? cancel_at : null) ?? item?.current_period_end ?? null) : null,
  }
}
