import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { type ReceivedBillingEvent, recordEvent, recordEventIn } from '../../db/billing-events.ts'
import type { BillingEvent } from '../../domain/billing-event.ts'
import * as messages from '../../workflows/messages.ts'
import { createSubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { streamTokenOf } from '../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import {
  activeByRelay,
  addonSubscriptionId,
  isFree,
  isPastDue,
  lastTransition,
  longRelayTimeouts,
  newPaidSubscriber,
  newSubscriber,
  paymentGraceMillis,
  type Subscriber,
  subscriptionHandle,
  triggerJob,
  waitForDisconnect,
} from '../support/subscribers.ts'
import { untilAtRest } from '../support/workflows.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
})

/** Tells that a payment failed almost 48 hours ago, and answers when they end. */
async function fail(subscriber: Subscriber, leftMillis = 2000): Promise<number> {
  const failedAt = Date.now() - paymentGraceMillis + leftMillis
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
  await subscriber.waitForPlan(isPastDue)
  return failedAt + paymentGraceMillis
}

/** An actor that hands on after that many events instead of some thousands. */
const startWithShortHistory = ({ userId }: Subscriber, historyEventsMax: number) => {
  const { temporal, config } = service.api.services
  const { taskQueue } = config.temporal
  return createSubscriptionWorkflows(temporal, { taskQueue, callMillisMax: 10_000, historyEventsMax }).wake(userId)
}

const inboxEmpty = ({ userId }: Subscriber) =>
  eventually(
    () => service.api.sql`select from billing_events where user_id = ${userId} and status = 'pending'`,
    (pending) => pending.length === 0,
  )

/** An event as the inbox keeps it, of which no actor is told. */
function toldNowhere(
  { userId, subscriptionId }: Subscriber,
  what: Pick<BillingEvent, 'action' | 'invoiceId'>,
): ReceivedBillingEvent {
  const key = randomUUID()
  const bare = { provider: 'sandbox', kind: 'plan', quantity: null, amount: null, periodStart: null } as const
  const event = { ...bare, ...what, key, subscriptionId, at: Date.now(), periodEnd: null }
  return { provider: 'sandbox', key, type: what.action, userRef: userId, event, problem: null, body: Buffer.from('{}') }
}

/** Resolves after the time, once an actor wants to write what others hold. */
const untilAnActorWaits = (at: number) =>
  eventually(
    () => service.api.sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%entitlement_version%'`,
    (waiting) => waiting.length > 0 && Date.now() > at,
  )

