/**
 * The adapter of Stripe. The library pins the API version of its requests; its webhook verifier is not used (see
 * signatures.ts).
 */
import Stripe from 'stripe'
import { z } from 'zod'
import { callMillisMax, callWithTimeout, parseResponse } from './api-calls.ts'
import { createListedSubscription, parseJson } from './payload.ts'
import {
  type BillingProvider,
  BillingProviderError,
  type CheckoutRequest,
  type FindKind,
  type ListedSubscription,
} from './provider.ts'
import { isStripeWebhook } from './signatures.ts'
import { parseStripeEvent, type StripeLookups } from './stripe-events.ts'
import { refundSubscription } from './stripe-refunds.ts'
import {
  kindFromPrices,
  parseInvoiceReason,
  StripeInvoice,
  StripeListedSubscription,
  type StripePrices,
  StripeSubscription,
  StripeSubscriptionEvent,
  stripeActionFrom,
  stripeEventFieldsFrom,
  userRefFrom,
} from './stripe-shapes.ts'

interface Deps extends StripePrices {
  readonly apiKey: string
  /** Stripe's own URL by default. */
  readonly apiUrl?: string | undefined
  readonly secrets: readonly string[]
  readonly acceptsTestMode: boolean
  readonly findKind: FindKind
  /** The timeout of one call. */
  readonly callMillisMax?: number
}

type Call = <Shape extends z.ZodType>(
  shape: Shape,
  call: (stripe: Stripe) => Promise<unknown>,
) => Promise<z.infer<Shape>>

const providerName = 'stripe'
const pageSize = 100
/** A million subscriptions. */
const pagesMax = 10_000

const InvoicePayments = z.object({ data: z.array(z.object({ invoice: StripeInvoice })) })
const Session = z.object({ url: z.url() })
const Price = z.object({ id: z.string() })
const Page = z.object({ data: z.array(StripeListedSubscription), has_more: z.boolean() })

export function createStripe(deps: Deps): BillingProvider {
  const millisMax = deps.callMillisMax ?? callMillisMax
  const stripe = new Stripe(deps.apiKey, {
    ...parseApiUrl(deps.apiUrl),
    timeout: millisMax,
    maxNetworkRetries: 0,
    telemetry: false,
  })
  const callApi: Call = async (shape, call) =>
    parseResponse(
      providerName,
      shape,
      await callWithTimeout(providerName, millisMax, () => call(stripe), describeError),
    )

  const lookups: StripeLookups = {
    findSubscription: (id) => callApi(StripeSubscription, (api) => api.subscriptions.retrieve(id)),
    findInvoice: async (paymentIntentId) => {
      const payment = { type: 'payment_intent', payment_intent: paymentIntentId } as const
      const params = { payment, limit: 1, expand: ['data.invoice'] }
      const { data } = await callApi(InvoicePayments, (api) => api.invoicePayments.list(params))
      return data[0]?.invoice
    },
  }

  return {
    name: 'stripe',
    verify: (delivery, now) => isStripeWebhook(delivery, deps.secrets, now),
    parse: (delivery) => parseStripeEvent(delivery, { ...deps, lookups: null }),
    resolve: (delivery) => parseStripeEvent(delivery, { ...deps, lookups }),
    parseCustomer: ({ body }) => {
      const { data: event } = StripeSubscriptionEvent.safeParse(parseJson(body))
      return event && { subscriptionId: event.data.object.id, customerId: event.data.object.customer }
    },
    checkout: async (request) => (await callApi(Session, (api) => createCheckout(api, deps, request))).url,
    portal: async ({ customerId: customer, returnUrl: return_url }) =>
      customer === undefined
        ? undefined
        : (await callApi(Session, (api) => api.billingPortal.sessions.create({ customer, return_url }))).url,
    cancel: async (id) => {
      await callApi(StripeSubscription, (api) => cancelSubscription(api, id))
    },
    refund: (id) => refundSubscription(callApi, id),
    list: () => listAll(deps, callApi),
    check: async () => {
      for (const id of [deps.planPriceId, deps.addonPriceId]) await callApi(Price, (api) => api.prices.retrieve(id))
    },
  }
}

/** Creates a new customer if the stored one was deleted in the dashboard or belongs to the other mode. */
function createCheckout(stripe: Stripe, prices: StripePrices, request: CheckoutRequest) {
  const create = (checkout: CheckoutRequest) => stripe.checkout.sessions.create(checkoutParams(prices, checkout))
  return create(request).catch((error: unknown) => {
    if (request.customerId === undefined || !isMissing(error, 'customer')) throw error
    return create({ ...request, customerId: undefined })
  })
}

/**
 * Retrieves the subscription first, because Stripe refuses a second cancellation. One with an outstanding payment ends
 * at once: only then does Stripe stop its attempts to collect the payment.
 */
