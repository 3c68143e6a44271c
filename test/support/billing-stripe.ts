/** Stripe as its documentation shows it: what its webhooks hold, and an API in its place. */
import Stripe from 'stripe'
import type { WebhookDelivery } from '../../providers/billing/provider.ts'

export const stripeConfig = {
  apiKey: 'sk_test_1',
  planPriceId: 'price_plan',
  addonPriceId: 'price_addon',
  secrets: ['whsec_of_stripe_tests_1'],
  acceptsTestMode: true,
  /** Nothing is known of any subscription. */
  kindOf: async (): Promise<'plan' | 'addon' | undefined> => undefined,
}

/** 1 March to 1 April 2026, 10:00 UTC, in seconds as all of Stripe's times. */
export const periodOfMarch = { start: 1_772_359_200, end: 1_775_037_600 }

interface Of {
  readonly price?: string
  readonly quantity?: number
  readonly metadata?: object
}

type Attributes = Readonly<Record<string, unknown>>

/** A subscription of the plan, bought through our checkout by user-1. */
export const aStripeSubscription = (
  id: string,
  attributes: Attributes = {},
  { price = 'price_plan', quantity = 1, metadata = { user_id: 'user-1', kind: 'plan' } }: Of = {},
) => ({
  id,
  object: 'subscription',
  status: 'active',
  cancel_at: null,
  cancel_at_period_end: false,
  canceled_at: null,
  ended_at: null,
  collection_method: 'charge_automatically',
  created: periodOfMarch.start,
  currency: 'usd',
  customer: 'cus_1',
  items: {
    object: 'list',
    has_more: false,
    data: [
      {
        id: 'si_1',
        object: 'subscription_item',
        current_period_start: periodOfMarch.start,
        current_period_end: periodOfMarch.end,
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
export const aStripeInvoice = (
  id: string,
  attributes: Attributes = {},
  { price = 'price_plan', metadata = { user_id: 'user-1', kind: 'plan' } }: Of = {},
) => ({
  id,
  object: 'invoice',
  billing_reason: 'subscription_cycle',
  created: periodOfMarch.start,
  status: 'paid',
  total: 999,
  lines: {
    object: 'list',
    data: [
      {
        id: 'il_1',
        object: 'line_item',
        amount: 999,
        period: periodOfMarch,
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

export const aCharge = (attributes: Attributes = {}) => ({
  id: 'ch_1',
  object: 'charge',
  amount: 999,
  amount_refunded: 999,
  payment_intent: 'pi_1',
  refunded: true,
  ...attributes,
})

export const aDispute = (attributes: Attributes = {}) => ({
  id: 'dp_1',
  object: 'dispute',
  amount: 999,
  charge: 'ch_1',
  payment_intent: 'pi_1',
  reason: 'fraudulent',
  status: 'needs_response',
  ...attributes,
})

/** When the events of the tests happened, in seconds. */
export const happenedAt = 1_772_400_000

/** As it comes: signed by Stripe's own helper. */
export function aStripeDelivery(type: unknown, object: unknown, envelope: Attributes = {}): WebhookDelivery {
  const event = {
    id: 'evt_1',
    object: 'event',
    api_version: Stripe.API_VERSION,
    created: happenedAt,
    type,
    data: { object },
  }
  return signedByStripe(JSON.stringify({ ...event, ...envelope }))
}

export function signedByStripe(payload: string): WebhookDelivery {
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

/** A refusal as Stripe words it. */
const refusal = (status: number, message: string, more: Attributes = {}) => ({
  status,
  json: { error: { type: 'invalid_request_error', message, ...more } },
})

const missing = (status: number, what: string, id: string | null, param: string) =>
  refusal(status, `No such ${what}: '${id}'`, { code: 'resource_missing', param })

export interface StripeAccount {
  /** By id, as they are now. */
  readonly subscriptions: Map<string, ReturnType<typeof aStripeSubscription>>
  readonly customers: Set<string>
  answer(request: StripeRequest): { readonly status?: number; readonly json: unknown } | undefined
}

/** An account that changes as it is asked to, and refuses what Stripe refuses. */
export function stripeAccount(...bought: readonly ReturnType<typeof aStripeSubscription>[]): StripeAccount {
  const subscriptions = new Map(bought.map((one) => [one.id, one]))
  const customers = new Set(bought.map(({ customer }) => customer))

  const changeOne = (method: string, id: string, fields: URLSearchParams) => {
    const known = subscriptions.get(id)
    if (!known) return missing(404, 'subscription', id, 'id')
    if (method === 'GET') return { json: known }
    const hasEnded = known.status === 'canceled'
    if (method === 'DELETE' && hasEnded) return missing(404, 'subscription', id, 'id')
    if (hasEnded) return refusal(400, 'A canceled subscription can only update its cancellation_details and metadata.')
    const changed =
      method === 'DELETE'
        ? { ...known, status: 'canceled' }
        : { ...known, cancel_at_period_end: fields.get('cancel_at_period_end') === 'true' }
    subscriptions.set(id, changed)
    return { json: changed }
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
    answer: (request) => {
      const fields = new URLSearchParams(request.body)
      const [, id] = /^\/v1\/subscriptions\/(\w+)$/.exec(request.path) ?? []
      if (id !== undefined) return changeOne(request.method, id, fields)
      if (/^\/v1\/(checkout|billing_portal)\/sessions$/.test(request.path)) return openSession(request.path, fields)
      return listsOfStripe([...subscriptions.values()])(request)
    },
  }
}

/** Answers lists of these in pages as they ask for them. */
export function listsOfStripe(subscriptions: readonly { readonly id: string }[]) {
  return ({ path, query }: { readonly path: string; readonly query: URLSearchParams }) => {
    if (path !== '/v1/subscriptions') return undefined
    const from = subscriptions.findIndex(({ id }) => id === query.get('starting_after')) + 1
    const size = Number(query.get('limit'))
    const data = subscriptions.slice(from, from + size)
    return { json: { object: 'list', url: path, data, has_more: from + size < subscriptions.length } }
  }
}
