import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import type { SessionView } from '../../api/relay-session-view.ts'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { operator, passageTo } from '../support/relays.ts'
import {
  activeByRelay,
  isFree,
  isPastDue,
  lastTransition,
  longRelayTimeouts,
  newPaidSubscriber,
  newSubscriber,
  paymentGraceMillis,
  type Subscriber,
  waitForDisconnect,
} from '../support/subscribers.ts'

/** Time until the payment grace period ends. The outage begins before, and ends after. */
const leftMillis = 5000

let service: FakeRelayService
let worker: Lifecycle
let passage: Awaited<ReturnType<typeof passageTo>>

beforeAll(async () => {
  passage = await passageTo(`http://${inject('temporalAddress')}`)
  const variables = { ...longRelayTimeouts, TEMPORAL_ADDRESS: new URL(passage.url).host }
  service = await startFakeRelayService({ variables, worker: false })
  worker = await service.startWorker()
})

interface PastDueSubscriber extends Subscriber {
  readonly relay: SessionView
  readonly graceEndsAt: number
}

/** A subscriber with an active relay whose payment failed almost 48 hours ago. */
async function newPastDueSubscriber(): Promise<PastDueSubscriber> {
  const subscriber = await newPaidSubscriber(service)
  const relay = await subscriber.startRelay()
  const failedAt = Date.now() - paymentGraceMillis + leftMillis
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
  await subscriber.waitForPlan(isPastDue)
  return { ...subscriber, relay, graceEndsAt: failedAt + paymentGraceMillis }
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
    ;[unpaid, paidInGrace, paidAfterGrace, granted] = await Promise.all([
      newPastDueSubscriber(),
      newPastDueSubscriber(),
      newPastDueSubscriber(),
      newSubscriber(service),
    ])
    await begin()
    const answer = grantPlan(granted)
    await paidInGrace.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    await sleep(Math.max(0, paidAfterGrace.graceEndsAt + 100 - Date.now()))
    await paidAfterGrace.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    grantAnswer = await answer
    await end()
  })

  test('a plan ends with its relay within seconds after the outage', async () => {
    await unpaid.waitForPlan(isFree)
    await waitForDisconnect(service, unpaid.relay)
    expect(await planHistory(unpaid)).toEqual(['paid active', 'paid past_due', 'free none'])
  })

  test('a payment that was accepted during the outage counts, and the plan never ends', async () => {
    for (const one of [paidInGrace, paidAfterGrace]) {
      await one.waitForPlan((plan) => plan.planStatus === 'active')
      expect(await planHistory(one)).toEqual(['paid active', 'paid past_due', 'paid active'])
      expect(await lastTransition(service, one.relay)).toEqual(activeByRelay)
    }
  })

  test('a grant is answered with the unchanged plan, and takes effect afterwards', async () => {
    expect(grantAnswer.status).toBe(200)
    expect(grantAnswer.body.entitlement.plan_tier).toBe('free')
    await granted.waitForPlan((plan) => plan.planTier === 'paid')
  })
})
