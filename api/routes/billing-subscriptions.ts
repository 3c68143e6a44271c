/** The subscriptions that an account pays for at the billing provider: which are billed for nothing, and how each is cancelled. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { recordAuditEntry } from '../../db/audit.ts'
import {
  type AccountSubscription,
  isBilledAddon,
  isBilledPlan,
  listSubscriptions,
} from '../../db/billed-subscriptions.ts'
import { findPlan } from '../../db/subscriptions.ts'
import { BillingProviderError } from '../../providers/billing/provider.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { storable, timestamp } from '../http/schemas.ts'
import type { Services } from '../services.ts'

export const SubscriptionView = z.object({
  subscription_id: z.string(),
  kind: z.enum(['plan', 'addon']),
  status: z.enum(['active', 'past_due', 'cancelled', 'ended']),
  /** Of add-ons; 1 for a plan. */
  quantity: z.int(),
  renews_at: timestamp.nullable(),
  ends_at: timestamp.nullable(),
  /** An add-on that does nothing, because the account has no plan. */
  billed_without_plan: z.boolean(),
  /** A plan beside another plan: one of the two brings nothing. */
  billed_twice: z.boolean(),
  /** Whether it can be cancelled here: it goes on, at the provider that is in use. */
  can_cancel: z.boolean(),
})

type OwnView = z.infer<typeof SubscriptionView>

/** @param all subscriptions of the account, or those that go on. @param plan the account's tier. */
export function presentSubscriptions(
  all: readonly AccountSubscription[],
  plan: 'free' | 'paid',
  { billing }: Services,
): OwnView[] {
  const hasTwoPlans = all.filter(isBilledPlan).length > 1
  return all.map((one) => ({
    subscription_id: one.subscriptionId,
    kind: one.kind,
    status: one.status,
    quantity: one.quantity,
    renews_at: one.status === 'active' ? (one.periodEnd?.toISOString() ?? null) : null,
    ends_at: one.status === 'cancelled' ? (one.periodEnd?.toISOString() ?? null) : null,
    billed_without_plan: plan === 'free' && isBilledAddon(one),
    billed_twice: hasTwoPlans && isBilledPlan(one),
    can_cancel: one.provider === billing.provider.name && isCancellable(one),
  }))
}

const isCancellable = ({ status }: AccountSubscription): boolean => status === 'active' || status === 'past_due'

export const cancel = route({
  method: 'POST',
  path: '/billing/subscriptions/{subscription_id}/cancel',
  summary:
    'Cancel a subscription at the billing provider. It ends with the period that is paid, or at once when a payment is outstanding. Safe to repeat',
  caller: 'user',
  limit: 'billing_manage',
  params: z.object({ subscription_id: storable(200) }),
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
      message: 'This subscription is at a billing provider that is not in use any more.',
    })
  try {
    await billing.provider.cancel(subscriptionId)
  } catch (error) {
    if (!(error instanceof BillingProviderError)) throw error
    log.error({ err: error }, 'the billing provider did not cancel a subscription')
    throw new Refusal('billing_provider_error')
  }
}

/** How long an answer waits for the provider's webhook, which is what changes our own rows. */
const webhookMillisMax = 2000

async function waitForWebhook(userId: string, subscriptionId: string, { sql }: Services): Promise<void> {
  for (const deadline = Date.now() + webhookMillisMax; Date.now() < deadline; await sleep(50))
    if (!(await listSubscriptions(sql, userId, { subscriptionId })).some(isCancellable)) return
}

async function readSubscription(userId: string, subscriptionId: string, services: Services): Promise<OwnView> {
  const [plan, all] = await Promise.all([findPlan(services.sql, userId), listSubscriptions(services.sql, userId)])
  const views = presentSubscriptions(all, plan?.planTier ?? 'free', services)
  const view = views.find((one) => one.subscription_id === subscriptionId)
  if (!view) throw new Refusal('not_found')
  return view
}
