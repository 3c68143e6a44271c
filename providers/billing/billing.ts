/** The billing provider that is in use (`SVC_BILLING_PROVIDER`). */
import type { Config } from '../../platform/config.ts'
import { createLemonSqueezy } from './lemonsqueezy.ts'
import type { BillingProvider, BillingProviderName } from './provider.ts'
import { createSandboxBilling, type SandboxBilling, type SandboxStore } from './sandbox.ts'
import { createStripe } from './stripe.ts'

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

export function createBilling({ billing, siteUrl }: Config, { store, kindOf }: Needs): Billing {
  const { webhookSecrets: secrets, sandboxWebhookUrl: webhookUrl } = billing
  switch (billing.provider) {
    case 'lemonsqueezy': {
      const ofOurs = (subscriptionId: string) => kindOf('lemonsqueezy', subscriptionId)
      return { provider: createLemonSqueezy({ ...billing.lemonSqueezy, secrets, kindOf: ofOurs }), sandbox: undefined }
    }
    case 'stripe':
      return { provider: createStripe({ ...billing.stripe, secrets }), sandbox: undefined }
    case 'sandbox': {
      const sandbox = createSandboxBilling({ store, secrets, webhookUrl, siteUrl })
      return { provider: sandbox.provider, sandbox }
    }
  }
}
