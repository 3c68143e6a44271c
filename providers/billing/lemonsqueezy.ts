/** Lemon Squeezy, a merchant of record. Its library keeps its key in a global and asks without a bound; both are kept in here. */
import {
  cancelSubscription,
  createCheckout,
  getCustomer,
  getSubscription,
  lemonSqueezySetup,
  listSubscriptions,
} from '@lemonsqueezy/lemonsqueezy.js'
import { z } from 'zod'
import { asDocumented, callMillisMax, within } from './asking.ts'
import { parseLemonSqueezyEvent } from './lemonsqueezy-events.ts'
import {
  kindOfVariant,
  LemonSqueezyCheckout,
  LemonSqueezyCustomer,
  LemonSqueezyPage,
  LemonSqueezySubscription,
  LemonSqueezySubscriptionEvent,
  type LemonSqueezyVariants,
  snapshotOf,
} from './lemonsqueezy-shapes.ts'
import { listed, readJson } from './payload.ts'
import {
  type BillingProvider,
  BillingProviderError,
  type CheckoutRequest,
  type ListedSubscription,
  type PortalRequest,
} from './provider.ts'
import { isLemonSqueezyWebhook } from './signatures.ts'

interface Needs extends LemonSqueezyVariants {
  readonly apiKey: string
  readonly storeId: string
  readonly secrets: readonly string[]
  readonly acceptsTestMode: boolean
  /** What we know of a subscription, before Lemon Squeezy is asked. */
  readonly kindOf: (subscriptionId: string) => Promise<'plan' | 'addon' | undefined>
  /** How long one call may take, in milliseconds. */
  readonly callMillisMax?: number
}

type Ask = <Shape extends z.ZodType>(shape: Shape, call: () => Promise<LibraryAnswer>) => Promise<z.infer<Shape>>

interface LibraryAnswer {
  readonly statusCode: number | null
  readonly data: unknown
  readonly error: Error | null
}

const OneSubscription = z.object({ data: LemonSqueezySubscription })

const says = 'lemonsqueezy'
const pageSize = 100
/** A million subscriptions: beyond it the list has no end. */
const pagesMax = 10_000

export function createLemonSqueezy(needs: Needs): BillingProvider {
  const ask: Ask = async (shape, call) => {
    const answer = await within(says, needs.callMillisMax ?? callMillisMax, () => {
      lemonSqueezySetup({ apiKey: needs.apiKey })
      return call()
    })
    if (answer.error) throw new BillingProviderError(`${says} ${failureOf(answer)}`)
    return asDocumented(says, shape, answer.data)
  }

  const kindAtLemonSqueezy = async (subscriptionId: string) => {
    const { data } = await ask(OneSubscription, () => getSubscription(subscriptionId))
    return kindOfVariant(data.attributes.variant_id, needs)
  }

  return {
    name: 'lemonsqueezy',
    verify: (delivery) => isLemonSqueezyWebhook(delivery, needs.secrets),
    parse: (delivery) =>
      parseLemonSqueezyEvent(delivery, { ...needs, kindOf: async (id) => (await needs.kindOf(id)) ?? 'unresolved' }),
    resolve: (delivery) =>
      parseLemonSqueezyEvent(delivery, {
        ...needs,
        kindOf: async (id) => (await needs.kindOf(id)) ?? (await kindAtLemonSqueezy(id)),
      }),
    customerIn: ({ body }) => {
      const { data: event } = LemonSqueezySubscriptionEvent.safeParse(readJson(body))
      return event && { subscriptionId: event.data.id, customerId: event.data.attributes.customer_id }
    },
    checkout: async (request) => {
      const { data } = await ask(LemonSqueezyCheckout, () => askForCheckout(needs, request))
      return data.attributes.url
    },
    portal: (request) => portalOf(request, ask),
    cancel: (id) => cancel(id, ask),
    list: () => listAll(needs, ask),
  }
}

