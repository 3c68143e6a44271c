/** Records the histories that `subscription-history.test.ts` replays: `npm run histories`. */
import { beforeAll, test } from 'vitest'
import * as messages from '../../workflows/messages.ts'
import { createSubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { recordHistory } from '../support/histories.ts'
import { eventually, operator } from '../support/relays.ts'
import {
  addonSubscriptionId,
  hourMillis,
  longRelayTimeouts,
  newPaidSubscriber,
  newSubscriber,
  paymentGraceMillis,
  type Subscriber,
  subscriptionHandle,
  waitForDisconnect,
} from '../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { ...longRelayTimeouts, SVC_ADDON_NOTICE_SECONDS: '2' },
  })
})

const paid = (addons = 0) => newPaidSubscriber(service, { addons })
const until = (subscriber: Subscriber, status: string) => subscriber.waitForPlan((plan) => plan.planStatus === status)
const failPayment = async (subscriber: Subscriber, leftMillis: number) => {
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, Date.now() - paymentGraceMillis + leftMillis)
  await until(subscriber, 'past_due')
}

interface Run {
  readonly userId: string
  /** The latest run unless given. */
  readonly runId?: string
}

/** By name of the history: takes the steps and returns the run to record. */
const paths: Record<string, () => Promise<Run>> = {
  activated: () => paid(2),
  'failed-and-downgraded': async () => {
    const subscriber = await paid()
    const relay = await subscriber.startRelay()
    await failPayment(subscriber, 1500)
    await until(subscriber, 'none')
    await waitForDisconnect(service, relay)
    return subscriber
  },
  recovered: async () => {
    const subscriber = await paid()
    await failPayment(subscriber, hourMillis)
    await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    await until(subscriber, 'active')
    return subscriber
  },
  cancelled: async () => {
    const subscriber = await paid()
    await subscriber.sendEvent('subscription.cancelled', {
      period_end: new Date(Date.now() + hourMillis).toISOString(),
    })
    await until(subscriber, 'cancelled')
    return subscriber
  },
  'fewer-addons': async () => {
    const subscriber = await paid(1)
    await subscriber.startRelay()
    const newest = await subscriber.startRelay()
    await subscriber.sendEvent('addon.updated', { subscription_id: addonSubscriptionId(subscriber), quantity: 0 })
    await waitForDisconnect(service, newest)
    return subscriber
  },
  'grant-ended': async () => {
    const subscriber = await newSubscriber(service)
    const body = { plan_tier: 'paid', until: new Date(Date.now() + 1500).toISOString() }
    await service.api.post(`/admin/users/${subscriber.userId}/grant`, body, { headers: operator })
    await until(subscriber, 'none')
    return subscriber
  },
  'continued-as-new': async () => {
    const subscriber = await paid()
    const { temporal, config } = service.api.services
    const { taskQueue } = config.temporal
    await subscriptionHandle(service, subscriber).terminate('replaced by one that continues as new early')
    const options = { taskQueue, callMillisMax: 10_000, findMaskedEmail: async () => null, historyEventsMax: 8 }
    await createSubscriptionWorkflows(temporal, options).wake(subscriber.userId)
    await eventually(
      () => subscriptionHandle(service, subscriber).query(messages.subscriptionSnapshot),
      (snapshot) => snapshot !== null,
    )
    const { runId } = await subscriptionHandle(service, subscriber).describe()
    await failPayment(subscriber, hourMillis)
    return { userId: subscriber.userId, runId }
  },
}

/** Event types by number: completed; waits with a timer; waits for a signal; continued as new. */
const lastEvents = ['2', '17', '40', '28']

test.for(Object.entries(paths))('%s', async ([name, take]) => {
  const { userId, runId } = await take()
  const workflowId = messages.subscriptionWorkflowId(userId)
  // The last write is in Postgres shortly before it is in the history.
  await eventually(
    () => service.api.services.temporal.workflow.getHandle(workflowId, runId).fetchHistory(),
    ({ events }) => lastEvents.includes(String(events?.at(-1)?.eventType)),
  )
  await recordHistory(workflowId, `subscriptions/${name}`, runId)
})
