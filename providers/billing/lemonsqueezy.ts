/**
 * The adapter of Lemon Squeezy, a merchant of record. Its library stores the API key in a global variable and has no
 * timeout: the calls here set the key and limit the time.
 */
import {
  cancelSubscription,
  createCheckout,
  getCustomer,
  getSubscription,
  lemonSqueezySetup,
  listSubscriptions,
} from '@lemonsqueezy/lemonsqueezy.js'
import { z } from 'zod'
import { callMillisMax, callWithTimeout, parseResponse } from './api-calls.ts'
import { parseLemonSqueezyEvent } from './lemonsqueezy-events.ts'
import {
  eventFieldsFrom,
  kindFromVariant,
  LemonSqueezyCheckout,
  LemonSqueezyCustomer,
  LemonSqueezyPage,
  LemonSqueezySubscription,
  LemonSqueezySubscriptionEvent,
  type LemonSqueezyVariants,
} from './lemonsqueezy-shapes.ts'
import { createListedSubscription, parseJson } from './payload.ts'
import {
  type BillingProvider,
  BillingProviderError,
  type CheckoutRequest,
  type FindKind,
  type ListedSubscription,
  type PortalRequest,
} from './provider.ts'
import { isLemonSqueezyWebhook } from './signatures.ts'

interface Deps extends LemonSqueezyVariants {
  readonly apiKey: string
  readonly storeId: string
  readonly secrets: readonly string[]
  readonly acceptsTestMode: boolean
  readonly findKind: FindKind
  /** The timeout of one call. */
  readonly callMillisMax?: number
}

type Call = <Shape extends z.ZodType>(shape: Shape, call: () => Promise<LibraryResponse>) => Promise<z.infer<Shape>>

interface LibraryResponse {
  readonly statusCode: number | null
  readonly data: unknown
  readonly error: Error | null
}

const SubscriptionResponse = z.object({ data: LemonSqueezySubscription })

const providerName = 'lemonsqueezy'
const pageSize = 100
/** A million subscriptions. */
const pagesMax = 10_000

export function createLemonSqueezy(deps: Deps): BillingProvider {
  const callApi: Call = async (shape, call) => {
    const response = await callWithTimeout(providerName, deps.callMillisMax ?? callMillisMax, () => {
      lemonSqueezySetup({ apiKey: deps.apiKey })
      return call()
    })
    if (response.error) throw new BillingProviderError(`${providerName} ${describeError(response)}`)
    return parseResponse(providerName, shape, response.data)
  }

  const requestKind = async (subscriptionId: string) => {
    const { data } = await callApi(SubscriptionResponse, () => getSubscription(subscriptionId))
    return kindFromVariant(data.attributes.variant_id, deps)
  }

  return {
    name: 'lemonsqueezy',
    verify: (delivery) => isLemonSqueezyWebhook(delivery, deps.secrets),
    parse: (delivery) =>
      parseLemonSqueezyEvent(delivery, { ...deps, findKind: async (id) => (await deps.findKind(id)) ?? 'unresolved' }),
    resolve: (delivery) =>
      parseLemonSqueezyEvent(delivery, {
        ...deps,
        findKind: async (id) => (await deps.findKind(id)) ?? (await requestKind(id)),
      }),
    parseCustomer: ({ body }) => {
      const { data: event } = LemonSqueezySubscriptionEvent.safeParse(parseJson(body))
      return event && { subscriptionId: event.data.id, customerId: event.data.attributes.customer_id }
    },
    checkout: async (request) => {
      const { data } = await callApi(LemonSqueezyCheckout, () => requestCheckout(deps, request))
      return data.attributes.url
    },
    portal: (request) => requestPortal(request, callApi),
    cancel: (id) => cancel(id, callApi),
    refund: async () => {
      throw new BillingProviderError(`${providerName} is the seller: refund it there`)
    },
    list: () => listAll(deps, callApi),
    check: async () => {
      const params = { filter: { storeId: deps.storeId }, page: { number: 1, size: 1 } }
      await callApi(LemonSqueezyPage, () => listSubscriptions(params))
    },
  }
}

