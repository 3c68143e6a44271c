/** An account's subscriptions at the billing provider: which of them are billed for nothing, and how to cancel them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import { type AccountSubscription, listSubscriptions } from '../../../db/billing/account-subscriptions.ts'
import { findPlan } from '../../../db/billing/subscriptions.ts'
import { isBilledAddon, isBilledPlan } from '../../../domain/billing/billed-subscriptions.ts'
import { type PlanTier, subscriptionKinds, subscriptionStatuses } from '../../../domain/billing/plans.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { storableText, timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'

export const SubscriptionView = z
  .object({
    subscription_id: z.string(),
    kind: z.enum(subscriptionKinds),
    status: z.enum(subscriptionStatuses),
    /** The number of add-ons; 1 for a plan. */
    quantity: z.int(),
    renews_at: timestamp.nullable(),
    ends_at: timestamp.nullable(),
    /** Add-ons without effect, because the account has no plan. */
    billed_without_plan: z.boolean(),
    /** One of several plans, of which only one has an effect. */
    billed_twice: z.boolean(),
    /** Whether it is not cancelled yet and at the configured provider. */
    can_cancel: z.boolean(),
  })
  .meta({ id: 'Subscription' })

type SubscriptionReply = z.infer<typeof SubscriptionView>

/** @param all subscriptions of the account, with or without ended ones. */
export function presentSubscriptions(
  all: readonly AccountSubscription[],
  planTier: PlanTier,
  { billing }: Services,
): SubscriptionReply[] {
  const hasTwoPlans = all.filter(isBilledPlan).length > 1
  return all.map((subscription) => ({
    subscription_id: subscription.subscriptionId,
    kind: subscription.kind,
    status: subscription.status,
    quantity: subscription.quantity,
    renews_at: subscription.status === 'active' ? (subscription.periodEnd?.toISOString() ?? null) : null,
    ends_at: subscription.status === 'cancelled' ? (subscription.periodEnd?.toISOString() ?? null) : null,
    billed_without_plan: planTier === 'free' && isBilledAddon(subscription),
    billed_twice: hasTwoPlans && isBilledPlan(subscription),
    can_cancel: subscription.provider === billing.provider.name && isCancellable(subscription),
  }))
}

const isCancellable = ({ status }: AccountSubscription): boolean => status === 'active' || status === 'past_due'

export const cancel = route.user({
  id: 'cancelSubscription',
  summary: 'Cancel a subscription',
  description:
    'Cancels at the billing provider. The subscription ends with its paid period, or at once if a payment is outstanding. Safe to repeat.',
  params: z.object({ subscription_id: storableText(200) }),
  answers: { 200: z.object({ subscription: SubscriptionView }) },
  refuses: ['not_found', 'billing_provider_error'],
  handle: async ({ caller: { userId }, params: { subscription_id: subscriptionId }, ip }, services) => {
    const own = await listSubscriptions(services.sql, userId, { subscriptionId })
    const [first] = own
    if (!first) throw new Refusal('not_found')
    await cancelAtProvider(own, subscriptionId, services)
    if (own.some(isCancellable)) {
      const detail = { subscription_id: subscriptionId, kind: first.kind }
      await recordAuditEntry(services.sql, { initiator: 'user', action: 'subscription_cancelled', userId, ip, detail })
    }
    await waitForWebhook(userId, subscriptionId, services)
    return ok({ subscription: await readSubscription(userId, subscriptionId, services) })
  },
})

/** Refuses with `billing_provider_error`. */
async function cancelAtProvider(
  own: readonly AccountSubscription[],
  subscriptionId: string,
  { billing, log }: Services,
): Promise<void> {
  if (!own.some(({ provider }) => provider === billing.provider.name))
    throw new Refusal('billing_provider_error', {
      message: 'This subscription is at another billing provider, which is no longer in use.',
    })
  try {
    await billing.provider.cancel(subscriptionId)
  } catch (error) {
    if (!(error instanceof BillingProviderError)) throw error
    log.error({ err: error }, 'a subscription could not be cancelled at the billing provider')
    throw new Refusal('billing_provider_error')
  }
}

/** How long the reply waits for the provider's webhook, which changes the stored subscription. */
const webhookMillisMax = 2000

async function waitForWebhook(userId: string, subscriptionId: string, { sql }: Services): Promise<void> {
  for (const deadline = Date.now() + webhookMillisMax; Date.now() < deadline; await sleep(50))
    if (!(await listSubscriptions(sql, userId, { subscriptionId })).some(isCancellable)) return
}

async function readSubscription(
  userId: string,
  subscriptionId: string,
  services: Services,
): Promise<SubscriptionReply> {
  const [plan, all] = await Promise.all([findPlan(services.sql, userId), listSubscriptions(services.sql, userId)])
  const views = presentSubscriptions(all, plan?.planTier ?? 'free', services)
  const view = views.find(({ subscription_id }) => subscription_id === subscriptionId)
  if (!view) throw new Refusal('not_found')
  return view
}
