/** The billing provider that is in use (`SVC_BILLING_PROVIDER`). */
import type { Config } from '../../platform/config/config.ts'
import type { BillingProvider, BillingProviderName } from './provider.ts'
import { createSandboxBilling, type SandboxBilling, type SandboxStore } from './sandbox.ts'

export interface Billing {
  readonly provider: BillingProvider
  /** The counter where people play what happens; only when the sandbox is the provider. */
  readonly sandbox: SandboxBilling | undefined
}

interface Needs {
  readonly store: SandboxStore
  /** Whether a subscription is of the plan or of add-ons, where an event does not say. */
  readonly kindOf: (provider: BillingProviderName, subscriptionId: string) => Promise<'plan' | 'addon' | undefined>
}

/** Loads the one adapter, and the library that comes with it: they are large, and the others are not needed. */
export async function createBilling({ billing, siteUrl }: Config, { store, kindOf }: Needs): Promise<Billing> {
  const { webhookSecrets: secrets, sandboxWebhookUrl: webhookUrl, acceptsTestMode } = billing
  switch (billing.provider) {
    case 'lemonsqueezy': {
      const { createLemonSqueezy } = await import('./lemonsqueezy.ts')
      const ofOurs = (subscriptionId: string) => kindOf('lemonsqueezy', subscriptionId)
      const needs = { ...billing.lemonSqueezy, secrets, acceptsTestMode, kindOf: ofOurs }
      return { provider: createLemonSqueezy(needs), sandbox: undefined }
    }
    case 'stripe': {
      const { createStripe } = await import('./stripe.ts')
      const ofOurs = (subscriptionId: string) => kindOf('stripe', subscriptionId)
      const needs = { ...billing.stripe, secrets, acceptsTestMode, kindOf: ofOurs }
      return { provider: createStripe(needs), sandbox: undefined }
    }
    case 'sandbox': {
      const sandbox = createSandboxBilling({ store, secrets, webhookUrl, siteUrl })
      return { provider: sandbox.provider, sandbox }
    }
  }
}
