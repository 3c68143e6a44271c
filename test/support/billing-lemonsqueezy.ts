/** Lemon Squeezy as its documentation shows it: what its webhooks hold, and an API in its place. */
import { createHmac } from 'node:crypto'
import type { WebhookDelivery } from '../../providers/billing/provider.ts'
import { atEnd } from './at-end.ts'
import { type BillingApi, startBillingApi } from './billing-api.ts'

export const lemonSqueezyConfig = {
  apiKey: 'ls_key',
  storeId: '42',
  planVariantId: '1001',
  addonVariantId: '1002',
  secrets: ['a secret of lemon squeezy'],
  acceptsTestMode: true,
}

type Attributes = Readonly<Record<string, unknown>>

/** A subscription of the plan, paid until the first of April. */
export const aSubscription = (id: string, attributes: Attributes = {}) => ({
  type: 'subscriptions',
  id,
  attributes: {
    store_id: 42,
    customer_id: 1,
    order_id: 1,
    order_item_id: 1,
    product_id: 9,
    variant_id: 1001,
    product_name: 'Relay',
    variant_name: 'Default',
    user_name: 'John Doe',
    user_email: 'johndoe@example.com',
    status: 'active',
    status_formatted: 'Active',
    pause: null,
    cancelled: false,
    trial_ends_at: null,
    billing_anchor: 1,
    first_subscription_item: {
      id: 1,
      subscription_id: Number(id),
      price_id: 1,
      quantity: 1,
      created_at: '2026-01-01T10:00:00.000000Z',
      updated_at: '2026-01-01T10:00:00.000000Z',
    },
    urls: { customer_portal: 'https://my-store.lemonsqueezy.com/billing' },
    renews_at: '2026-04-01T10:00:00.000000Z',
    ends_at: null,
    created_at: '2026-01-01T10:00:00.000000Z',
    updated_at: '2026-03-01T10:00:05.000000Z',
    test_mode: false,
    ...attributes,
  },
})

/** An invoice of subscription 7, paid. */
export const anInvoice = (id: string, attributes: Attributes = {}) => ({
  type: 'subscription-invoices',
  id,
  attributes: {
    store_id: 42,
    subscription_id: 7,
    customer_id: 1,
    billing_reason: 'renewal',
    currency: 'USD',
    status: 'paid',
    refunded: false,
    refunded_at: null,
    subtotal: 999,
    total: 999,
    refunded_amount: 0,
    urls: { invoice_url: 'https://app.lemonsqueezy.com/invoice' },
    created_at: '2026-03-01T10:00:00.000000Z',
    updated_at: '2026-03-01T10:00:30.000000Z',
    test_mode: false,
    ...attributes,
  },
})

/** As it comes: signed, with our mark unless there is none. */
export function aDelivery(eventName: unknown, data: unknown, userId?: unknown, meta: Attributes = {}): WebhookDelivery {
  const custom = userId === undefined ? {} : { custom_data: { user_id: userId } }
  return signedBytes(
    Buffer.from(JSON.stringify({ meta: { event_name: eventName, test_mode: false, ...custom, ...meta }, data })),
  )
}

export function signedBytes(body: Buffer): WebhookDelivery {
  const [secret = ''] = lemonSqueezyConfig.secrets
  return { headers: { 'x-signature': createHmac('sha256', secret).update(body).digest('hex') }, body }
}

/** Answers in the place of api.lemonsqueezy.com, whose address the library does not let anybody change. */
export async function startLemonSqueezy(): Promise<BillingApi> {
  const api = await startBillingApi()
  const real = globalThis.fetch
  globalThis.fetch = (input, init) =>
    real(typeof input === 'string' ? input.replace('https://api.lemonsqueezy.com', api.url) : input, init)
  atEnd(() => {
    globalThis.fetch = real
  })
  return api
}

export const aCustomer = (id: string, attributes: Attributes = {}) => ({
  type: 'customers',
  id,
  attributes: {
    store_id: 42,
    name: 'John Doe',
    email: 'johndoe@example.com',
    status: 'subscribed',
    urls: {
      customer_portal: `https://my-store.lemonsqueezy.com/billing?expires=1798761600&user=${id}&signature=of-customer-${id}`,
    },
    ...attributes,
  },
})

interface StoreRequest {
  readonly method: string
  readonly path: string
}

const notFound = {
  status: 404,
  json: { errors: [{ status: '404', title: 'Not Found', detail: 'The related resource does not exist.' }] },
}

export interface LemonSqueezyStore {
  /** By id, as they are now. */
  readonly subscriptions: Map<string, ReturnType<typeof aSubscription>>
  answer(request: StoreRequest): { readonly status?: number; readonly json: unknown } | undefined
}

/** A store that changes as it is asked to. What becomes of a second cancellation isn't documented: here it is refused. */
export function lemonSqueezyStore(
  bought: readonly ReturnType<typeof aSubscription>[],
  customers: readonly ReturnType<typeof aCustomer>[] = [],
): LemonSqueezyStore {
  const subscriptions = new Map(bought.map((one) => [one.id, one]))
  return {
    subscriptions,
    answer: ({ method, path }) => {
      const [, kind, id = ''] = /^\/v1\/(subscriptions|customers)\/(\w+)$/.exec(path) ?? []
      if (kind === 'customers') {
        const customer = customers.find((one) => one.id === id)
        return customer ? { json: { data: customer } } : notFound
      }
      const known = subscriptions.get(id)
      if (!known) return notFound
      if (method === 'GET') return { json: { data: known } }
      if (method !== 'DELETE') return undefined
      if (known.attributes.status === 'cancelled' || known.attributes.status === 'expired')
        return { status: 422, json: { errors: [{ status: '422', title: 'Unprocessable Entity' }] } }
      const attributes = { status: 'cancelled', cancelled: true, ends_at: known.attributes.renews_at }
      const changed = aSubscription(id, { ...known.attributes, ...attributes })
      subscriptions.set(id, changed)
      return { json: { data: changed } }
    },
  }
}

/** Answers lists of these in pages of the given size. */
export function lists(subscriptions: readonly { readonly id: string }[], size: number, total = subscriptions.length) {
  return ({ path, query }: { readonly path: string; readonly query: URLSearchParams }) => {
    if (path !== '/v1/subscriptions') return undefined
    const currentPage = Number(query.get('page[number]'))
    const lastPage = Math.max(1, Math.ceil(total / size))
    const page = { currentPage, from: 1, lastPage, perPage: size, to: 1, total }
    return { json: { meta: { page }, data: subscriptions.slice((currentPage - 1) * size, currentPage * size) } }
  }
}
