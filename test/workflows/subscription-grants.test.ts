import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { createOperatorClient } from '../../cli/api-client.ts'
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
  type Subscriber,
  waitForDisconnect,
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

/** The entitlement that the answer carries. */
async function grant({ userId }: Subscriber, body: Grant): Promise<Entitlement> {
  const path = `/admin/users/${userId}/grant`
  const answer = await service.api.post<{ entitlement: Entitlement }>(path, body, { headers: operator })
  expect(answer.status).toBe(200)
  return answer.body.entitlement
}

const free = { plan_tier: 'free', plan_status: 'none', max_concurrent_conns: 0 }
const given = (addons: number) => ({ plan_tier: 'paid', plan_status: 'active', max_concurrent_conns: 1 + addons })
const soon = (millis: number) => new Date(Date.now() + millis).toISOString()

describe.concurrent('a complimentary plan', () => {
  test('is there when it is answered, with its add-ons, and is gone when its withdrawal is: with it the relays', async () => {
    const subscriber = await newSubscriber(service)
    expect(await grant(subscriber, { plan_tier: 'paid', addons: 2 })).toMatchObject(given(2))
    const relay = await subscriber.startRelay()
    expect(await grant(subscriber, { plan_tier: 'paid', addons: 1 })).toMatchObject(given(1))
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
    expect(await grant(subscriber, { plan_tier: 'free' })).toMatchObject(free)
    await waitForDisconnect(service, relay)
  })

  test('that was given until some time ends then by itself, and takes the relays along', async () => {
    const subscriber = await newSubscriber(service)
    const until = soon(4000)
    expect(await grant(subscriber, { plan_tier: 'paid', until })).toMatchObject(given(0))
    const relay = await subscriber.startRelay()
    while (Date.now() < Date.parse(until) - 200) {
      expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planUntil: new Date(until) })
      await sleep(100)
    }
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
  })

  test('that is given anew lasts as long as was said last', async () => {
    const subscriber = await newSubscriber(service)
    const first = soon(2000)
    await grant(subscriber, { plan_tier: 'paid', until: first })
    await grant(subscriber, { plan_tier: 'paid' })
    await sleep(Date.parse(first) + 500 - Date.now())
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planUntil: null, entitlementDueAt: null })
  })

  test('that is over before it is given gives nothing', async () => {
    const subscriber = await newSubscriber(service)
    expect(await grant(subscriber, { plan_tier: 'paid', until: soon(-hourMillis) })).toMatchObject(free)
  })

  test('beside one that is paid for takes nothing from it, and outlives it', async () => {
    const subscriber = await newPaidSubscriber(service, { addons: 1 })
    const relay = await subscriber.startRelay()
    await grant(subscriber, { plan_tier: 'paid', addons: 1 })
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', addons: 2 })
    expect(await grant(subscriber, { plan_tier: 'free' })).toMatchObject(given(1))
    await grant(subscriber, { plan_tier: 'paid' })
    await subscriber.sendEvent('subscription.downgraded')
    await sleep(500)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid' })
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })

  test('keeps the relays of somebody whose 48 hours end', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    await grant(subscriber, { plan_tier: 'paid' })
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, Date.now() - 49 * hourMillis)
    await sleep(1000)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })

  test('can be given by the command line', async () => {
    const subscriber = await newSubscriber(service)
    const commandLine = createOperatorClient(service.api.url, operatorPassword)
    expect(await commandLine.findUserId(subscriber.email)).toBe(subscriber.userId)
    await commandLine.grantPlan(subscriber.userId, { plan_tier: 'paid', addons: 3 })
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', addons: 3 })
    await subscriber.startRelay()
  })
})
