import { expect, test } from 'vitest'
import { readConfig } from '../../../platform/config/config.ts'
import { createBilling } from '../../../providers/billing/billing.ts'
import type { SandboxStore } from '../../../providers/billing/sandbox.ts'
import { aDelivery, anInvoice, lemonSqueezyConfig, signedBytes } from '../../support/billing-lemonsqueezy.ts'

const given = {
  DATABASE_URL: 'postgres://localhost/none',
  TEMPORAL_ADDRESS: 'localhost:7233',
  SVC_JWT_SECRET: 'f2b1c09d4e8a7365f2b1c09d4e8a7365f2b1c09d4e8a7365',
  SVC_RELAY_AUTH_SECRET: 'a2b1c09d4e8a7365f2b1c09d4e8a7365f2b1c09d4e8a7365',
  OAUTH_ENCRYPTION_KEY: Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString('base64'),
  SVC_BILLING_WEBHOOK_SECRET: lemonSqueezyConfig.secrets[0],
  SVC_LEMONSQUEEZY_API_KEY: 'ls_key',
  SVC_LEMONSQUEEZY_STORE_ID: '42',
  SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: '1001',
  SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: '1002',
  SVC_STRIPE_API_KEY: 'sk_test_1',
  SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
  SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
}
const standardSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const emptyStore: SandboxStore = {
  open: async () => {},
  find: async () => undefined,
  save: async () => false,
  all: async () => [],
}
const asked: string[] = []
const billingOf = (variables: Readonly<Record<string, string>>) =>
  createBilling(readConfig({ ...given, ...variables }), {
    store: emptyStore,
    kindOf: async (provider, id) => {
      asked.push(`${provider} ${id}`)
      return 'addon'
    },
  })

test('the provider is the one that the configuration names, and only the sandbox has a counter', async () => {
  for (const name of ['lemonsqueezy', 'stripe'] as const)
    expect(await billingOf({ SVC_BILLING_PROVIDER: name })).toMatchObject({ provider: { name }, sandbox: undefined })
  const { provider, sandbox } = await billingOf({ SVC_BILLING_WEBHOOK_SECRET: standardSecret })
  expect(provider.name).toBe('sandbox')
  expect(sandbox?.provider).toBe(provider)
})

test('each believes the configured secrets, both of them', async () => {
  const { provider } = await billingOf({
    SVC_BILLING_PROVIDER: 'lemonsqueezy',
    SVC_BILLING_WEBHOOK_SECRET: `a newer secret of ours,${lemonSqueezyConfig.secrets[0]}`,
  })
  expect(provider.verify(signedBytes(Buffer.from('{}')), Date.now())).toBe(true)
  const other = await billingOf({
    SVC_BILLING_PROVIDER: 'lemonsqueezy',
    SVC_BILLING_WEBHOOK_SECRET: 'a newer secret of ours',
  })
  expect(other.provider.verify(signedBytes(Buffer.from('{}')), Date.now())).toBe(false)
})

test('what a payment at Lemon Squeezy is for is looked up among our own subscriptions', async () => {
  const { provider } = await billingOf({ SVC_BILLING_PROVIDER: 'lemonsqueezy' })
  const parsed = await provider.parse(aDelivery('subscription_payment_success', anInvoice('901')))
  expect(parsed).toMatchObject({ event: { kind: 'addon' } })
  expect(asked).toEqual(['lemonsqueezy 7'])
})