describe.concurrent('the actor of a subscription', () => {
  test('takes an event that nobody told it of', async () => {
    const subscriber = await newSubscriber(service)
    await recordEvent(service.api.sql, toldNowhere(subscriber, { action: 'activate', invoiceId: null }))
    await subscriber.waitForPlan((plan) => plan.planTier === 'paid', 10)
  })

  test('is followed by another that keeps the deadline, when it is terminated', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    const endsAt = await fail(subscriber)
    await subscriptionHandle(service, subscriber).terminate('an operator in panic')
    await sleep(endsAt + 300 - Date.now())
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid' })
    // It is given some seconds before it counts as lost: they are over.
    await service.api.sql`
      update users set entitlement_due_at = entitlement_due_at - interval '20 seconds' where id = ${subscriber.userId}`
    await triggerJob(service, 'wake_subscriptions')
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
  })

  test('can not be cancelled: the plan that was paid for stays, and the deadline too', async () => {
    const subscriber = await newPaidSubscriber(service)
    await subscriptionHandle(service, subscriber).cancel()
    await sleep(500)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    const endsAt = await fail(subscriber, 4000)
    await subscriptionHandle(service, subscriber).cancel()
    await sleep(endsAt - 1500 - Date.now())
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid' })
    await subscriber.waitForPlan(isFree)
  })

  test('hands on when its history grows long, in the midst of a storm, with nothing lost and the deadline kept', async () => {
    const subscriber = await newPaidSubscriber(service)
    await subscriptionHandle(service, subscriber).terminate('to be started as one that hands on early')
    await startWithShortHistory(subscriber, 40)
    const first = await subscriptionHandle(service, subscriber).describe()
    const endsAt = await fail(subscriber, 6000)
    const began = Date.now() - 100_000
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        await sleep(index * 20)
        const addons = { subscription_id: addonSubscriptionId(subscriber), quantity: index % 4 }
        await subscriber.sendEvent('addon.updated', addons, began + index)
      }),
    )
    await inboxEmpty(subscriber)
    const now = await eventually(
      () => subscriptionHandle(service, subscriber).describe(),
      ({ runId }) => runId !== first.runId,
    )
    expect(now.status.name).toBe('RUNNING')
    expect(now.typedSearchAttributes.getAll().find(({ key }) => key.name === 'UserId')?.value).toBe(subscriber.userId)
    const plan = { planTier: 'paid', planStatus: 'past_due', addons: 3, paymentGraceEndsAt: new Date(endsAt) }
    expect(await subscriber.fetchPlan()).toMatchObject(plan)
    await sleep(Math.max(0, endsAt - 200 - Date.now()))
    expect(await subscriber.fetchPlan()).toMatchObject(plan)
    await subscriber.waitForPlan(isFree)
    const applied = await service.api.sql`
      select from billing_events where user_id = ${subscriber.userId} and status = 'applied'`
    expect(applied).toHaveLength(42)
  })

  test('looks again when an event is accepted while the end of the plan is being written', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    const endsAt = await fail(subscriber)
    await service.api.sql.begin(async (tx) => {
      // As long as this is held, the actor can't write; an event can be kept beside it.
      await tx`select from users where id = ${subscriber.userId} for share`
      await untilAnActorWaits(endsAt)
      await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    })
    await subscriber.waitForPlan((plan) => plan.planStatus === 'active')
    expect((await subscriber.planHistory()).filter(isFree)).toEqual([])
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })

  test('waits for an event that is just being accepted when the plan is to end', async () => {
    const subscriber = await newPaidSubscriber(service)
    const endsAt = await fail(subscriber)
    await service.api.sql.begin(async (tx) => {
      await recordEventIn(tx, toldNowhere(subscriber, { action: 'payment_recovery', invoiceId: 'inv_2' }))
      await untilAnActorWaits(endsAt)
    })
    await subscriber.waitForPlan((plan) => plan.planStatus === 'active')
    expect((await subscriber.planHistory()).filter(isFree)).toEqual([])
  })

  test('ends when there is nothing left to wait for, and is there again when there is', async () => {
    const subscriber = await newPaidSubscriber(service)
    await subscriber.sendEvent('subscription.downgraded')
    await subscriber.waitForPlan(isFree)
    await eventually(
      () => subscriptionHandle(service, subscriber).describe(),
      ({ status }) => status.name === 'COMPLETED',
    )
    await subscriber.sendEvent('subscription.activated', { subscription_id: 'another one' })
    await subscriber.waitForPlan((plan) => plan.planTier === 'paid')
    expect((await subscriptionHandle(service, subscriber).describe()).status.name).toBe('RUNNING')
  })
})

describe.concurrent('in the Temporal UI', () => {
  test('subscriptions are found by plan and by account, and say how they stand and what comes next', async () => {
    const subscriber = await newPaidSubscriber(service, { addons: 1 })
    const endsAt = new Date(await fail(subscriber, 60_000)).toISOString()
    const handle = subscriptionHandle(service, subscriber)
    const query = `PlanTier = 'paid' AND UserId = '${subscriber.userId}'`
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
    await untilAtRest(handle)
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

  test('no history holds a secret or an address', async () => {
    const subscriber = await newPaidSubscriber(service, { addons: 1 })
    await fail(subscriber)
    const text = JSON.stringify(await subscriptionHandle(service, subscriber).fetchHistory())
    const decoded = [...text.matchAll(/"data":"([A-Za-z0-9+/=]+)"/g)]
      .map(([, data = '']) => Buffer.from(data, 'base64').toString())
      .join('\n')
    expect(decoded).toContain(subscriber.subscriptionId)
    const streamToken = await streamTokenOf(service.api, subscriber.userId)
    const { webhookSecrets } = service.api.services.config.billing
    for (const secret of [subscriber.email, subscriber.bearer, streamToken, ...webhookSecrets]) {
      expect(secret).toBeTruthy()
      expect(text + decoded).not.toContain(secret)
    }
  })
})
