import type { Config } from '../../platform/config/config.ts'
import type { BillingProvider, BillingProviderName, FindKind } from './provider.ts'
import { createSandboxBilling, type SandboxBilling, type SandboxStore } from './sandbox.ts'

export interface Billing {
  readonly provider: BillingProvider
  /** Plays what happens at a provider; only if the sandbox is the configured provider. */
  readonly sandbox: SandboxBilling | undefined
}

interface Deps {
  readonly store: SandboxStore
  readonly findKind: (provider: BillingProviderName, subscriptionId: string) => ReturnType<FindKind>
}

/**
 * Loads the adapter of the configured provider (`SVC_BILLING_PROVIDER`). The others, which are large, are not loaded.
 */
export async function createBilling({ billing, siteUrl }: Config, { store, findKind }: Deps): Promise<Billing> {
  const { provider: name, webhookSecrets: secrets, sandboxWebhookUrl: webhookUrl, acceptsTestMode } = billing
  const common = { secrets, acceptsTestMode, findKind: (subscriptionId: string) => findKind(name, subscriptionId) }
  switch (name) {
    case 'lemonsqueezy': {
      const { createLemonSqueezy } = await import('./lemonsqueezy.ts')
      return { provider: createLemonSqueezy({ ...billing.lemonSqueezy, ...common }), sandbox: undefined }
    }
    case 'stripe': {
      const { createStripe } = await import('./stripe.ts')
      return { provider: createStripe({ ...billing.stripe, ...common }), sandbox: undefined }
    }
    case 'sandbox': {
      const sandbox = createSandboxBilling({ store, secrets, webhookUrl, siteUrl })
      return { provider: sandbox.provider, sandbox }
    }
  }
}
