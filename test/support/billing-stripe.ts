/** Stripe's objects and webhooks as documented, and a double of its API with state. */
import Stripe from 'stripe'
import type { FindKind, WebhookDelivery } from '../../providers/billing/provider.ts'

export const stripeConfig = {
  apiKey: 'sk_test_1',
  planPriceId: 'price_plan',
  addonPriceId: 'price_addon',
  secrets: ['whsec_of_stripe_tests_1'],
  acceptsTestMode: true,
  findKind: (async () => undefined) as FindKind,
}

/** 1 March to 1 April 2026, 10:00 UTC, in seconds like all times of Stripe. */
export const marchPeriod = { start: 1_772_359_200, end: 1_775_037_600 }

interface Product {
  readonly price?: string
  readonly quantity?: number
  readonly metadata?: object
}

type Attributes = Readonly<Record<string, unknown>>

/** An active subscription of user-1, for the plan by default. */
export const stripeSubscription = (
  id: string,
  attributes: Attributes = {},
  { price = 'price_plan', quantity = 1, metadata = { user_id: 'user-1', kind: 'plan' } }: Product = {},
) => ({
  id,
  object: 'subscription',
  status: 'active',
  cancel_at: null,
  cancel_at_period_end: false,
  canceled_at: null,
  ended_at: null,
  collection_method: 'charge_automatically',
  created: marchPeriod.start,
  currency: 'usd',
  customer: 'cus_1',
  items: {
    object: 'list',
    has_more: false,
    data: [
      {
        id: 'si_1',
        object: 'subscription_item',
        current_period_start: marchPeriod.start,
        current_period_end: marchPeriod.end,
        price: { id: price, object: 'price', type: 'recurring' },
        quantity,
        subscription: id,
      },
    ],
  },
  latest_invoice: 'in_1',
  livemode: false,
  metadata,
  ...attributes,
})

/** An invoice of subscription sub_1, for March. */
export const stripeInvoice = (
  id: string,
  attributes: Attributes = {},
  { price = 'price_plan', metadata = { user_id: 'user-1', kind: 'plan' } }: Product = {},
) => ({
  id,
  object: 'invoice',
  billing_reason: 'subscription_cycle',
  created: marchPeriod.start,
  status: 'paid',
  total: 999,
  lines: {
    object: 'list',
    data: [
      {
        id: 'il_1',
        object: 'line_item',
        amount: 999,
        period: marchPeriod,
        parent: { type: 'subscription_item_details', subscription_item_details: { proration: false } },
        pricing: { type: 'price_details', price_details: { price, product: 'prod_1' } },
      },
    ],
  },
  parent: {
    type: 'subscription_details',
    quote_details: null,
    subscription_details: { metadata, subscription: 'sub_1' },
  },
  ...attributes,
})

export const stripeCharge = (attributes: Attributes = {}) => ({
  id: 'ch_1',
  object: 'charge',
  amount: 999,
  amount_refunded: 999,
  payment_intent: 'pi_1',
  refunded: true,
  ...attributes,
})

export const stripeDispute = (attributes: Attributes = {}) => ({
  id: 'dp_1',
  object: 'dispute',
  amount: 999,
  charge: 'ch_1',
  payment_intent: 'pi_1',
  reason: 'fraudulent',
  status: 'needs_response',
  ...attributes,
})

export const stripeRefund = (attributes: Attributes = {}) => ({
  id: 're_1',
  object: 'refund',
  amount: 999,
  charge: 'ch_1',
  payment_intent: 'pi_1',
  status: 'succeeded',
  ...attributes,
})

/** `created` of the events, in seconds. */
export const createdSeconds = 1_772_400_000

/** A webhook request, signed with Stripe's own library. */
export function stripeDelivery(type: unknown, object: unknown, envelope: Attributes = {}): WebhookDelivery {
  const event = {
    id: 'evt_1',
    object: 'event',
    api_version: Stripe.API_VERSION,
    created: createdSeconds,
    type,
    data: { object },
  }
  return signStripePayload(JSON.stringify({ ...event, ...envelope }))
}

export function signStripePayload(payload: string): WebhookDelivery {
  const [secret = ''] = stripeConfig.secrets
  const header = new Stripe(stripeConfig.apiKey).webhooks.generateTestHeaderString({ payload, secret })
  return { headers: { 'stripe-signature': header }, body: Buffer.from(payload) }
}

interface StripeRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
}

const refusal = (status: number, message: string, more: Attributes = {}) => ({
  status,
  json: { error: { type: 'invalid_request_error', message, ...more } },
})

