/** The API with Stripe or Lemon Squeezy as the billing provider, and webhooks as these send them. */
import { expect } from 'vitest'
import type { WebhookDelivery } from '../../providers/billing/provider.ts'
import type { Client, GivenUser, TestApi } from './api.ts'
import { type EventView, fetchEvents } from './billing.ts'
import { lemonSqueezyConfig } from './billing-lemonsqueezy.ts'
import { stripeConfig, stripeDelivery, stripeSubscription } from './billing-stripe.ts'
import { startFakeRelayService } from './fake-relays.ts'
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

export const startVendorApi = async (variables: Readonly<Record<string, string>>): Promise<TestApi> =>
  (await startFakeRelayService({ variables })).api

/** Sends a webhook once and expects that it is accepted. */
export async function sendAccepted(api: Client, { headers, body }: WebhookDelivery): Promise<void> {
  const response = await fetch(`${api.url}/api/v1/billing/webhook`, {
    method: 'POST',
    headers: headers as Record<string, string>,
    body: new Uint8Array(body),
  })
  expect([response.status, await response.json()]).toEqual([200, { received: true }])
}

/** An event of a Stripe subscription whose metadata name the account. @param created in seconds since 1970. */
export const stripeSubscriptionDelivery = (
  name: string,
  subscriptionId: string,
  { userId }: { readonly userId: string },
  created: number,
  attributes: object = {},
): WebhookDelivery =>
  stripeDelivery(
    `customer.subscription.${name}`,
    stripeSubscription(subscriptionId, { ...attributes }, { metadata: { user_id: userId, kind: 'plan' } }),
    { id: `evt_${subscriptionId}_${name}_${created}`, created },
  )

export const fetchSubscription = async (api: TestApi, { bearer }: GivenUser): Promise<SubscriptionBody> =>
  (await api.get<SubscriptionBody>('/billing/subscription', { bearer })).body

export const waitForPlanStatus = (
  api: TestApi,
  user: GivenUser,
  planStatus: SubscriptionBody['plan_status'],
  secondsMax = 90,
) =>
  eventually(
    () => fetchSubscription(api, user),
    (plan) => plan.plan_status === planStatus,
    secondsMax,
  )

/** Waits until the newest events match the condition. */
export const waitForEvents = (api: TestApi, isWanted: (events: readonly EventView[]) => boolean) =>
  eventually(async () => (await fetchEvents(api)).events, isWanted)