/**
 * A subscription belongs to the customer whose address was typed at the checkout, which may be another person's. The
 * portal page, which needs no sign-in, is therefore only for an account that has verified the customer's address.
 */
async function requestPortal({ customerId, verifiedEmail }: PortalRequest, callApi: Call): Promise<string | undefined> {
  if (customerId === undefined || verifiedEmail === undefined) return undefined
  const { data } = await callApi(LemonSqueezyCustomer, () => getCustomer(encodeURIComponent(customerId)))
  const { email, urls } = data.attributes
  return email?.toLowerCase() === verifiedEmail.toLowerCase() ? (urls.customer_portal ?? undefined) : undefined
}

/**
 * The effect of a second cancellation is not documented: after a refused one, the status shows whether it is cancelled
 * already.
 */
async function cancel(subscriptionId: string, callApi: Call): Promise<void> {
  const id = encodeURIComponent(subscriptionId)
  let refusedWith: number | undefined
  const { data } = await callApi(SubscriptionResponse, async () => {
    const response = await cancelSubscription(id)
    if (!response.error || response.statusCode === null) return response
    refusedWith = response.statusCode
    return getSubscription(id)
  })
  const { status } = data.attributes
  if (refusedWith !== undefined && status !== 'cancelled' && status !== 'expired')
    throw new BillingProviderError(`${providerName} answered ${refusedWith}`)
}

const describeError = ({ statusCode }: LibraryResponse): string =>
  statusCode === null ? 'could not be reached' : `answered ${statusCode}`

function requestCheckout(deps: Deps, { userId, email, kind, quantity, returnUrl }: CheckoutRequest) {
  const variantId = Number(kind === 'plan' ? deps.planVariantId : deps.addonVariantId)
  return createCheckout(deps.storeId, variantId, {
    productOptions: { redirectUrl: returnUrl, enabledVariants: [variantId] },
    checkoutData: {
      ...(email !== null && { email }),
      custom: { user_id: userId },
      ...(kind === 'addon' && { variantQuantities: [{ variantId, quantity }] }),
    },
  })
}

/** Loads all pages. Throws if their numbers or totals differ: the list then changed between two requests. */
async function listAll(deps: Deps, callApi: Call): Promise<ListedSubscription[]> {
  const listed = new Map<string, ListedSubscription[]>()
  let expected: { lastPage: number; total: number } | undefined
  for (let number = 1; number <= (expected?.lastPage ?? 1); number += 1) {
    const params = { filter: { storeId: deps.storeId }, page: { number, size: pageSize } }
    const { meta, data } = await callApi(LemonSqueezyPage, () => listSubscriptions(params))
    const { currentPage, ...page } = meta.page
    expected ??= page
    const isConsistent = currentPage === number && page.total === expected.total && page.lastPage === expected.lastPage
    if (!isConsistent || page.lastPage > pagesMax)
      throw new BillingProviderError(`${providerName} listed inconsistent pages`)
    for (const subscription of data) listed.set(subscription.id, toListedSubscriptions(subscription, deps))
  }
  if (listed.size !== expected?.total)
    throw new BillingProviderError(`${providerName} listed a part of the subscriptions`)
  return [...listed.values()].flat()
}

/** Returns nothing for other products, and for test mode where it is not accepted. */
function toListedSubscriptions(
  subscription: z.infer<typeof LemonSqueezySubscription>,
  { acceptsTestMode, ...variants }: Deps,
): ListedSubscription[] {
  if (subscription.attributes.test_mode === true && !acceptsTestMode) return []
  const kind = kindFromVariant(subscription.attributes.variant_id, variants)
  if (!kind) return []
  const fields = eventFieldsFrom(subscription, kind)
  // Times have whole seconds. The end of that second orders this state after all webhooks of the same second.
  const at = fields.action === 'payment_failed' ? fields.at : Math.floor(fields.at / 1000) * 1000 + 999
  // The list contains no account ids; only webhooks do.
  const listed = createListedSubscription(null, { ...fields, provider: 'lemonsqueezy', at })
  return [{ ...listed, customerId: subscription.attributes.customer_id ?? undefined }]
}
