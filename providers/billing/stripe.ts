/** Stripe. Its library pins the version of the api that it asks for; its own verifier is not used (see signatures.ts). */
import Stripe from 'stripe'
import { z } from 'zod'
import { asDocumented, callMillisMax, within } from './asking.ts'
import { listed, readJson } from './payload.ts'
import {
  type BillingProvider,
  BillingProviderError,
  type CheckoutRequest,
  type ListedSubscription,
} from './provider.ts'
import { isStripeWebhook } from './signatures.ts'
import { parseStripeEvent, type StripeAnswers } from './stripe-events.ts'
import {
  invoiceReasonOf,
  kindOfPrices,
  StripeInvoice,
  StripeListedSubscription,
  type StripePrices,
  StripeSubscription,
  StripeSubscriptionEvent,
  stripeActionOf,
  stripeSnapshotOf,
  userOf,
} from './stripe-shapes.ts'

interface Needs extends StripePrices {
  readonly apiKey: string
  /** Stripe's own unless given. */
  readonly apiUrl?: string | undefined
  readonly secrets: readonly string[]
  readonly acceptsTestMode: boolean
  /** What we know of a subscription, before Stripe is asked. */
  readonly kindOf: (subscriptionId: string) => Promise<'plan' | 'addon' | undefined>
  /** How long one call may take, in milliseconds. */
  readonly callMillisMax?: number
}

type Ask = <Shape extends z.ZodType>(
  shape: Shape,
  call: (stripe: Stripe) => Promise<unknown>,
) => Promise<z.infer<Shape>>

const says = 'stripe'
const pageSize = 100
/** A million subscriptions: beyond it the list has no end. */
const pagesMax = 10_000

const InvoicePayments = z.object({ data: z.array(z.object({ invoice: StripeInvoice })) })
const Session = z.object({ url: z.url() })
const Page = z.object({ data: z.array(StripeListedSubscription), has_more: z.boolean() })

export function createStripe(needs: Needs): BillingProvider {
  const millisMax = needs.callMillisMax ?? callMillisMax
  const stripe = new Stripe(needs.apiKey, {
    ...placeOf(needs.apiUrl),
    timeout: millisMax,
    maxNetworkRetries: 0,
    telemetry: false,
  })
  const ask: Ask = async (shape, call) =>
    asDocumented(says, shape, await within(says, millisMax, () => call(stripe), failureOf))

  const answers: StripeAnswers = {
    subscription: (id) => ask(StripeSubscription, (it) => it.subscriptions.retrieve(id)),
    invoiceOf: async (paymentIntentId) => {
      const payment = { type: 'payment_intent', payment_intent: paymentIntentId } as const
      const params = { payment, limit: 1, expand: ['data.invoice'] }
      const { data } = await ask(InvoicePayments, (it) => it.invoicePayments.list(params))
      return data[0]?.invoice
    },
  }

  return {
    name: 'stripe',
    verify: (delivery, now) => isStripeWebhook(delivery, needs.secrets, now),
    parse: (delivery) => parseStripeEvent(delivery, { ...needs, answers: null }),
    resolve: (delivery) => parseStripeEvent(delivery, { ...needs, answers }),
    customerIn: ({ body }) => {
      const { data: event } = StripeSubscriptionEvent.safeParse(readJson(body))
      return event && { subscriptionId: event.data.object.id, customerId: event.data.object.customer }
    },
    checkout: async (request) => (await ask(Session, (it) => openCheckout(it, needs, request))).url,
    portal: async ({ customerId: customer, returnUrl: return_url }) =>
      customer === undefined
        ? undefined
        : (await ask(Session, (it) => it.billingPortal.sessions.create({ customer, return_url }))).url,
    cancel: async (id) => {
      await ask(StripeSubscription, (it) => cancelSubscription(it, id))
    },
    list: () => listAll(needs, ask),
  }
}

/** A customer who was deleted in the dashboard, or is of the other mode, is one without a history here. */
function openCheckout(stripe: Stripe, prices: StripePrices, request: CheckoutRequest) {
  const open = (asked: CheckoutRequest) => stripe.checkout.sessions.create(checkoutOf(prices, asked))
  return open(request).catch((error: unknown) => {
    if (request.customerId === undefined || !isMissing(error, 'customer')) throw error
    return open({ ...request, customerId: undefined })
  })
}

/**
 * Looks first, because Stripe refuses to cancel twice. One with an outstanding payment is ended at once: only then does
 * Stripe stop trying to collect it.
 */
