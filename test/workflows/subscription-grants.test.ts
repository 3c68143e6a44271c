/** Complimentary plans: given, ended, and beside paid ones. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createOperatorClient, findUserByEmail, grantPlan as grantFromCommandLine } from '../../cli/plan-grants.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { operator, operatorPassword } from '../support/relays.ts'
import {
  activeByRelay,
  hourMillis,
  isFree,
  lastTransition,
  longRelayTimeouts,
  newPaidSubscriber,
  newSubscriber,
  passTime,
  type Subscriber,
  waitForAppliedEvents,
  waitForDisconnect,
  waitForRest,
} from '../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
})

interface Grant {
  readonly plan_tier: 'free' | 'paid'
  readonly addons?: number
  readonly until?: string
}

interface Entitlement {
  readonly plan_tier: string
  readonly plan_status: string
  readonly max_concurrent_conns: number
}

/**
 * @returns the entitlement in the answer, or the later one if the workflow took longer than the answer waits for it.
 */
async function grantPlan(subscriber: Subscriber, body: Grant): Promise<Entitlement> {
  const path = `/admin/users/${subscriber.userId}`
  const began = performance.now()
  const granted = await service.api.post<{ entitlement: Entitlement }>(`${path}/grant`, body, { headers: operator })
  expect(granted.status).toBe(200)
  if (performance.now() - began < 5000) return granted.body.entitlement
  await waitForAppliedEvents(service, subscriber)
  return (await service.api.get<{ entitlement: Entitlement }>(path, { headers: operator })).body.entitlement
}

const free = { plan_tier: 'free', plan_status: 'none', max_concurrent_conns: 0 }
const paidWith = (addons: number) => ({ plan_tier: 'paid', plan_status: 'active', max_concurrent_conns: 1 + addons })
const isoTimeIn = (millis: number) => new Date(Date.now() + millis).toISOString()

describe.concurrent('a complimentary plan', () => {
  test('is active with its add-ons when the grant is answered, and ended with its relays when the withdrawal is', async () => {
    const subscriber = await newSubscriber(service)
    expect(await grantPlan(subscriber, { plan_tier: 'paid', addons: 2 })).toMatchObject(paidWith(2))
    const relay = await subscriber.startRelay()
    expect(await grantPlan(subscriber, { plan_tier: 'paid', addons: 1 })).toMatchObject(paidWith(1))
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
    expect(await grantPlan(subscriber, { plan_tier: 'free' })).toMatchObject(free)
    await waitForDisconnect(service, relay)
  })

  test('with an end time ends then, with its relays', async () => {
    const subscriber = await newSubscriber(service)
    const until = isoTimeIn(hourMillis)
    expect(await grantPlan(subscriber, { plan_tier: 'paid', until })).toMatchObject(paidWith(0))
    const relay = await subscriber.startRelay()
    await passTime(service.api, subscriber, hourMillis / 2)
    await waitForRest(service, subscriber)
    const planUntil = new Date(Date.parse(until) - hourMillis / 2)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planUntil })
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
    await passTime(service.api, subscriber, hourMillis / 2)
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
  })

  test('that is granted again ends as granted last', async () => {
    const subscriber = await newSubscriber(service)
    await grantPlan(subscriber, { plan_tier: 'paid', until: isoTimeIn(hourMillis) })
    await grantPlan(subscriber, { plan_tier: 'paid' })
    await passTime(service.api, subscriber, 2 * hourMillis)
    await waitForRest(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planUntil: null, entitlementDueAt: null })
  })

  test('with an end time in the past gives nothing', async () => {
    const subscriber = await newSubscriber(service)
    expect(await grantPlan(subscriber, { plan_tier: 'paid', until: isoTimeIn(-hourMillis) })).toMatchObject(free)
  })

  test('does not change a paid plan, and outlasts it', async () => {
    const subscriber = await newPaidSubscriber(service, { addons: 1 })
    const relay = await subscriber.startRelay()
    await grantPlan(subscriber, { plan_tier: 'paid', addons: 1 })
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', addons: 2 })
    expect(await grantPlan(subscriber, { plan_tier: 'free' })).toMatchObject(paidWith(1))
    await grantPlan(subscriber, { plan_tier: 'paid' })
    await subscriber.sendEvent('subscription.downgraded')
    await waitForAppliedEvents(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid' })
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })

  test('keeps the relays running when the payment grace period of a paid plan ends', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    await grantPlan(subscriber, { plan_tier: 'paid' })
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, Date.now() - 49 * hourMillis)
    await waitForAppliedEvents(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })

  test('can be granted on the command line', async () => {
    const subscriber = await newSubscriber(service)
    const operatorClient = createOperatorClient(service.api.url, operatorPassword)
    expect((await findUserByEmail(operatorClient, subscriber.email))?.id).toBe(subscriber.userId)
    await grantFromCommandLine(operatorClient, subscriber.userId, { plan_tier: 'paid', addons: 3 })
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', addons: 3 })
    await subscriber.startRelay()
  })
})
