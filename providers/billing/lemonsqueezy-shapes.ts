/**
 * The shapes of Lemon Squeezy's objects, limited to the fields in use, and the billing event that a subscription
 * amounts to.
 */
import { z } from 'zod'
import type { BillingEvent, ProviderAction } from '../../domain/billing/event.ts'
import type { SubscriptionKind } from '../../domain/billing/plans.ts'
import { clampAddons, rfc3339Time, storableText } from './payload.ts'

/** Ids are numbers or strings; they are converted to strings. */
const id = z.union([z.int(), storableText(200)]).transform(String)

const actionByStatus = {
  on_trial: 'activate',
  active: 'activate',
  past_due: 'payment_failed',
  unpaid: 'payment_failed',
  cancelled: 'cancelled',
  expired: 'downgrade',
  // Unless the pause keeps the service.
  paused: 'downgrade',
} as const satisfies Readonly<Record<string, ProviderAction>>

export const LemonSqueezySubscription = z.object({
  id,
  attributes: z.object({
    variant_id: id,
    customer_id: id.nullish(),
    status: z.enum(Object.keys(actionByStatus) as [keyof typeof actionByStatus]),
    /** `void`: the service stops with the payments. `free`: it goes on. */
    pause: z.object({ mode: z.string().nullish() }).nullish(),
    first_subscription_item: z.object({ quantity: z.int() }).nullish(),
    renews_at: rfc3339Time.nullish(),
    ends_at: rfc3339Time.nullish(),
    created_at: rfc3339Time,
    updated_at: rfc3339Time,
    test_mode: z.boolean().nullish(),
  }),
})

/** A webhook about a subscription that names a customer. */
export const LemonSqueezySubscriptionEvent = z.object({
  data: z.object({ type: z.literal('subscriptions'), id, attributes: z.object({ customer_id: id }) }),
})

export const LemonSqueezyCustomer = z.object({
  data: z.object({
    attributes: z.object({ email: z.string().nullish(), urls: z.object({ customer_portal: z.url().nullish() }) }),
  }),
})

/** The reasons of invoices for a period; invoices with other reasons are for changes within one. */
const periodReasons = ['initial', 'renewal']

export const parseInvoiceReason = (reason: string | null | undefined): 'period' | 'other' | null =>
  reason == null ? null : periodReasons.includes(reason) ? 'period' : 'other'

export const LemonSqueezyInvoice = z.object({
  id,
  attributes: z.object({
    subscription_id: id,
    billing_reason: z.string().nullish(),
    status: z.string().nullish(),
    total: z.number().nullish(),
    refunded_amount: z.number().nullish(),
    updated_at: rfc3339Time,
  }),
})

/** Orders without a subscription are ignored. */
export const LemonSqueezyOrder = z.object({
  attributes: LemonSqueezyInvoice.shape.attributes.omit({ subscription_id: true, billing_reason: true }).extend({
    subscription_id: id.nullish(),
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

/**
 * The kind of a subscription; undefined for other products of the store. The variant decides, not the custom data of
 * the purchase: buyers can change custom data in the checkout URL.
 */
export const kindFromVariant = (variantId: string, variants: LemonSqueezyVariants): SubscriptionKind | undefined =>
  variantId === variants.planVariantId ? 'plan' : variantId === variants.addonVariantId ? 'addon' : undefined

type SubscriptionFields = Pick<
  BillingEvent,
  'action' | 'subscriptionId' | 'kind' | 'at' | 'quantity' | 'collection' | 'periodStart' | 'periodEnd'
>

/**
 * The event that leads to the subscription's state at its last change.
 * @param namedAction overrides the action by its status.
 */
export function eventFieldsFrom(
  { id: subscriptionId, attributes }: z.infer<typeof LemonSqueezySubscription>,
  kind: SubscriptionKind,
  namedAction?: ProviderAction,
): SubscriptionFields {
  const { status, pause, renews_at, ends_at, created_at, updated_at: at, first_subscription_item: item } = attributes
  const isFree = status === 'paused' && pause?.mode === 'free'
  const action = namedAction ?? (isFree ? 'activate' : actionByStatus[status])
  const quantity = kind === 'plan' ? null : item ? clampAddons(item.quantity) : action === 'activate' ? 1 : null
  // If the subscription is past due, `renews_at` is the time of the next attempt to collect the payment.
  const periodEnd = (action === 'cancelled' ? ends_at : action === 'activate' ? renews_at : null) ?? null
  const periodStart = periodEnd === null ? null : inferPeriodStart(periodEnd, created_at, at)
  const collection = isFree ? 'paused' : 'running'
  return { subscriptionId, kind, action, at, quantity, collection, periodStart, periodEnd }
}

/**
 * Lemon Squeezy states only the end of a period, which is monthly. Returns null if that start were later than `at`:
 * then the period is not a month, and its start is unknown.
 */
function inferPeriodStart(periodEnd: number, createdAt: number, at: number): number | null {
  const end = new Date(periodEnd)
  const monthBefore = new Date(periodEnd)
  monthBefore.setUTCMonth(end.getUTCMonth() - 1)
  if (monthBefore.getUTCDate() !== end.getUTCDate()) monthBefore.setUTCDate(0)
  const start = Math.max(monthBefore.getTime(), createdAt)
  return start <= at && start < periodEnd ? start : null
}
