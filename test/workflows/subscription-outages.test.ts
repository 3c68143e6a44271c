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

/** From the failure that is told to the end of its 48 hours: the service is gone by then, and back only afterwards. */
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

interface Debtor extends Subscriber {
  readonly onAirSince: SessionView
  readonly graceEndsAt: number
}

/** Somebody with a relay on the air whose payment failed almost 48 hours ago. */
async function debtor(): Promise<Debtor> {
  const subscriber = await newPaidSubscriber(service)
  const relay = await subscriber.startRelay()
  const failedAt = Date.now() - paymentGraceMillis + leftMillis
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
  await subscriber.waitForPlan(isPastDue)
  return { ...subscriber, onAirSince: relay, graceEndsAt: failedAt + paymentGraceMillis }
}

const grant = async ({ userId }: Subscriber) =>
  service.api.post<{ entitlement: { plan_tier: string } }>(
    `/admin/users/${userId}/grant`,
    { plan_tier: 'paid' },
    { headers: operator },
  )

const statusesHad = async (subscriber: Subscriber) =>
  (await subscriber.planHistory()).map((had) => `${had.planTier} ${had.planStatus}`)

const outages = [
  {
    name: 'no worker is there',
    begin: () => worker.stop(),
    end: async () => {
      worker = await service.startWorker()
    },
  },
  { name: 'Temporal is away', begin: () => passage.block(), end: () => passage.open() },
]

describe.each(outages)('when 48 hours end while $name', ({ begin, end }) => {
  let late: Debtor
  let payer: Debtor
  let latePayer: Debtor
  let friend: Subscriber
  let granted: Awaited<ReturnType<typeof grant>>

  beforeAll(async () => {
    ;[late, payer, latePayer, friend] = await Promise.all([debtor(), debtor(), debtor(), newSubscriber(service)])
    await begin()
    const answer = grant(friend)
    await payer.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    await sleep(Math.max(0, latePayer.graceEndsAt + 100 - Date.now()))
    await latePayer.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    granted = await answer
    await end()
  })

  test('the plan ends within seconds of the return, and its relay with it', async () => {
    await late.waitForPlan(isFree, 10)
    await waitForDisconnect(service, late.onAirSince, 10)
    expect(await statusesHad(late)).toEqual(['paid active', 'paid past_due', 'free none'])
  })

  test('a payment that was accepted meanwhile counts: nothing ends, not for a moment', async () => {
    for (const one of [payer, latePayer]) {
      await one.waitForPlan((plan) => plan.planStatus === 'active', 10)
      expect(await statusesHad(one)).toEqual(['paid active', 'paid past_due', 'paid active'])
      expect(await lastTransition(service, one.onAirSince)).toEqual(activeByRelay)
    }
  })

  test('a grant is answered with what was so far, and carried out afterwards', async () => {
    expect(granted.status).toBe(200)
    expect(granted.body.entitlement.plan_tier).toBe('free')
    await friend.waitForPlan((plan) => plan.planTier === 'paid')
  })
})
