/** The subscription workflow itself: lost signals, termination, continue-as-new. */
import { randomUUID } from 'node:crypto'
import pLimit from 'p-limit'
import { beforeAll, describe, expect, test } from 'vitest'
import { recordEventIn } from '../../db/billing/events.ts'
import { recordEvent } from '../../db/transactions/record-billing-event.ts'
import type { BillingEvent } from '../../domain/billing/event.ts'
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import { maskEmail } from '../../domain/identity/masked-email.ts'
import * as messages from '../../workflows/messages.ts'
import { createSubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { waitForBlockedQuery } from '../support/locks.ts'
import { eventually } from '../support/relays.ts'
import {
  activeByRelay,
  addonSubscriptionId,
  dateEventsBack,
  hourMillis,
  isFree,
  isPastDue,
  lastTransition,
  longRelayTimeouts,
  newPaidSubscriber,
  newSubscriber,
  passTime,
  paymentGraceMillis,
  type Subscriber,
  subscriptionHandle,
  triggerJob,
  waitForAppliedEvents,
  waitForDisconnect,
  waitForRest,
} from '../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
})

/** Sends a payment failure of 47 hours ago, and returns the end of the payment grace period. */
async function failPayment(subscriber: Subscriber): Promise<number> {
  const failedAt = Date.now() - 47 * hourMillis
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
  await subscriber.waitForPlan(isPastDue)
  await waitForRest(service, subscriber)
  return failedAt + paymentGraceMillis
}

/** Starts a workflow that continues as new after that many history events instead of some thousands. */
const startWithShortHistory = ({ userId }: Subscriber, historyEventsMax: number) => {
  const { temporal, config } = service.api.services
  const { taskQueue } = config.temporal
  const options = { taskQueue, callMillisMax: 10_000, findMaskedEmail: async () => null, historyEventsMax }
  return createSubscriptionWorkflows(temporal, options).wake(userId)
}

/** An event for `recordEvent`, which sends no signal. */
function planEvent(
  { userId, subscriptionId }: Subscriber,
  fields: Pick<BillingEvent, 'action' | 'invoiceId'>,
): ReceivedBillingEvent {
  const key = randomUUID()
  const bare = { provider: 'sandbox', kind: 'plan', quantity: null, amount: null, periodStart: null } as const
  const event = { ...bare, ...fields, key, subscriptionId, at: Date.now(), periodEnd: null }
  return {
    provider: 'sandbox',
    key,
    type: fields.action,
    userRef: userId,
    event,
    problem: null,
    body: Buffer.from('{}'),
  }
}

