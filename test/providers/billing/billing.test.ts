/** The billing provider that the configuration names. */
import { expect, test } from 'vitest'
import { readConfig } from '../../../platform/config/config.ts'
import { createBilling } from '../../../providers/billing/billing.ts'
import type { SandboxStore } from '../../../providers/billing/sandbox.ts'
import {
  lemonSqueezyConfig,
  lemonSqueezyDelivery,
  lemonSqueezyInvoice,
  signLemonSqueezyBytes,
} from '../../support/billing-lemonsqueezy.ts'
import { testEnvironment } from '../../support/environment.ts'

const variables = testEnvironment({
  SVC_BILLING_WEBHOOK_SECRET: lemonSqueezyConfig.secrets[0] ?? '',
  SVC_LEMONSQUEEZY_API_KEY: 'ls_key',
  SVC_LEMONSQUEEZY_STORE_ID: '42',
  SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: '1001',
  SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: '1002',
  SVC_STRIPE_API_KEY: 'sk_test_1',
  SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
  SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
})
const standardSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const emptyStore: SandboxStore = {
  insert: async () => {},
  find: async () => undefined,
  save: async () => false,
  list: async () => [],
}
const lookups: string[] = []
const createConfigured = (changes: Readonly<Record<string, string>>) =>
  createBilling(readConfig({ ...variables, ...changes }), {
    store: emptyStore,
    findKind: async (provider, id) => {
      lookups.push(`${provider} ${id}`)
      return 'addon'
    },
  })

test('the configured provider is created, with the sandbox controls only for the sandbox', async () => {
  for (const name of ['lemonsqueezy', 'stripe'] as const)
    expect(await createConfigured({ SVC_BILLING_PROVIDER: name })).toMatchObject({
      provider: { name },
      sandbox: undefined,
    })
  const { provider, sandbox } = await createConfigured({ SVC_BILLING_WEBHOOK_SECRET: standardSecret })
  expect(provider.name).toBe('sandbox')
  expect(sandbox?.provider).toBe(provider)
})

test('a provider verifies with both configured secrets', async () => {
  const { provider } = await createConfigured({
    SVC_BILLING_PROVIDER: 'lemonsqueezy',
    SVC_BILLING_WEBHOOK_SECRET: `a newer secret of ours,${lemonSqueezyConfig.secrets[0]}`,
  })
  expect(provider.verify(signLemonSqueezyBytes(Buffer.from('{}')), Date.now())).toBe(true)
  const other = await createConfigured({
    SVC_BILLING_PROVIDER: 'lemonsqueezy',
    SVC_BILLING_WEBHOOK_SECRET: 'a newer secret of ours',
  })
  expect(other.provider.verify(signLemonSqueezyBytes(Buffer.from('{}')), Date.now())).toBe(false)
})

test('the kind of a Lemon Squeezy payment is looked up among the stored subscriptions', async () => {
  const { provider } = await createConfigured({ SVC_BILLING_PROVIDER: 'lemonsqueezy' })
  const parsed = await provider.parse(lemonSqueezyDelivery('subscription_payment_success', lemonSqueezyInvoice('901')))
  expect(parsed).toMatchObject({ event: { kind: 'addon' } })
  expect(lookups).toEqual(['lemonsqueezy 7'])
})
