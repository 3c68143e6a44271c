/** Deadlines of plans during outages of Temporal or of workers. */
import { beforeAll, describe, expect, inject, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import { connectTemporal } from '../../platform/temporal.ts'
import { createSubscriptionWorkflows, type SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { atEnd } from '../support/at-end.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { operator, passageTo } from '../support/relays.ts'
import {
  activeByRelay,
  dateEventsBack,
  hourMillis,
  isFree,
  isPastDue,
  lastTransition,
  longRelayTimeouts,
  newPaidSubscriber,
  newSubscriber,
  type Subscriber,
  waitForDisconnect,
  waitForRest,
} from '../support/subscribers.ts'

let service: FakeRelayService
let worker: Lifecycle
/** Reaches Temporal also during an outage. */
let workflows: SubscriptionWorkflows
let passage: Awaited<ReturnType<typeof passageTo>>

beforeAll(async () => {
  passage = await passageTo(`http://${inject('temporalAddress')}`)
  const variables = { ...longRelayTimeouts, TEMPORAL_ADDRESS: new URL(passage.url).host }
  service = await startFakeRelayService({ variables, worker: false })
  worker = await service.startWorker()
  const { temporal: config } = service.api.services.config
  const { client, close } = connectTemporal({ ...config, address: inject('temporalAddress') })
  atEnd(close)
  const { taskQueue } = config
  workflows = createSubscriptionWorkflows(client, {
    taskQueue,
    callMillisMax: 10_000,
    findMaskedEmail: async () => null,
  })
})

interface PastDueSubscriber extends Subscriber {
  readonly relay: SessionView
}

/** A subscriber with an active relay whose payment failed 47 hours ago. */
async function newPastDueSubscriber(): Promise<PastDueSubscriber> {
  const subscriber = await newPaidSubscriber(service)
  const relay = await subscriber.startRelay()
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, Date.now() - 47 * hourMillis)
  await subscriber.waitForPlan(isPastDue)
  await waitForRest(service, subscriber)
  return { ...subscriber, relay }
}

const grantPlan = async ({ userId }: Subscriber) =>
  service.api.post<{ entitlement: { plan_tier: string } }>(
    `/admin/users/${userId}/grant`,
    { plan_tier: 'paid' },
    { headers: operator },
  )

const planHistory = async (subscriber: Subscriber) =>
  (await subscriber.planHistory()).map((had) => `${had.planTier} ${had.planStatus}`)

const outages = [
  {
    name: 'no worker runs',
    begin: () => worker.stop(),
    end: async () => {
      worker = await service.startWorker()
    },
  },
  { name: 'Temporal is unreachable', begin: () => passage.block(), end: () => passage.open() },
]

describe.each(outages)('when payment grace periods end while $name', ({ begin, end }) => {
  let unpaid: PastDueSubscriber
  let paidInGrace: PastDueSubscriber
  let paidAfterGrace: PastDueSubscriber
  let granted: Subscriber
  let grantAnswer: Awaited<ReturnType<typeof grantPlan>>

  beforeAll(async () => {
    const subscribers = [newPastDueSubscriber(), newPastDueSubscriber(), newPastDueSubscriber()] as const
    ;[unpaid, paidInGrace, paidAfterGrace, granted] = await Promise.all([...subscribers, newSubscriber(service)])
    await begin()
    const answer = grantPlan(granted)
    await paidInGrace.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    // Temporal itself runs on: each workflow looks again as soon as its worker is back.
    for (const { userId } of [unpaid, paidInGrace, paidAfterGrace]) {
      await dateEventsBack(service.api, { userId }, 2 * hourMillis)
      await workflows.wake(userId)
    }
    await paidAfterGrace.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    grantAnswer = await answer
    await end()
  })

  test('a plan ends with its relay after the outage', async () => {
    await unpaid.waitForPlan(isFree)
    await waitForDisconnect(service, unpaid.relay)
    expect(await planHistory(unpaid)).toEqual(['paid active', 'paid past_due', 'free none'])
  })

  test('a payment that was accepted during the outage counts, and the plan never ends', async () => {
    for (const subscriber of [paidInGrace, paidAfterGrace]) {
      await subscriber.waitForPlan((plan) => plan.planStatus === 'active')
      expect(await planHistory(subscriber)).toEqual(['paid active', 'paid past_due', 'paid active'])
      expect(await lastTransition(service, subscriber.relay)).toEqual(activeByRelay)
    }
  })

  test('a grant is answered with the unchanged plan, and takes effect afterwards', async () => {
    expect(grantAnswer.status).toBe(200)
    expect(grantAnswer.body.entitlement.plan_tier).toBe('free')
    await granted.waitForPlan((plan) => plan.planTier === 'paid')
  })
})
