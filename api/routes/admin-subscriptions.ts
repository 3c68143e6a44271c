/** Operators' view of accounts' subscriptions. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { listUnusedBilling } from '../../db/account-figures.ts'
import { type AccountSubscription, listSubscriptions } from '../../db/account-subscriptions.ts'
import { findEntitlement } from '../../db/entitlements.ts'
import { findPlan } from '../../db/subscriptions.ts'
import { billingSources } from '../../domain/billing-event.ts'
import { planStatuses, planTiers, subscriptionKinds, subscriptionStatuses } from '../../domain/plans.ts'
import { workflowUrl } from '../../platform/temporal.ts'
import { type SubscriptionSnapshot, subscriptionWorkflowId } from '../../workflows/messages.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { id, timestamp } from '../http/schemas.ts'
import type { Services } from '../services.ts'
import { EntitlementView, presentEntitlement } from './session-summary.ts'

export const OperatorSubscription = z.object({
  provider: z.enum(billingSources),
  subscription_id: z.string(),
  kind: z.enum(subscriptionKinds),
  status: z.enum(subscriptionStatuses),
  quantity: z.int(),
  period_start: timestamp.nullable(),
  period_end: timestamp.nullable(),
  /** When the stored subscription last changed. */
  updated_at: timestamp,
  /** The provider's customer id. */
  customer_id: z.string().nullable(),
})

const present = (one: AccountSubscription): z.infer<typeof OperatorSubscription> => ({
  provider: one.provider,
  subscription_id: one.subscriptionId,
  kind: one.kind,
  status: one.status,
  quantity: one.quantity,
  period_start: one.periodStart?.toISOString() ?? null,
  period_end: one.periodEnd?.toISOString() ?? null,
  updated_at: one.updatedAt.toISOString(),
  customer_id: one.customerId,
})

export const listOfAccount = route({
  method: 'GET',
  path: '/admin/users/{id}/subscriptions',
  summary: 'List the subscriptions of an account',
  caller: 'operator',
  params: z.object({ id }),
  answers: { 200: z.object({ subscriptions: z.array(OperatorSubscription), next_cursor: z.null() }) },
  refuses: ['not_found'],
  handle: async ({ params }, { sql }) => {
    const [plan, subscriptions] = await Promise.all([findPlan(sql, params.id), listSubscriptions(sql, params.id)])
    if (!plan) throw new Refusal('not_found')
    return ok({ subscriptions: subscriptions.map(present), next_cursor: null })
  },
})

/** The longest wait for the workflow's snapshot, in milliseconds: without a worker the rest of the answer is still useful. */
const snapshotMillisMax = 2000

export const showSubscription = route({
  method: 'GET',
  path: '/admin/users/{id}/subscription',
  summary: 'Inspect the plan of an account',
  caller: 'operator',
  params: z.object({ id }),
  answers: {
    200: z.object({
      entitlement: EntitlementView,
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
      workflow_id: z.string(),
      temporal_ui_url: z.string(),
    }),
  },
  refuses: ['not_found'],
  handle: async ({ params }, services) => {
    const { sql, config } = services
    const entitlement = await findEntitlement(sql, params.id, config.timeBank)
    if (!entitlement) throw new Refusal('not_found')
    const workflowId = subscriptionWorkflowId(params.id)
    return ok({
      entitlement: presentEntitlement(entitlement),
      live: await liveView(params.id, services),
      workflow_id: workflowId,
      temporal_ui_url: workflowUrl(config.temporal, workflowId),
    })
  },
})

/** The workflow's snapshot; null when it does not run or is not available in time. */
async function liveView(userId: string, { subscriptions, log }: Services) {
  const queried = subscriptions.snapshot(userId).catch((error: unknown) => {
    log.warn({ err: error }, 'a subscription workflow did not answer a query')
    return undefined
  })
  const snapshot = await Promise.race([queried, sleep(snapshotMillisMax, undefined, { ref: false })])
  return snapshot ? presentSnapshot(snapshot) : null
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

const pageMax = 50

export const listUnusedBilledAccounts = route({
  method: 'GET',
  path: '/admin/billing/accounts',
  summary: 'List accounts that pay for nothing',
  caller: 'operator',
  query: z.object({ billed: z.enum(['without_plan', 'twice']), cursor: id.optional() }),
  answers: {
    200: z.object({
      accounts: z.array(z.object({ user_id: id, addons_without_plan: z.int(), billed_plans: z.int() })),
      next_cursor: id.nullable(),
    }),
  },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const rows = await listUnusedBilling(sql, query.billed, query.cursor, pageMax + 1)
    const accounts = rows.slice(0, pageMax)
    return ok({
      accounts: accounts.map((one) => ({
        user_id: one.userId,
        addons_without_plan: one.addonsWithoutPlan,
        billed_plans: one.billedPlans,
      })),
      next_cursor: rows.length > pageMax ? (accounts.at(-1)?.userId ?? null) : null,
    })
  },
})