const missing = (status: number, what: string, id: string | null, param: string) =>
  refusal(status, `No such ${what}: '${id}'`, { code: 'resource_missing', param })

const invoiceOf = (subscriptionId: string | null): string => `in_of_${subscriptionId}`
const paymentOf = (invoiceId: string | null): string => `pi_of_${invoiceId}`

export interface StripeAccount {
  /** The present state by id. */
  readonly subscriptions: Map<string, ReturnType<typeof stripeSubscription>>
  readonly customers: Set<string>
  /** The payments that were refunded, in order. Each subscription has a paid invoice with a payment of its own. */
  readonly refunds: readonly string[]
  answer(request: StripeRequest): { readonly status?: number; readonly json: unknown } | undefined
}

/** An account that requests change, and that refuses what Stripe refuses. */
export function createStripeAccount(...initial: readonly ReturnType<typeof stripeSubscription>[]): StripeAccount {
  const subscriptions = new Map(initial.map((subscription) => [subscription.id, subscription]))
  const customers = new Set(initial.map(({ customer }) => customer))

  const changeSubscription = (method: string, id: string, fields: URLSearchParams) => {
    const subscription = subscriptions.get(id)
    if (!subscription) return missing(404, 'subscription', id, 'id')
    if (method === 'GET') return { json: subscription }
    const hasEnded = subscription.status === 'canceled'
    if (method === 'DELETE' && hasEnded) return missing(404, 'subscription', id, 'id')
    if (hasEnded) return refusal(400, 'A canceled subscription can only update its cancellation_details and metadata.')
    const changed =
      method === 'DELETE'
        ? { ...subscription, status: 'canceled' }
        : { ...subscription, cancel_at_period_end: fields.get('cancel_at_period_end') === 'true' }
    subscriptions.set(id, changed)
    return { json: changed }
  }

  const refunds: string[] = []
  const listOne = (data: object) => ({ json: { object: 'list', data: [data], has_more: false } })

  const answerRefunds = ({ method, path, query, body }: StripeRequest) => {
    if (path === '/v1/invoices')
      return listOne({ id: invoiceOf(query.get('subscription')), object: 'invoice', amount_paid: 999 })
    if (path === '/v1/invoice_payments') {
      const payment = { type: 'payment_intent', payment_intent: paymentOf(query.get('invoice')) }
      return listOne({ id: 'inpay_1', object: 'invoice_payment', status: 'paid', payment })
    }
    if (method !== 'POST' || path !== '/v1/refunds') return undefined
    const payment = new URLSearchParams(body).get('payment_intent') ?? ''
    if (refunds.includes(payment))
      return refusal(400, 'The charge has already been refunded.', { code: 'charge_already_refunded' })
    refunds.push(payment)
    return { json: stripeRefund({ payment_intent: payment }) }
  }

  const openSession = (path: string, fields: URLSearchParams) => {
    const customer = fields.get('customer')
    if (customer !== null && fields.has('customer_email'))
      return refusal(400, 'You may only specify one of these parameters: customer, customer_email.')
    if (customer !== null && !customers.has(customer)) return missing(400, 'customer', customer, 'customer')
    const object = path === '/v1/checkout/sessions' ? 'checkout.session' : 'billing_portal.session'
    return { json: { id: 'session_1', object, customer, url: `https://stripe.example/${object}/${customer ?? 'new'}` } }
  }

  return {
    subscriptions,
    customers,
    refunds,
    answer: (request) => {
      const fields = new URLSearchParams(request.body)
      const [, id] = /^\/v1\/subscriptions\/(\w+)$/.exec(request.path) ?? []
      if (id !== undefined) return changeSubscription(request.method, id, fields)
      if (/^\/v1\/(checkout|billing_portal)\/sessions$/.test(request.path)) return openSession(request.path, fields)
      return answerRefunds(request) ?? listStripePages([...subscriptions.values()])(request)
    },
  }
}

/** Answers list requests with pages of the requested size. */
export function listStripePages(subscriptions: readonly { readonly id: string }[]) {
  return ({ path, query }: { readonly path: string; readonly query: URLSearchParams }) => {
    if (path !== '/v1/subscriptions') return undefined
    const from = subscriptions.findIndex(({ id }) => id === query.get('starting_after')) + 1
    const size = Number(query.get('limit'))
    const data = subscriptions.slice(from, from + size)
    return { json: { object: 'list', url: path, data, has_more: from + size < subscriptions.length } }
  }
}
