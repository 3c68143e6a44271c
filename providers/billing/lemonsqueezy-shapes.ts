/** Lemon Squeezy's objects, as far as they mean something to us, and what a subscription of theirs says. */
import { z } from 'zod'
import type { BillingEvent, ProviderAction } from '../../domain/billing-event.ts'
import { clampQuantity, storable, timeText } from './payload.ts'

const number = z.union([z.int(), storable(200)]).transform(String)

/** What each of their statuses means. */
const actions = {
  on_trial: 'activate',
  active: 'activate',
  past_due: 'payment_failed',
  unpaid: 'payment_failed',
  cancelled: 'cancelled',
  expired: 'downgrade',
  paused: 'downgrade',
} as const satisfies Readonly<Record<string, ProviderAction>>

export const LemonSqueezySubscription = z.object({
  id: number,
  attributes: z.object({
    variant_id: number,
    customer_id: number.nullish(),
    status: z.enum(Object.keys(actions) as [keyof typeof actions]),
    first_subscription_item: z.object({ quantity: z.int() }).nullish(),
    renews_at: timeText.nullish(),
    ends_at: timeText.nullish(),
    created_at: timeText,
    updated_at: timeText,
    test_mode: z.boolean().nullish(),
  }),
})

/** A webhook about a subscription, as far as it names a customer. */
export const LemonSqueezySubscriptionEvent = z.object({
  data: z.object({ type: z.literal('subscriptions'), id: number, attributes: z.object({ customer_id: number }) }),
})

export const LemonSqueezyCustomer = z.object({
  data: z.object({
    attributes: z.object({ email: z.string().nullish(), urls: z.object({ customer_portal: z.url().nullish() }) }),
  }),
})
/** Reasons of invoices that pay for a period; any other is for a change within one. */
const reasonsOfPeriods = ['initial', 'renewal']

export const invoiceReasonOf = (reason: string | null | undefined): 'period' | 'other' | null =>
  reason == null ? null : reasonsOfPeriods.includes(reason) ? 'period' : 'other'

export const LemonSqueezyInvoice = z.object({
  id: number,
  attributes: z.object({
    subscription_id: number,
    billing_reason: z.string().nullish(),
    status: z.string().nullish(),
    total: z.number().nullish(),
    refunded_amount: z.number().nullish(),
    updated_at: timeText,
  }),
})

/** Only an order that names a subscription says anything to us. */
export const LemonSqueezyOrder = z.object({
  attributes: LemonSqueezyInvoice.shape.attributes.omit({ subscription_id: true, billing_reason: true }).extend({
    subscription_id: number.nullish(),
  }),
})

export const LemonSqueezyCheckout = z.object({ data: z.object({ attributes: z.object({ url: z.url() }) }) })

export const LemonSqueezyPage = z.object({
  meta: z.object({ page: z.object({ currentPage: z.int(), lastPage: z.int(), total: z.int() }) }),
  data: z.array(LemonSqueezySubscription),
})

export interface LemonSqueezyVariants {
  readonly planVariantId: string
  readonly addonVariantId: string
}

/** By what was bought. Never by what came along with the purchase: people can change that in the checkout's address. */
export const kindOfVariant = (variantId: string, variants: LemonSqueezyVariants): 'plan' | 'addon' | undefined =>
  variantId === variants.planVariantId ? 'plan' : variantId === variants.addonVariantId ? 'addon' : undefined

type Snapshot = Pick<
  BillingEvent,
  'action' | 'provider' | 'subscriptionId' | 'kind' | 'at' | 'quantity' | 'periodStart' | 'periodEnd'
>

/** What the subscription says at the time of its last change. @param named what is known to have happened, else its status tells. */
export function snapshotOf(
  { id, attributes }: z.infer<typeof LemonSqueezySubscription>,
  kind: 'plan' | 'addon',
  named?: ProviderAction,
): Snapshot {
  const { status, renews_at, ends_at, created_at, updated_at: at, first_subscription_item: item } = attributes
  const action = named ?? actions[status]
  const bare = { provider: 'lemonsqueezy', subscriptionId: id, kind, action, at } as const
  const quantity = kind === 'plan' ? null : item ? clampQuantity(item.quantity) : action === 'activate' ? 1 : null
  // Of one that is past due, `renews_at` is the next try to collect the money.
  const periodEnd = (action === 'cancelled' ? ends_at : action === 'activate' ? renews_at : null) ?? null
  const periodStart = periodEnd === null ? null : startOfPeriod(periodEnd, created_at, at)
  return { ...bare, quantity, periodStart, periodEnd }
}

/**
 * They tell the end of a period only. What we sell is paid by the month; a start that would lie ahead says that this one
 * is not, and then nobody knows it.
 */
function startOfPeriod(endsAt: number, createdAt: number, at: number): number | null {
  const end = new Date(endsAt)
  const start = new Date(endsAt)
  start.setUTCMonth(end.getUTCMonth() - 1)
  if (start.getUTCDate() !== end.getUTCDate()) start.setUTCDate(0)
  const from = Math.max(start.getTime(), createdAt)
  return from <= at && from < endsAt ? from : null
}
