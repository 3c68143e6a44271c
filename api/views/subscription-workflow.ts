/** The subscription workflow of an account, which operators see beside the account's row. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { planStatuses, planTiers } from '../../domain/billing/plans.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import { workflowUrl } from '../../platform/temporal.ts'
import { type SubscriptionSnapshot, subscriptionWorkflowId } from '../../workflows/messages.ts'
import type { SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { timestamp } from '../http/schemas.ts'

/**
 * The longest wait for the workflow's snapshot, in milliseconds: without a worker the rest of the answer is still
 * useful.
 */
const snapshotMillisMax = 2000

export const SubscriptionWorkflowView = z.object({
  live: z
    .object({
      plan_tier: z.enum(planTiers),
      plan_status: z.enum(planStatuses),
      addons: z.int(),
      grace_ends_at: timestamp.nullable(),
      ends_at: timestamp.nullable(),
      wakes_at: timestamp.nullable().describe('When the workflow wakes up without a signal.'),
    })
    .nullable()
    .describe('Null when the workflow does not run, or does not answer in 2 seconds.'),
  live_missing: z
    .enum(['not_running', 'no_answer'])
    .nullable()
    .describe(
      'Why `live` is null. `not_running`: nothing to wait for, as for an account that never had a plan. `no_answer`: Temporal or all workers are unavailable.',
    ),
  workflow_id: z.string(),
  temporal_ui_url: z.string(),
})

interface Deps {
  readonly subscriptions: Pick<SubscriptionWorkflows, 'snapshot'>
  readonly config: Pick<Config, 'temporal'>
  readonly log: Logger
}

/** Never rejects, and answers within {@link snapshotMillisMax}. */
export async function showSubscriptionWorkflow(
  userId: string,
  { subscriptions, config, log }: Deps,
): Promise<z.infer<typeof SubscriptionWorkflowView>> {
  const queried = subscriptions.snapshot(userId).then(
    (snapshot) => snapshot ?? ('not_running' as const),
    (error: unknown) => {
      log.warn({ err: error }, 'a subscription workflow did not answer a query')
      return 'no_answer' as const
    },
  )
  const answer = await Promise.race([queried, sleep(snapshotMillisMax, 'no_answer' as const, { ref: false })])
  const isMissing = answer === 'not_running' || answer === 'no_answer'
  const workflowId = subscriptionWorkflowId(userId)
  return {
    live: isMissing ? null : presentSnapshot(answer),
    live_missing: isMissing ? answer : null,
    workflow_id: workflowId,
    temporal_ui_url: workflowUrl(config.temporal, workflowId),
  }
}

const presentSnapshot = (snapshot: SubscriptionSnapshot) => ({
  plan_tier: snapshot.planTier,
  plan_status: snapshot.planStatus,
  addons: snapshot.addons,
  grace_ends_at: toTimestamp(snapshot.graceEndsAt),
  ends_at: toTimestamp(snapshot.endsAt),
  wakes_at: toTimestamp(snapshot.wakesAt),
})

const toTimestamp = (millis: number | null): string | null => (millis === null ? null : new Date(millis).toISOString())
