/** What is configured of billing: which provider takes the money, and what it needs. */
import type { Values } from './config.ts'
import { isStandardWebhookSecret } from './config-values.ts'

/** What each billing provider needs before anybody can pay. */
const billingNeeds = {
  sandbox: [],
  lemonsqueezy: [
    'SVC_LEMONSQUEEZY_API_KEY',
    'SVC_LEMONSQUEEZY_STORE_ID',
    'SVC_LEMONSQUEEZY_PLAN_VARIANT_ID',
    'SVC_LEMONSQUEEZY_ADDON_VARIANT_ID',
  ],
  stripe: ['SVC_STRIPE_API_KEY', 'SVC_STRIPE_PLAN_PRICE_ID', 'SVC_STRIPE_ADDON_PRICE_ID'],
} as const

export function* billingContradictions(v: Values): Iterable<string> {
  const provider = v.SVC_BILLING_PROVIDER ?? 'sandbox'
  if (v.SVC_BILLING_PROVIDER === undefined && v.NODE_ENV === 'production')
    yield 'SVC_BILLING_PROVIDER is not set: in production say which, since at the sandbox everybody buys for nothing'
  for (const name of billingNeeds[provider])
    if (v[name] === undefined) yield `${name} is not set: SVC_BILLING_PROVIDER=${provider} needs it`
  const keyMode = stripeKeyMode(v)
  if (keyMode !== undefined && v.SVC_BILLING_TEST_MODE === (keyMode === 'live'))
    yield `SVC_BILLING_TEST_MODE=${v.SVC_BILLING_TEST_MODE} contradicts SVC_STRIPE_API_KEY, which is a key of ${keyMode} mode: leave the variable out`
  if (provider === 'sandbox' && !v.SVC_BILLING_WEBHOOK_SECRET.every(isStandardWebhookSecret))
    yield 'SVC_BILLING_WEBHOOK_SECRET is not whsec_ with 24 to 64 bytes in base64: make one with `echo whsec_$(openssl rand -base64 32)`'
}

/** Stripe's keys say which mode they are of; undefined for another provider, or another kind of key. */
function stripeKeyMode({ SVC_BILLING_PROVIDER: provider, SVC_STRIPE_API_KEY: key }: Values): string | undefined {
  return provider === 'stripe' ? /^[sr]k_(test|live)_/.exec(key ?? '')?.[1] : undefined
}

/** Whether events and subscriptions of a provider's test mode, in which no money moves, count. */
function acceptsTestMode(v: Values): boolean {
  const keyMode = stripeKeyMode(v)
  return keyMode === undefined ? (v.SVC_BILLING_TEST_MODE ?? v.NODE_ENV !== 'production') : keyMode === 'test'
}

export const billingOf = (v: Values) => ({
  provider: v.SVC_BILLING_PROVIDER ?? 'sandbox',
  acceptsTestMode: acceptsTestMode(v),
  /** All are believed, the first signs what the sandbox sends: two while the secret is being rotated. */
  webhookSecrets: v.SVC_BILLING_WEBHOOK_SECRET,
  /** Where people manage what they pay for; the sandbox has a page of its own. */
  portalUrl: v.SVC_BILLING_PORTAL_URL,
  /** Where the sandbox sends its webhooks: to this very process. */
  sandboxWebhookUrl: `http://127.0.0.1:${v.PORT}/api/v1/billing/webhook`,
  lemonSqueezy: {
    apiKey: v.SVC_LEMONSQUEEZY_API_KEY ?? '',
    storeId: v.SVC_LEMONSQUEEZY_STORE_ID ?? '',
    planVariantId: v.SVC_LEMONSQUEEZY_PLAN_VARIANT_ID ?? '',
    addonVariantId: v.SVC_LEMONSQUEEZY_ADDON_VARIANT_ID ?? '',
  },
  stripe: {
    apiKey: v.SVC_STRIPE_API_KEY ?? '',
    /** Stripe's own unless given. */
    apiUrl: v.SVC_STRIPE_API_URL,
    planPriceId: v.SVC_STRIPE_PLAN_PRICE_ID ?? '',
    addonPriceId: v.SVC_STRIPE_ADDON_PRICE_ID ?? '',
  },
  paymentGraceSeconds: v.SVC_PAYMENT_GRACE_SECONDS,
  addonNoticeSeconds: v.SVC_ADDON_NOTICE_SECONDS,
})
