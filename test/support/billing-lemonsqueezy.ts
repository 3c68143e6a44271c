/** Lemon Squeezy's objects and webhooks as documented, and a double of its API with state. */
import { createHmac } from 'node:crypto'
import type { WebhookDelivery } from '../../providers/billing/provider.ts'
import { atEnd } from './at-end.ts'
import { type BillingApiDouble, startBillingApiDouble } from './billing-api.ts'

export const lemonSqueezyConfig = {
  apiKey: 'ls_key',
  storeId: '42',
  planVariantId: '1001',
  addonVariantId: '1002',
  secrets: ['a secret of lemon squeezy'],
  acceptsTestMode: true,
}

type Attributes = Readonly<Record<string, unknown>>

/** An active subscription, for the plan by default, paid until 1 April. */
export const lemonSqueezySubscription = (id: string, attributes: Attributes = {}) => ({
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

/** A paid invoice of subscription 7. */
export const lemonSqueezyInvoice = (id: string, attributes: Attributes = {}) => ({
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

/** A signed webhook request. @param userId our account id in the custom data. */
export function lemonSqueezyDelivery(
  eventName: unknown,
  data: unknown,
  userId?: unknown,
  meta: Attributes = {},
): WebhookDelivery {
  const custom = userId === undefined ? {} : { custom_data: { user_id: userId } }
  return signLemonSqueezyBytes(
    Buffer.from(JSON.stringify({ meta: { event_name: eventName, test_mode: false, ...custom, ...meta }, data })),
  )
}

export function signLemonSqueezyBytes(body: Buffer): WebhookDelivery {
  const [secret = ''] = lemonSqueezyConfig.secrets
  return { headers: { 'x-signature': createHmac('sha256', secret).update(body).digest('hex') }, body }
}

/** Redirects requests for api.lemonsqueezy.com to the double: the library has no option for another URL. */
export async function startLemonSqueezyDouble(): Promise<BillingApiDouble> {
  const api = await startBillingApiDouble()
  const originalFetch = globalThis.fetch
  globalThis.fetch = (input, init) =>
    originalFetch(typeof input === 'string' ? input.replace('https://api.lemonsqueezy.com', api.url) : input, init)
  atEnd(() => {
    globalThis.fetch = originalFetch
  })
  return api
}

export const lemonSqueezyCustomer = (id: string, attributes: Attributes = {}) => ({
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
  /** The present state by id. */
  readonly subscriptions: Map<string, ReturnType<typeof lemonSqueezySubscription>>
  answer(request: StoreRequest): { readonly status?: number; readonly json: unknown } | undefined
}

/** A store that requests change. The effect of a second cancellation is not documented: this one refuses it. */
export function createLemonSqueezyStore(
  initial: readonly ReturnType<typeof lemonSqueezySubscription>[],
  customers: readonly ReturnType<typeof lemonSqueezyCustomer>[] = [],
): LemonSqueezyStore {
  const subscriptions = new Map(initial.map((subscription) => [subscription.id, subscription]))
  return {
    subscriptions,
    answer: ({ method, path }) => {
      const [, kind, id = ''] = /^\/v1\/(subscriptions|customers)\/(\w+)$/.exec(path) ?? []
      if (kind === 'customers') {
        const customer = customers.find((candidate) => candidate.id === id)
        return customer ? { json: { data: customer } } : notFound
      }
      const subscription = subscriptions.get(id)
      if (!subscription) return notFound
      if (method === 'GET') return { json: { data: subscription } }
      if (method !== 'DELETE') return undefined
      if (subscription.attributes.status === 'cancelled' || subscription.attributes.status === 'expired')
        return { status: 422, json: { errors: [{ status: '422', title: 'Unprocessable Entity' }] } }
      const attributes = { status: 'cancelled', cancelled: true, ends_at: subscription.attributes.renews_at }
      const changed = lemonSqueezySubscription(id, { ...subscription.attributes, ...attributes })
      subscriptions.set(id, changed)
      return { json: { data: changed } }
    },
  }
}

/** Answers list requests with pages of the given size. */
export function listLemonSqueezyPages(
  subscriptions: readonly { readonly id: string }[],
  size: number,
  total = subscriptions.length,
) {
  return ({ path, query }: { readonly path: string; readonly query: URLSearchParams }) => {
    if (path !== '/v1/subscriptions') return undefined
    const currentPage = Number(query.get('page[number]'))
    const lastPage = Math.max(1, Math.ceil(total / size))
    const page = { currentPage, from: 1, lastPage, perPage: size, to: 1, total }
    return { json: { meta: { page }, data: subscriptions.slice((currentPage - 1) * size, currentPage * size) } }
  }
}