/**
 * Their customers are known by the address that was typed at the checkout, which may be another person's. So the page that
 * opens without a sign-in is only for an account that has proved to own that address.
 */
async function portalOf({ customerId, verifiedEmail }: PortalRequest, ask: Ask): Promise<string | undefined> {
  if (customerId === undefined || verifiedEmail === undefined) return undefined
  const { data } = await ask(LemonSqueezyCustomer, () => getCustomer(encodeURIComponent(customerId)))
  const { email, urls } = data.attributes
  return email?.toLowerCase() === verifiedEmail.toLowerCase() ? (urls.customer_portal ?? undefined) : undefined
}

/** They don't document what becomes of a second cancellation: when one is refused, a look says whether anything is left to do. */
async function cancel(subscriptionId: string, ask: Ask): Promise<void> {
  const id = encodeURIComponent(subscriptionId)
  let refusedWith: number | undefined
  const { data } = await ask(OneSubscription, async () => {
    const answer = await cancelSubscription(id)
    if (!answer.error || answer.statusCode === null) return answer
    refusedWith = answer.statusCode
    return getSubscription(id)
  })
  const { status } = data.attributes
  if (refusedWith !== undefined && status !== 'cancelled' && status !== 'expired')
    throw new BillingProviderError(`${says} answered ${refusedWith}`)
}

const failureOf = ({ statusCode }: LibraryAnswer): string =>
  statusCode === null ? 'could not be reached' : `answered ${statusCode}`

function askForCheckout(needs: Needs, { userId, email, kind, quantity, returnUrl }: CheckoutRequest) {
  const variantId = Number(kind === 'plan' ? needs.planVariantId : needs.addonVariantId)
  return createCheckout(needs.storeId, variantId, {
    productOptions: { redirectUrl: returnUrl, enabledVariants: [variantId] },
    checkoutData: {
      ...(email !== null && { email }),
      custom: { user_id: userId },
      ...(kind === 'addon' && { variantQuantities: [{ variantId, quantity }] }),
    },
  })
}

/** All pages of one list: a page that doesn't fit to the others says that it changed meanwhile, and nothing is known. */
async function listAll(needs: Needs, ask: Ask): Promise<ListedSubscription[]> {
  const found = new Map<string, ListedSubscription[]>()
  let expected: { lastPage: number; total: number } | undefined
  for (let number = 1; number <= (expected?.lastPage ?? 1); number += 1) {
    const params = { filter: { storeId: needs.storeId }, page: { number, size: pageSize } }
    const { meta, data } = await ask(LemonSqueezyPage, () => listSubscriptions(params))
    const { currentPage, ...page } = meta.page
    expected ??= page
    const fits = currentPage === number && page.total === expected.total && page.lastPage === expected.lastPage
    if (!fits || page.lastPage > pagesMax)
      throw new BillingProviderError(`${says} listed pages that don't fit together`)
    for (const one of data) found.set(one.id, listedOf(one, needs))
  }
  if (found.size !== expected?.total) throw new BillingProviderError(`${says} listed a part of the subscriptions`)
  return [...found.values()].flat()
}

function listedOf(
  subscription: z.infer<typeof LemonSqueezySubscription>,
  { acceptsTestMode, ...variants }: Needs,
): ListedSubscription[] {
  if (subscription.attributes.test_mode === true && !acceptsTestMode) return []
  const kind = kindOfVariant(subscription.attributes.variant_id, variants)
  if (!kind) return []
  const told = snapshotOf(subscription, kind)
  // Their clock counts in seconds. This is how it stood at the end of that second, whatever was told of it before.
  const at = told.action === 'payment_failed' ? told.at : Math.floor(told.at / 1000) * 1000 + 999
  // Whose it is, only webhooks tell.
  return [{ ...listed(null, { ...told, at }), customerId: subscription.attributes.customer_id ?? undefined }]
}
