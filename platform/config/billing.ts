/** The billing part of the configuration. */
import { isStandardWebhookSecret } from './values.ts'
import type { Values } from './variables.ts'

/** The variables that each billing provider requires. */
const requiredVariables = {
  sandbox: [],
  lemonsqueezy: [
    'SVC_LEMONSQUEEZY_API_KEY',
    'SVC_LEMONSQUEEZY_STORE_ID',
    'SVC_LEMONSQUEEZY_PLAN_VARIANT_ID',
    'SVC_LEMONSQUEEZY_ADDON_VARIANT_ID',
  ],
  stripe: ['SVC_STRIPE_API_KEY', 'SVC_STRIPE_PLAN_PRICE_ID', 'SVC_STRIPE_ADDON_PRICE_ID'],
} as const

/** Billing variables that are valid by themselves, but not together. */
export function* findBillingConflicts(v: Values): Iterable<string> {
  const provider = v.SVC_BILLING_PROVIDER ?? 'sandbox'
  if (v.SVC_BILLING_PROVIDER === undefined && v.NODE_ENV === 'production')
    yield 'SVC_BILLING_PROVIDER is not set: production needs an explicit provider, because purchases in the sandbox cost nothing'
  for (const name of requiredVariables[provider])
    if (v[name] === undefined) yield `${name} is not set: SVC_BILLING_PROVIDER=${provider} requires it`
  const keyMode = stripeKeyMode(v)
  if (keyMode !== undefined && v.SVC_BILLING_TEST_MODE === (keyMode === 'live'))
    yield `SVC_BILLING_TEST_MODE=${v.SVC_BILLING_TEST_MODE} contradicts SVC_STRIPE_API_KEY, which is a ${keyMode} mode key: unset SVC_BILLING_TEST_MODE`
  if (provider === 'sandbox' && !v.SVC_BILLING_WEBHOOK_SECRET.every(isStandardWebhookSecret))
    yield 'SVC_BILLING_WEBHOOK_SECRET is not whsec_ with 24 to 64 bytes in base64: generate one with `echo whsec_$(openssl rand -base64 32)`'
}

/** The mode in the prefix of a Stripe key; undefined for other providers, and for keys without the prefix. */
function stripeKeyMode({ SVC_BILLING_PROVIDER: provider, SVC_STRIPE_API_KEY: key }: Values): string | undefined {
  return provider === 'stripe' ? /^[sr]k_(test|live)_/.exec(key ?? '')?.[1] : undefined
}

/** Whether events and subscriptions of a provider's test mode, where payments are not real, count. */
function acceptsTestMode(v: Values): boolean {
  const keyMode = stripeKeyMode(v)
  return keyMode === undefined ? (v.SVC_BILLING_TEST_MODE ?? v.NODE_ENV !== 'production') : keyMode === 'test'
}

export const billingConfig = (v: Values) => ({
  provider: v.SVC_BILLING_PROVIDER ?? 'sandbox',
  acceptsTestMode: acceptsTestMode(v),
  /** All are accepted, and the sandbox signs with the first. There are two while the secret is being rotated. */
  webhookSecrets: v.SVC_BILLING_WEBHOOK_SECRET,
  /** The provider's customer portal. The sandbox has its own page instead. */
  portalUrl: v.SVC_BILLING_PORTAL_URL,
  withdrawal: {
    /** Whether customers can withdraw from contracts here. */
    isOffered: v.SVC_WITHDRAWAL,
    /** The form of a provider that is the seller. */
    formUrl: v.SVC_WITHDRAWAL_URL,
  },
  /** The sandbox sends its webhooks to this process. */
  sandboxWebhookUrl: `http://127.0.0.1:${v.PORT}/api/v1/billing/webhook`,
  lemonSqueezy: {
    apiKey: v.SVC_LEMONSQUEEZY_API_KEY ?? '',
    storeId: v.SVC_LEMONSQUEEZY_STORE_ID ?? '',
    planVariantId: v.SVC_LEMONSQUEEZY_PLAN_VARIANT_ID ?? '',
    addonVariantId: v.SVC_LEMONSQUEEZY_ADDON_VARIANT_ID ?? '',
  },
  stripe: {
    apiKey: v.SVC_STRIPE_API_KEY ?? '',
    /** Undefined: Stripe's default. */
    apiUrl: v.SVC_STRIPE_API_URL,
    planPriceId: v.SVC_STRIPE_PLAN_PRICE_ID ?? '',
    addonPriceId: v.SVC_STRIPE_ADDON_PRICE_ID ?? '',
  },
  paymentGraceSeconds: v.SVC_PAYMENT_GRACE_SECONDS,
  addonNoticeSeconds: v.SVC_ADDON_NOTICE_SECONDS,
})
