/**
 * Sandbox controls: a user plays outcomes that would happen at a real billing provider. Each outcome arrives as a
 * signed webhook. With another billing provider these routes answer 404.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { hasUnappliedEvents } from '../../../db/billing/events.ts'
import {
  claimSandboxSubscription,
  listSandboxSubscriptions,
  releaseSandboxSubscription,
} from '../../../db/billing/sandbox-subscriptions.ts'
import { addonsMax, subscriptionKinds } from '../../../domain/billing/plans.ts'
import { type SandboxSubscription, sandboxStatuses } from '../../../domain/billing/sandbox-subscription.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { SandboxRefusedError } from '../../../providers/billing/sandbox.ts'
import { formatVersion, listAllowedOutcomes, sandboxOutcomes } from '../../../providers/billing/sandbox-outcomes.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'

const SubscriptionView = z
  .object({
    subscription_id: z.string(),
    kind: z.enum(subscriptionKinds),
    quantity: z.int(),
    status: z.enum(sandboxStatuses),
    period_end: timestamp.nullable(),
    /** The outcomes that are possible now. */
    outcomes: z.array(z.enum(sandboxOutcomes)),
    /** Differs after each change. */
    version: z.string(),
  })
  .meta({ id: 'SandboxSubscription' })

const present = (subscription: SandboxSubscription): z.infer<typeof SubscriptionView> => ({
  subscription_id: subscription.id,
  kind: subscription.kind,
  quantity: subscription.quantity,
  status: subscription.status,
  period_end: subscription.periodEnd?.toISOString() ?? null,
  outcomes: listAllowedOutcomes(subscription),
  version: formatVersion(subscription),
})

export const list = route.user({
  id: 'listSandboxSubscriptions',
  summary: 'List the subscriptions at the sandbox',
  description:
    "The caller's subscriptions at the sandbox, oldest first, with the outcomes that are possible now. 404 with another billing provider.",
  answers: { 200: z.object({ subscriptions: z.array(SubscriptionView) }) },
  refuses: ['not_found'],
  handle: async ({ caller }, services) => {
    requireSandbox(services)
    const subscriptions = await listSandboxSubscriptions(services.sql, caller.userId)
    return ok({ subscriptions: subscriptions.map(present) })
  },
})

export const act = route.user({
  id: 'playSandboxOutcome',
  summary: 'Play an outcome at the sandbox',
  description:
    'Plays something that would happen at a real provider, such as a failed payment. The reply comes once the webhook is accepted. With the `version` of an earlier reply a repeated request acts once.',
  params: z.object({ subscription_id: z.string().regex(/^sub_[\w-]{1,60}$/), outcome: z.enum(sandboxOutcomes) }),
  /** With the `version` from an earlier reply, a repeated request acts once. */
  body: z.object({ quantity: z.int().min(0).max(addonsMax).optional(), version: z.string().max(40).optional() }),
  answers: { 200: z.object({ subscription: SubscriptionView }) },
  refuses: ['not_found', 'invalid_transition', 'billing_provider_error'],
  handle: async ({ caller, params, body }, services) => {
    const sandbox = requireSandbox(services)
    const own = await listSandboxSubscriptions(services.sql, caller.userId)
    if (!own.some(({ id }) => id === params.subscription_id)) throw new Refusal('not_found')
    const play = async () => {
      const subscription = await sandbox.act(params.subscription_id, params.outcome, body)
      await waitUntilApplied(caller.userId, services)
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
 * Refuses requests without a version while another one is running: their sender cannot have its result, and a second
 * payment would be a renewal.
 */
async function runExclusively<Result>(id: string, { sql }: Services, run: () => Promise<Result>): Promise<Result> {
  if (!(await claimSandboxSubscription(sql, id)))
    throw new Refusal('invalid_transition', {
      message: 'Another change of this subscription is in progress. Try again in a moment.',
    })
  try {
    return await run()
  } finally {
    await releaseSandboxSubscription(sql, id)
  }
}

/** How long the reply waits for the account's workflow. The webhook is stored in any case. */
const workflowMillisMax = 3000

/** Resolves once the workflow has applied all events, so that the next request sees the new plan. */
async function waitUntilApplied(userId: string, { sql }: Services): Promise<void> {
  for (const deadline = Date.now() + workflowMillisMax; Date.now() < deadline; await sleep(20))
    if (!(await hasUnappliedEvents(sql, userId, []))) return
}

function requireSandbox({ billing }: Services) {
  if (!billing.sandbox) throw new Refusal('not_found')
  return billing.sandbox
}
