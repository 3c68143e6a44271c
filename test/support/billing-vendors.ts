/** The whole service with one of the vendors as its billing provider, and webhooks as that vendor sends them. */
import { expect } from 'vitest'
import type { WebhookDelivery } from '../../providers/billing/provider.ts'
import type { Client, TestApi } from './api.ts'
import { lemonSqueezyConfig } from './billing-lemonsqueezy.ts'
import { stripeConfig } from './billing-stripe.ts'
import { paperRelays, startService } from './relays.ts'

type Variables = Readonly<Record<string, string>>

export const lemonSqueezyVariables = {
  SVC_BILLING_PROVIDER: 'lemonsqueezy',
  SVC_BILLING_WEBHOOK_SECRET: lemonSqueezyConfig.secrets.join(),
  SVC_LEMONSQUEEZY_API_KEY: lemonSqueezyConfig.apiKey,
  SVC_LEMONSQUEEZY_STORE_ID: lemonSqueezyConfig.storeId,
  SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: lemonSqueezyConfig.planVariantId,
  SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: lemonSqueezyConfig.addonVariantId,
}

/** @param apiUrl where the test stands in for Stripe. */
export const stripeVariables = (apiUrl: string) => ({
  SVC_BILLING_PROVIDER: 'stripe',
  SVC_BILLING_WEBHOOK_SECRET: stripeConfig.secrets.join(),
  SVC_STRIPE_API_KEY: stripeConfig.apiKey,
  SVC_STRIPE_PLAN_PRICE_ID: stripeConfig.planPriceId,
  SVC_STRIPE_ADDON_PRICE_ID: stripeConfig.addonPriceId,
  SVC_STRIPE_API_URL: apiUrl,
})

export const startVendorService = async (variables: Variables): Promise<TestApi> =>
  (await startService({ around: paperRelays().around, variables })).api

/** Sends a vendor's webhook once. */
export async function sendWebhook(api: Client, { headers, body }: WebhookDelivery): Promise<void> {
  const answer = await fetch(`${api.url}/api/v1/billing/webhook`, {
    method: 'POST',
    headers: headers as Record<string, string>,
    body: new Uint8Array(body),
  })
  expect(answer.status).toBe(200)
}
