import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { type ReceivedBillingEvent, recordEvent, recordEventIn } from '../../db/billing-events.ts'
import type { Sql } from '../../db/connection.ts'
import type { BillingEvent } from '../../domain/billing-event.ts'
import { maskEmail } from '../../domain/masked-email.ts'
import * as messages from '../../workflows/messages.ts'
import { createSubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { streamTokenOf } from '../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import {
  activeByRelay,
  addonSubscriptionId,
  hourMillis,
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

/** Sends a payment failure of almost 48 hours ago, and returns the end of the payment grace period. */
async function failPayment(subscriber: Subscriber, leftMillis = 2000): Promise<number> {
  const failedAt = Date.now() - paymentGraceMillis + leftMillis
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
  await subscriber.waitForPlan(isPastDue)
  return failedAt + paymentGraceMillis
}

/** Starts a workflow that continues as new after that many history events instead of some thousands. */
const startWithShortHistory = ({ userId }: Subscriber, historyEventsMax: number) => {
  const { temporal, config } = service.api.services
  const { taskQueue } = config.temporal
  const options = { taskQueue, callMillisMax: 10_000, findMaskedEmail: async () => null, historyEventsMax }
  return createSubscriptionWorkflows(temporal, options).wake(userId)
}

const waitForEmptyInbox = ({ userId }: Subscriber) =>
  eventually(
    () => service.api.sql`select from billing_events where user_id = ${userId} and status = 'pending'`,
    (pending) => pending.length === 0,
  )

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

/** Resolves after the given time, once a workflow waits for a lock that the transaction holds. */
async function waitForBlockedWrite(tx: Sql, at: number): Promise<void> {
  const [{ pid = 0 } = {}] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
  await eventually(
    () => service.api.sql`select from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`,
    (blocked) => blocked.length > 0 && Date.now() > at,
  )
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
    const endsAt = await failPayment(subscriber)
    await subscriptionHandle(service, subscriber).terminate('terminated by an operator')
    await sleep(endsAt + 300 - Date.now())
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid' })
    // The job waits some seconds after a deadline before it wakes the workflow.
    await service.api.sql`
      update users set entitlement_due_at = entitlement_due_at - interval '20 seconds' where id = ${subscriber.userId}`
    await triggerJob(service, 'wake_subscriptions')
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
  })

  test('reads its inbox when its account has another plan status, as after a restore of one store', async () => {
    const subscriber = await newPaidSubscriber(service)
    await failPayment(subscriber, hourMillis)
    await service.api.sql`update users set plan_status = 'cancelled' where id = ${subscriber.userId}`
    await triggerJob(service, 'restart_workflows')
    await subscriber.waitForPlan(isPastDue)
  })

  test('ignores a cancellation: the paid plan and its deadline stay', async () => {
    const subscriber = await newPaidSubscriber(service)
    await subscriptionHandle(service, subscriber).cancel()
    await sleep(500)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    const endsAt = await failPayment(subscriber, 4000)
    await subscriptionHandle(service, subscriber).cancel()
    await sleep(endsAt - 1500 - Date.now())
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid' })
    await subscriber.waitForPlan(isFree)
  })

  test('continues as new during a storm of events, without losing one or the deadline', async () => {
    const subscriber = await newPaidSubscriber(service)
    await subscriptionHandle(service, subscriber).terminate('replaced by one that continues as new early')
    await startWithShortHistory(subscriber, 40)
    const first = await subscriptionHandle(service, subscriber).describe()
    // The storm and the checks before the deadline have this long, which slow machines need.
    const endsAt = await failPayment(subscriber, 25_000)
    const began = Date.now() - 100_000
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        await sleep(index * 20)
        const addons = { subscription_id: addonSubscriptionId(subscriber), quantity: index % 4 }
        await subscriber.sendEvent('addon.updated', addons, began + index)
      }),
    )
    await waitForEmptyInbox(subscriber)
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

  test('reads its inbox again when an event is accepted while it writes the end of the plan', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    const endsAt = await failPayment(subscriber)
    await service.api.sql.begin(async (tx) => {
      // This lock blocks the workflow's write, and does not block new events.
      await tx`select from users where id = ${subscriber.userId} for share`
      await waitForBlockedWrite(tx, endsAt)
      await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    })
    await subscriber.waitForPlan((plan) => plan.planStatus === 'active')
    expect((await subscriber.planHistory()).filter(isFree)).toEqual([])
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })

  test('waits for an event that is being accepted while the plan ends', async () => {
    const subscriber = await newPaidSubscriber(service)
    const endsAt = await failPayment(subscriber)
    await service.api.sql.begin(async (tx) => {
      await recordEventIn(tx, planEvent(subscriber, { action: 'payment_recovery', invoiceId: 'inv_2' }))
      await waitForBlockedWrite(tx, endsAt)
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
    const endsAt = new Date(await failPayment(subscriber, 60_000)).toISOString()
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
    await untilAtRest(handle)
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

  test('no history contains a secret or an email address', async () => {
    const subscriber = await newPaidSubscriber(service, { addons: 1 })
    await failPayment(subscriber)
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
