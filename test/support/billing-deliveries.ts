/** The service with a vendor as its billing provider, and the vendor's webhooks sent through the front door. */
import type { WebhookDelivery } from '../../providers/billing/provider.ts'
import type { GivenUser, TestApi } from './api.ts'
import { type EventView, eventPage } from './billing.ts'
import { lemonSqueezyConfig } from './billing-lemonsqueezy.ts'
import { aStripeDelivery, aStripeSubscription, stripeConfig } from './billing-stripe.ts'
import { eventually } from './relays.ts'
import type { SubscriptionBody } from './sandbox-customers.ts'

export const lemonSqueezyVariables = {
  SVC_BILLING_PROVIDER: 'lemonsqueezy',
  SVC_BILLING_WEBHOOK_SECRET: lemonSqueezyConfig.secrets.join(),
  SVC_LEMONSQUEEZY_API_KEY: lemonSqueezyConfig.apiKey,
  SVC_LEMONSQUEEZY_STORE_ID: lemonSqueezyConfig.storeId,
  SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: lemonSqueezyConfig.planVariantId,
  SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: lemonSqueezyConfig.addonVariantId,
}

export const stripeVariables = {
  SVC_BILLING_PROVIDER: 'stripe',
  SVC_BILLING_WEBHOOK_SECRET: stripeConfig.secrets.join(),
  SVC_STRIPE_API_KEY: stripeConfig.apiKey,
  SVC_STRIPE_PLAN_PRICE_ID: stripeConfig.planPriceId,
  SVC_STRIPE_ADDON_PRICE_ID: stripeConfig.addonPriceId,
}

/** Sends it once, and answers status and body. */
export async function sendDelivery(api: TestApi, { headers, body }: WebhookDelivery): Promise<[number, unknown]> {
  const answer = await fetch(`${api.url}/api/v1/billing/webhook`, {
    method: 'POST',
    headers: headers as Record<string, string>,
    body: new Uint8Array(body),
  })
  return [answer.status, await answer.json()]
}

export const accepted = [200, { received: true }]

/** An event of a Stripe subscription whose metadata name the account. @param created in seconds. */
export const subscriptionOfAccount = (
  name: string,
  subscriptionId: string,
  { userId }: { readonly userId: string },
  created: number,
  attributes: object = {},
): WebhookDelivery =>
  aStripeDelivery(
    `customer.subscription.${name}`,
    aStripeSubscription(subscriptionId, { ...attributes }, { metadata: { user_id: userId, kind: 'plan' } }),
    { id: `evt_${subscriptionId}_${name}_${created}`, created },
  )

export const subscriptionBody = async (api: TestApi, { bearer }: GivenUser): Promise<SubscriptionBody> =>
  (await api.get<SubscriptionBody>('/billing/subscription', { bearer })).body

export const untilPlan = (
  api: TestApi,
  user: GivenUser,
  planStatus: SubscriptionBody['plan_status'],
  secondsMax = 20,
) =>
  eventually(
    () => subscriptionBody(api, user),
    (plan) => plan.plan_status === planStatus,
    secondsMax,
  )

/** The newest events once they are as wanted. */
export const untilEvents = (api: TestApi, isWanted: (events: readonly EventView[]) => boolean) =>
  eventually(async () => (await eventPage(api)).events, isWanted)