async function cancelSubscription(stripe: Stripe, id: string): Promise<Stripe.Subscription> {
  const subscription = await stripe.subscriptions.retrieve(id)
  const { status } = subscription
  if (status === 'canceled' || status === 'incomplete_expired') return subscription
  if (status !== 'active' && status !== 'trialing')
    return stripe.subscriptions.cancel(id).catch((error: unknown) => {
      // A concurrent request ended it.
      if (isMissing(error, 'id')) return subscription
      throw error
    })
  if (subscription.cancel_at_period_end || subscription.cancel_at !== null) return subscription
  return stripe.subscriptions.update(id, { cancel_at_period_end: true })
}

const isMissing = (error: unknown, param: 'customer' | 'id'): boolean =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing' && error.param === param

function parseApiUrl(apiUrl: string | undefined): Stripe.StripeConfig {
  if (apiUrl === undefined) return {}
  const { protocol, hostname, port } = new URL(apiUrl)
  return { protocol: protocol === 'http:' ? 'http' : 'https', host: hostname, ...(port !== '' && { port }) }
}

function describeError(error: unknown): string {
  if (!(error instanceof Stripe.errors.StripeError) || error.statusCode === undefined) return 'could not be reached'
  return `answered ${error.statusCode}${error.code && /^\w{1,64}$/.test(error.code) ? ` (${error.code})` : ''}`
}

const checkoutParams = (
  { planPriceId, addonPriceId }: StripePrices,
  { userId, email, kind, quantity, returnUrl, cancelUrl, customerId }: CheckoutRequest,
): Stripe.Checkout.SessionCreateParams => ({
  mode: 'subscription',
  line_items: [{ price: kind === 'plan' ? planPriceId : addonPriceId, quantity: kind === 'plan' ? 1 : quantity }],
  client_reference_id: userId,
  // Stripe accepts only one of the two parameters.
  ...(customerId !== undefined ? { customer: customerId } : email !== null && { customer_email: email }),
  subscription_data: { metadata: { user_id: userId, kind } },
  success_url: returnUrl,
  cancel_url: cancelUrl,
})

/** Loads all pages. Stripe does not number them: only a page without new entries shows an inconsistency. */
async function listAll(deps: Deps, callApi: Call): Promise<ListedSubscription[]> {
  // A subscription has no time of its last change. The entries are dated now, in whole seconds like all times of
  // Stripe.
  const now = Math.floor(Date.now() / 1000) * 1000
  const listed = new Map<string, ListedSubscription[]>()
  for (let count = 1, after: string | undefined; count <= pagesMax; count += 1) {
    const params = { status: 'all', limit: pageSize, expand: ['data.latest_invoice'] } as const
    const { data, has_more } = await callApi(Page, (api) =>
      api.subscriptions.list({ ...params, expand: [...params.expand], ...(after && { starting_after: after }) }),
    )
    const sizeBefore = listed.size
    for (const subscription of data) listed.set(subscription.id, toListedSubscriptions(subscription, deps, now))
    if (listed.size !== sizeBefore + data.length || (has_more && data.length === 0)) break
    if (!has_more) return [...listed.values()].flat()
    after = data.at(-1)?.id
  }
  throw new BillingProviderError(`${providerName} listed inconsistent pages`)
}

/** Returns nothing for other products, for unpaid checkouts, and for test mode where it is not accepted. */
function toListedSubscriptions(
  { latest_invoice: invoice, ...subscription }: z.infer<typeof StripeListedSubscription>,
  { acceptsTestMode, ...prices }: Deps,
  now: number,
): ListedSubscription[] {
  const { id: subscriptionId, items, metadata, livemode } = subscription
  if (livemode === false && !acceptsTestMode) return []
  const kind = kindFromPrices(
    items.data.map(({ price }) => price.id),
    metadata,
    prices,
  )
  const action = stripeActionFrom(subscription)
  if (!kind || !action || action === 'ignored') return []
  const fields = stripeEventFieldsFrom({ ...subscription, latest_invoice: invoice?.id }, kind, action, prices)
  const unpaid = action === 'payment_failed' ? invoice : undefined
  const invoiceId = fields.invoiceId ?? (unpaid?.status === 'open' ? unpaid.id : null)
  const listed = createListedSubscription(userRefFrom(metadata), {
    ...fields,
    provider: 'stripe',
    subscriptionId,
    kind,
    // The payment grace period starts when the invoice was due, not when reconciliation finds it unpaid.
    at: unpaid?.status_transitions?.finalized_at ?? unpaid?.created ?? now,
    ...(invoiceId !== null && { invoiceId, invoiceReason: parseInvoiceReason(invoice?.billing_reason) }),
  })
  return [{ ...listed, customerId: subscription.customer ?? undefined }]
}