describe.concurrent('the subscription workflow', () => {
  test('applies an event whose signal was lost', async () => {
    const subscriber = await newSubscriber(service)
    await recordEvent(service.api.sql, planEvent(subscriber, { action: 'activate', invoiceId: null }))
    await subscriber.waitForPlan((plan) => plan.planTier === 'paid')
  })

  test('is started again after a termination, and meets the deadline', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    await failPayment(subscriber)
    await subscriptionHandle(service, subscriber).terminate('terminated by an operator')
    await dateEventsBack(service.api, subscriber, 2 * hourMillis)
    await service.api.sql`
      update users set entitlement_due_at = entitlement_due_at - interval '2 hours' where id = ${subscriber.userId}`
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid' })
    await triggerJob(service, 'wake_subscriptions')
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
  })

  test('reads its inbox when its account has another plan status, as after a restore of one store', async () => {
    const subscriber = await newPaidSubscriber(service)
    await failPayment(subscriber)
    await service.api.sql`update users set plan_status = 'cancelled' where id = ${subscriber.userId}`
    await triggerJob(service, 'restart_workflows')
    await subscriber.waitForPlan(isPastDue)
  })

  test('ignores a cancellation: the paid plan and its deadline stay', async () => {
    const subscriber = await newPaidSubscriber(service)
    const handle = subscriptionHandle(service, subscriber)
    await handle.cancel()
    await waitForRest(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    const endsAt = await failPayment(subscriber)
    await handle.cancel()
    await waitForRest(service, subscriber)
    expect(await handle.query(messages.subscriptionSnapshot)).toMatchObject({ planTier: 'paid', wakesAt: endsAt })
    expect((await handle.describe()).status.name).toBe('RUNNING')
    await passTime(service.api, subscriber, endsAt - Date.now())
    await subscriber.waitForPlan(isFree)
  })

  test('continues as new during a storm of events, without losing one or the deadline', async () => {
    const subscriber = await newPaidSubscriber(service)
    await subscriptionHandle(service, subscriber).terminate('replaced by one that continues as new early')
    await startWithShortHistory(subscriber, 40)
    const first = await subscriptionHandle(service, subscriber).describe()
    const endsAt = await failPayment(subscriber)
    const began = Date.now() - 100_000
    const limit = pLimit(4)
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        limit(() => {
          const addons = { subscription_id: addonSubscriptionId(subscriber), quantity: index % 4 }
          return subscriber.sendEvent('addon.updated', addons, began + index)
        }),
      ),
    )
    await waitForAppliedEvents(service, subscriber)
    const now = await eventually(
      () => subscriptionHandle(service, subscriber).describe(),
      ({ runId }) => runId !== first.runId,
    )
    expect(now.status.name).toBe('RUNNING')
    expect(now.typedSearchAttributes.getAll().find(({ key }) => key.name === 'UserId')?.value).toBe(subscriber.userId)
    const plan = { planTier: 'paid', planStatus: 'past_due', addons: 3, paymentGraceEndsAt: new Date(endsAt) }
    expect(await subscriber.fetchPlan()).toMatchObject(plan)
    // Temporal delays the first task of a run that follows a short one. Until then the run has nothing to show.
    const snapshot = await eventually(
      () => subscriptionHandle(service, subscriber).query(messages.subscriptionSnapshot),
      (shown) => shown !== null,
    )
    expect(snapshot).toMatchObject({ planStatus: 'past_due', wakesAt: endsAt })
    await waitForRest(service, subscriber)
    await passTime(service.api, subscriber, endsAt - Date.now() - 1500)
    await subscriber.waitForPlan(isFree)
    const applied = await service.api.sql`
      select from billing_events where user_id = ${subscriber.userId} and status = 'applied'`
    expect(applied).toHaveLength(42)
  })

  test('reads its inbox again when an event is accepted while it writes the end of the plan', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    await failPayment(subscriber)
    await service.api.sql.begin(async (tx) => {
      // This lock blocks the workflow's write, and does not block new events.
      await tx`select from users where id = ${subscriber.userId} for share`
      await passTime(service.api, subscriber, 2 * hourMillis)
      await waitForBlockedQuery(service.api.sql, tx)
      await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    })
    await subscriber.waitForPlan((plan) => plan.planStatus === 'active')
    expect((await subscriber.planHistory()).filter(isFree)).toEqual([])
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })

  test('waits for an event that is being accepted while the plan ends', async () => {
    const subscriber = await newPaidSubscriber(service)
    await failPayment(subscriber)
    await service.api.sql.begin(async (tx) => {
      await recordEventIn(tx, planEvent(subscriber, { action: 'payment_recovery', invoiceId: 'inv_2' }))
      await passTime(service.api, subscriber, 2 * hourMillis)
      await waitForBlockedQuery(service.api.sql, tx)
    })
    await subscriber.waitForPlan((plan) => plan.planStatus === 'active')
    expect((await subscriber.planHistory()).filter(isFree)).toEqual([])
  })

  test('completes when the account is free without a deadline, and starts again with the next event', async () => {
    const subscriber = await newPaidSubscriber(service)
    await subscriber.sendEvent('subscription.downgraded')
    await subscriber.waitForPlan(isFree)
    await eventually(
      () => subscriptionHandle(service, subscriber).describe(),
      ({ status }) => status.name === 'COMPLETED',
    )
    await subscriber.sendEvent('subscription.activated', { subscription_id: 'another-subscription' })
    await subscriber.waitForPlan((plan) => plan.planTier === 'paid')
    expect((await subscriptionHandle(service, subscriber).describe()).status.name).toBe('RUNNING')
  })
})

describe.concurrent('in the Temporal UI', () => {
  test('subscriptions can be searched by plan and account, and show their entitlement and next deadline', async () => {
    const subscriber = await newPaidSubscriber(service, { addons: 1 })
    const endsAt = new Date(await failPayment(subscriber)).toISOString()
    const handle = subscriptionHandle(service, subscriber)
    const query = `PlanTier = 'paid' AND PlanStatus = 'past_due' AND UserId = '${subscriber.userId}'`
    const found = await eventually(
      async () => {
        const ids: string[] = []
        for await (const { workflowId } of service.api.services.temporal.workflow.list({ query })) ids.push(workflowId)
        return ids
      },
      (ids) => ids.length === 1,
    )
    expect(found).toEqual([messages.subscriptionWorkflowId(subscriber.userId)])
    expect(await (await handle.describe()).staticSummary()).toBe(`Subscription of account ${subscriber.userId}`)
    await waitForRest(service, subscriber)
    expect(await (await handle.describe()).staticDetails()).toBe(
      `- account \`${subscriber.userId}\`\n- address \`${maskEmail(subscriber.email)}\``,
    )
    const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata')
    expect(currentDetails).toBe(
      `**past due, downgrade at ${endsAt}, add-ons: 1** · payment grace period ends at ${endsAt}`,
    )
    const { events } = await handle.fetchHistory()
    const timer = (events ?? []).findLast((event) => event.timerStartedEventAttributes)
    expect(Buffer.from(timer?.userMetadata?.summary?.data ?? []).toString()).toBe(
      `"payment grace period ends at ${endsAt}"`,
    )
    expect(await handle.query(messages.subscriptionSnapshot)).toMatchObject({
      planStatus: 'past_due',
      wakesAt: Date.parse(endsAt),
    })
  })
})
