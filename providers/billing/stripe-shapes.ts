/**
 * Stripe's objects in the version of its api that the library asks for, as far as they mean something to us. Webhooks come
 * in the version of their endpoint: what is older than this (before `basil`) is not as documented here.
 */
import { z } from 'zod'
import type { BillingEvent, ProviderAction } from '../../domain/billing-event.ts'
import { clampQuantity, storable, timeSeconds, userRefOf } from './payload.ts'

const id = storable(200)
/** Their id, where they may also have put the whole object. */
const reference = z.union([id, z.object({ id }).transform((object) => object.id)])
const metadata = z.object({ user_id: z.unknown(), kind: z.unknown() }).partial().nullish()
const period = z.object({ start: timeSeconds, end: timeSeconds })

export const StripeSubscription = z.object({
  id,
  status: z.string(),
  metadata,
  cancel_at: timeSeconds.nullish(),
  cancel_at_period_end: z.boolean().nullish(),
  canceled_at: timeSeconds.nullish(),
  customer: reference.nullish(),
  latest_invoice: reference.nullish(),
  items: z.object({
    data: z
      .array(
        z.object({
          quantity: z.int().nullish(),
          price: z.object({ id }),
          current_period_start: timeSeconds,
          current_period_end: timeSeconds,
        }),
      )
      .min(1),
  }),
})

/** An event about a subscription, as far as it names a customer. */
export const StripeSubscriptionEvent = z.object({
  type: z.string().startsWith('customer.subscription.'),
  data: z.object({ object: z.object({ id, customer: reference }) }),
})

/** The same as it is in their list, where we ask for its invoice too. */
export const StripeListedSubscription = StripeSubscription.extend({
  livemode: z.boolean().nullish(),
  latest_invoice: z
    .object({
      id,
      status: z.string().nullish(),
      billing_reason: z.string().nullish(),
      created: timeSeconds,
      status_transitions: z.object({ finalized_at: timeSeconds.nullish() }).nullish(),
    })
    .nullish(),
})

/** Reasons of invoices that pay for a period; of any other reason there are prorations, fees by hand and the like. */
const reasonsOfPeriods = ['subscription_create', 'subscription_cycle']

export const invoiceReasonOf = (reason: string | null | undefined): 'period' | 'other' | null =>
  reason == null ? null : reasonsOfPeriods.includes(reason) ? 'period' : 'other'

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
export const StripeDispute = z.object({ payment_intent: reference.nullish(), status: z.string() })

export interface StripePrices {
  readonly planPriceId: string
  readonly addonPriceId: string
}

type Metadata = z.infer<typeof metadata>

/** By the price, or else by the mark that our checkout put there, where only we can write. */
export function kindOfPrices(
  prices: readonly (string | undefined)[],
  marks: Metadata,
  { planPriceId, addonPriceId }: StripePrices,
): 'plan' | 'addon' | undefined {
  if (prices.includes(planPriceId)) return 'plan'
  if (prices.includes(addonPriceId)) return 'addon'
  return marks?.kind === 'plan' || marks?.kind === 'addon' ? marks.kind : undefined
}

export const userOf = (marks: Metadata): string | null => userRefOf(marks?.user_id)

type Snapshot = Pick<BillingEvent, 'action' | 'quantity' | 'invoiceId' | 'periodStart' | 'periodEnd'>

/** What a subscription says by its status; 'ignored' before it was paid for, undefined for a status that is not known. */
export function stripeActionOf({
  status,
  cancel_at,
  cancel_at_period_end,
}: Pick<z.infer<typeof StripeSubscription>, 'status' | 'cancel_at' | 'cancel_at_period_end'>):
  | ProviderAction
  | 'ignored'
  | undefined {
  const endsAnyway = cancel_at_period_end === true || cancel_at != null
  switch (status) {
    case 'incomplete':
      return 'ignored'
    case 'canceled':
    case 'incomplete_expired':
    case 'paused':
      return 'downgrade'
    case 'past_due':
    case 'unpaid':
      // That it is not paid, its invoice tells as well; that it was cancelled, nothing else does.
      return endsAnyway ? 'cancelled' : 'payment_failed'
    case 'active':
    case 'trialing':
      return endsAnyway ? 'cancelled' : 'activate'
    default:
      return undefined
  }
}

/** What goes with the action. Our checkout makes a subscription of each kind; of one that holds more the other items are not ours. */
export function stripeSnapshotOf(
  { items, cancel_at, latest_invoice: invoice }: Omit<z.infer<typeof StripeSubscription>, 'status'>,
  kind: 'plan' | 'addon',
  action: ProviderAction,
  { planPriceId, addonPriceId }: StripePrices,
): Snapshot {
  const priceId = kind === 'plan' ? planPriceId : addonPriceId
  const item = items.data.find(({ price }) => price.id === priceId) ?? items.data[0]
  const quantity = kind === 'addon' && action !== 'downgrade' ? clampQuantity(item?.quantity ?? 1) : null
  const hasPeriod = action === 'activate' || action === 'cancelled'
  return {
    action,
    quantity,
    invoiceId: action === 'activate' ? (invoice ?? null) : null,
    periodStart: hasPeriod ? (item?.current_period_start ?? null) : null,
    periodEnd: hasPeriod ? ((action === 'cancelled' ? cancel_at : null) ?? item?.current_period_end ?? null) : null,
  }
}
