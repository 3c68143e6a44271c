/** Operators' view of accounts' subscriptions. */
import { z } from 'zod'
import { listUnusedBilling } from '../../../db/billing/account-figures.ts'
import { listSubscriptions } from '../../../db/billing/account-subscriptions.ts'
import { findEntitlement } from '../../../db/billing/entitlements.ts'
import { findPlan } from '../../../db/billing/subscriptions.ts'
import { billingSources } from '../../../domain/billing/event.ts'
import { subscriptionKinds, subscriptionStatuses } from '../../../domain/billing/plans.ts'
import { pageOf, present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { SubscriptionWorkflowView, showSubscriptionWorkflow } from '../../views/subscription-workflow.ts'
import { EntitlementView, presentEntitlement } from '../identity/session-summary.ts'
import { route } from '../route.ts'
import { maskedEmail } from '../schemas.ts'

const OperatorSubscription = z
  .object({
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
  .meta({ id: 'OperatorSubscription' })

export const listOfAccount = route.operator({
  id: 'listUserSubscriptions',
  summary: 'List the subscriptions of an account',
  description: "An account's subscriptions at billing providers, ended ones last, at most 100.",
  params: z.object({ id }),
  answers: { 200: z.object({ subscriptions: z.array(OperatorSubscription), next_cursor: z.null() }) },
  refuses: ['not_found'],
  handle: async ({ params }, { sql }) => {
    const [plan, subscriptions] = await Promise.all([findPlan(sql, params.id), listSubscriptions(sql, params.id)])
    if (!plan) throw new Refusal('not_found')
    return ok({ subscriptions: subscriptions.map((row) => present(OperatorSubscription, row)), next_cursor: null })
  },
})

export const showSubscription = route.operator({
  id: 'inspectPlan',
  summary: 'Inspect the plan of an account',
  description:
    'The entitlement of an account, the snapshot of its subscription workflow (null if it does not run or does not answer in time), and the address of the workflow in the Temporal UI.',
  params: z.object({ id }),
  answers: {
    200: z.object({ entitlement: EntitlementView, ...SubscriptionWorkflowView.shape }),
  },
  refuses: ['not_found'],
  handle: async ({ params }, services) => {
    const { sql, config } = services
    const entitlement = await findEntitlement(sql, params.id, config.timeBank)
    if (!entitlement) throw new Refusal('not_found')
    return ok({
      entitlement: presentEntitlement(entitlement),
      ...(await showSubscriptionWorkflow(params.id, services)),
    })
  },
})

const pageMax = 50

const BilledAccount = z.object({
  user_id: id,
  masked_email: maskedEmail,
  addons_without_plan: z.int(),
  billed_plans: z.int(),
})

export const listUnusedBilledAccounts = route.operator({
  id: 'listUnusedBilling',
  summary: 'List accounts that pay for nothing',
  description: 'Accounts that pay for nothing: for add-ons without a plan, or for more than one plan.',
  query: z.object({ billed: z.enum(['without_plan', 'twice']), cursor: id.optional() }),
  answers: {
    200: z.object({
      accounts: z.array(BilledAccount),
      next_cursor: id.nullable(),
    }),
  },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const rows = await listUnusedBilling(sql, query.billed, query.cursor, pageMax + 1)
    const page = pageOf(rows, {
      size: pageMax,
      presentRow: (row) => present(BilledAccount, row),
      cursorOf: ({ userId }) => userId,
    })
    return ok({ accounts: page.items, next_cursor: page.next_cursor })
  },
})
