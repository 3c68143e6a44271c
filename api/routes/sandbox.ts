/**
 * The sandbox's counter: a person plays what would happen at a billing provider. Only where the sandbox is the provider;
 * elsewhere there is nothing here. What is played comes back as a signed webhook, like everything from a provider.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { hasUnappliedEvents } from '../../db/billing-events.ts'
import {
  claimSandboxSubscription,
  listSandboxSubscriptions,
  releaseSandboxSubscription,
} from '../../db/sandbox-subscriptions.ts'
import { subscriptionKinds } from '../../domain/plans.ts'
import { type SandboxSubscription, sandboxStatuses } from '../../domain/sandbox-subscription.ts'
import { BillingProviderError } from '../../providers/billing/provider.ts'
import { SandboxRefusedError } from '../../providers/billing/sandbox.ts'
import { formatVersion, listAllowedOutcomes, sandboxOutcomes } from '../../providers/billing/sandbox-outcomes.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { timestamp } from '../http/schemas.ts'
import type { Services } from '../services.ts'

const SubscriptionView = z.object({
  subscription_id: z.string(),
  kind: z.enum(subscriptionKinds),
  quantity: z.int(),
  status: z.enum(sandboxStatuses),
  period_end: timestamp.nullable(),
  /** What can happen to it now. */
  outcomes: z.array(z.enum(sandboxOutcomes)),
  /** Another one after each change. */
  version: z.string(),
})

const present = (one: SandboxSubscription): z.infer<typeof SubscriptionView> => ({
  subscription_id: one.id,
  kind: one.kind,
  quantity: one.quantity,
  status: one.status,
  period_end: one.periodEnd?.toISOString() ?? null,
  outcomes: listAllowedOutcomes(one),
  version: formatVersion(one),
})

export const list = route({
  method: 'GET',
  path: '/billing/sandbox/subscriptions',
  summary: "The caller's subscriptions at the sandbox, oldest first",
  caller: 'user',
  answers: { 200: z.object({ subscriptions: z.array(SubscriptionView) }) },
  refuses: ['not_found'],
  handle: async ({ caller }, services) => {
    sandboxOf(services)
    const subscriptions = await listSandboxSubscriptions(services.sql, caller.userId)
    return ok({ subscriptions: subscriptions.map(present) })
  },
})

export const act = route({
  method: 'POST',
  path: '/billing/sandbox/subscriptions/{subscription_id}/{outcome}',
  summary: 'Play what happens to a subscription at the sandbox. Answers once its webhook was taken',
  caller: 'user',
  params: z.object({ subscription_id: z.string().regex(/^sub_[\w-]{1,60}$/), outcome: z.enum(sandboxOutcomes) }),
  /** With the `version` that the caller saw, a request that is sent twice acts once, however late the second comes. */
  body: z.object({ quantity: z.int().min(0).max(3).optional(), version: z.string().max(40).optional() }),
  answers: { 200: z.object({ subscription: SubscriptionView }) },
  refuses: ['not_found', 'invalid_transition', 'billing_provider_error'],
  handle: async ({ caller, params, body }, services) => {
    const sandbox = sandboxOf(services)
    const own = await listSandboxSubscriptions(services.sql, caller.userId)
    if (!own.some(({ id }) => id === params.subscription_id)) throw new Refusal('not_found')
    const play = async () => {
      const subscription = await sandbox.act(params.subscription_id, params.outcome, body)
      await judged(caller.userId, services)
      return ok({ subscription: present(subscription) })
    }
    try {
      return body.version === undefined ? await runExclusively(params.subscription_id, services, play) : await play()
    } catch (error) {
      if (error instanceof SandboxRefusedError) throw new Refusal('invalid_transition', { message: error.message })
      if (error instanceof BillingProviderError) throw new Refusal('billing_provider_error', { message: error.message })
      throw error
    }
  },
})

/**
 * Requests without a version that arrive before the first of them is answered were sent without knowledge of its outcome:
 * they are refused, because a payment that follows a payment is a renewal.
 */
async function runExclusively<Result>(id: string, { sql }: Services, run: () => Promise<Result>): Promise<Result> {
  if (!(await claimSandboxSubscription(sql, id)))
    throw new Refusal('invalid_transition', { message: 'Another change of this subscription is under way.' })
  try {
    return await run()
  } finally {
    await releaseSandboxSubscription(sql, id)
  }
}

/** How long an answer waits for the account's actor, which may be away: the webhook is kept all the same. */
const actorMillisMax = 3000

/** Resolves once the actor has taken all that was told of the account, so that whoever looks next sees what became of it. */
async function judged(userId: string, { sql }: Services): Promise<void> {
  for (const deadline = Date.now() + actorMillisMax; Date.now() < deadline; await sleep(20))
    if (!(await hasUnappliedEvents(sql, userId, []))) return
}

function sandboxOf({ billing }: Services) {
  if (!billing.sandbox) throw new Refusal('not_found')
  return billing.sandbox
}