async function cancelSubscription(stripe: Stripe, id: string): Promise<Stripe.Subscription> {
  const found = await stripe.subscriptions.retrieve(id)
  if (found.status === 'canceled' || found.status === 'incomplete_expired') return found
  if (found.status !== 'active' && found.status !== 'trialing')
    return stripe.subscriptions.cancel(id).catch((error: unknown) => {
      // Another request ended it after the look.
      if (isMissing(error, 'id')) return found
      throw error
    })
  if (found.cancel_at_period_end || found.cancel_at !== null) return found
  return stripe.subscriptions.update(id, { cancel_at_period_end: true })
}

const isMissing = (error: unknown, param: 'customer' | 'id'): boolean =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing' && error.param === param

function placeOf(apiUrl: string | undefined): Stripe.StripeConfig {
  if (apiUrl === undefined) return {}
  const { protocol, hostname, port } = new URL(apiUrl)
  return { protocol: protocol === 'http:' ? 'http' : 'https', host: hostname, ...(port !== '' && { port }) }
}

function failureOf(error: unknown): string {
  if (!(error instanceof Stripe.errors.StripeError) || error.statusCode === undefined) return 'could not be reached'
  return `answered ${error.statusCode}${error.code && /^\w{1,64}$/.test(error.code) ? ` (${error.code})` : ''}`
}

const checkoutOf = (
  { planPriceId, addonPriceId }: StripePrices,
  { userId, email, kind, quantity, returnUrl, cancelUrl, customerId }: CheckoutRequest,
): Stripe.Checkout.SessionCreateParams => ({
  mode: 'subscription',
  line_items: [{ price: kind === 'plan' ? planPriceId : addonPriceId, quantity: kind === 'plan' ? 1 : quantity }],
  client_reference_id: userId,
  // Stripe takes one of the two.
  ...(customerId !== undefined ? { customer: customerId } : email !== null && { customer_email: email }),
  subscription_data: { metadata: { user_id: userId, kind } },
  success_url: returnUrl,
  cancel_url: cancelUrl,
})

/** All pages of one list. They don't number them, so only a page that brings nothing new says that something is wrong. */
async function listAll(needs: Needs, ask: Ask): Promise<ListedSubscription[]> {
  // Their subscriptions don't tell when they last changed. This is how they stand now, in whole seconds as all their times.
  const at = Math.floor(Date.now() / 1000) * 1000
  const found = new Map<string, ListedSubscription[]>()
  for (let count = 1, after: string | undefined; count <= pagesMax; count += 1) {
    const params = { status: 'all', limit: pageSize, expand: ['data.latest_invoice'] } as const
    const { data, has_more } = await ask(Page, (it) =>
      it.subscriptions.list({ ...params, expand: [...params.expand], ...(after && { starting_after: after }) }),
    )
    const known = found.size
    for (const one of data) found.set(one.id, listedOf(one, needs, at))
    if (found.size !== known + data.length || (has_more && data.length === 0)) break
    if (!has_more) return [...found.values()].flat()
    after = data.at(-1)?.id
  }
  throw new BillingProviderError(`${says} listed pages that don't fit together`)
}

function listedOf(
  { latest_invoice: invoice, ...subscription }: z.infer<typeof StripeListedSubscription>,
  { acceptsTestMode, ...prices }: Needs,
  now: number,
): ListedSubscription[] {
  const { id: subscriptionId, items, metadata, livemode } = subscription
  if (livemode === false && !acceptsTestMode) return []
  const kind = kindOfPrices(
    items.data.map(({ price }) => price.id),
    metadata,
    prices,
  )
  const action = stripeActionOf(subscription)
  if (!kind || !action || action === 'ignored') return []
  const told = stripeSnapshotOf({ ...subscription, latest_invoice: invoice?.id }, kind, action, prices)
  const failed = action === 'payment_failed' ? invoice : undefined
  const named = told.invoiceId ?? (failed?.status === 'open' ? failed.id : null)
  const entry = listed(userOf(metadata), {
    ...told,
    provider: 'stripe',
    subscriptionId,
    kind,
    // The grace counts from when the money was asked for, not from when we learned that it did not come.
    at: failed?.status_transitions?.finalized_at ?? failed?.created ?? now,
    ...(named !== null && { invoiceId: named, invoiceReason: invoiceReasonOf(invoice?.billing_reason) }),
  })
  return [{ ...entry, customerId: subscription.customer ?? undefined }]
}
