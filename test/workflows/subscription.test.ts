import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../api/relay-session-view.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import {
  activeByRelay,
  addonSubscriptionId,
  disconnectedBySystem,
  hourMillis,
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

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
})

const paid = (data: { addons?: number } = {}) => newPaidSubscriber(service, data)
const isActive = ({ planStatus }: { planStatus: string }) => planStatus === 'active'

/** The time of a payment failure whose payment grace period ends this many milliseconds from now. */
const failedWithGraceLeft = (millis: number) => Date.now() - paymentGraceMillis + millis

/** Checks repeatedly until the given time that the plan is paid and that its relays run. */
async function expectPaidUntil(subscriber: Subscriber, at: number, relays: readonly SessionView[] = []) {
  const read = async () => ({
    plan: await subscriber.fetchPlan(),
    transitions: await Promise.all(relays.map((relay) => lastTransition(service, relay))),
  })
  // A result that was read after the given time does not count.
  for (let seen = await read(); Date.now() < at; seen = await read()) {
    expect(seen).toMatchObject({ plan: { planTier: 'paid' }, transitions: relays.map(() => activeByRelay) })
    await sleep(100)
  }
}

const findDowngradeTime = async ({ userId }: Subscriber): Promise<number> => {
  const [row] = await service.api.sql<{ at: Date }[]>`
    select at from audit_entries where user_id = ${userId} and action = 'plan_changed' and detail ->> 'plan_tier' = 'free'`
  return row?.at.getTime() ?? 0
}

describe.concurrent('48 hours after a failed payment, by the time of the provider', () => {
  test('the plan ends with all of its relays, and not before', async () => {
    const subscriber = await paid({ addons: 1 })
    const relays = [await subscriber.startRelay(), await subscriber.startRelay()]
    const failedAt = failedWithGraceLeft(3000)
    const endsAt = failedAt + paymentGraceMillis
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
    const plan = await subscriber.waitForPlan(isPastDue)
    expect(plan).toMatchObject({ planTier: 'paid', paymentGraceEndsAt: new Date(endsAt), addons: 1 })
    await expectPaidUntil(subscriber, endsAt, relays)
    await subscriber.waitForPlan(isFree)
    for (const relay of relays) await waitForDisconnect(service, relay)
    const lateness = (await findDowngradeTime(subscriber)) - endsAt
    expect(lateness).toBeGreaterThanOrEqual(0)
    expect(lateness).toBeLessThan(5000)
    expect((await subscriber.start()).status).toBe(403)
  })

  test('the plan ends by the time of the first failure, after any number of further failures', async () => {
    const subscriber = await paid()
    const failedAt = failedWithGraceLeft(3000)
    const endsAt = new Date(failedAt + paymentGraceMillis)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt + 24 * hourMillis)
    await subscriber.waitForPlan(isPastDue)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt + 47 * hourMillis)
    await subscriber.waitForPlan((plan) => plan.paymentGraceEndsAt?.getTime() === endsAt.getTime())
    await expectPaidUntil(subscriber, endsAt.getTime())
    await subscriber.waitForPlan(isFree)
    expect(await findDowngradeTime(subscriber)).toBeGreaterThanOrEqual(endsAt.getTime())
  })

  test('nothing ends if the invoice was paid by then', async () => {
    const subscriber = await paid()
    const relay = await subscriber.startRelay()
    const failedAt = failedWithGraceLeft(3000)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
    await subscriber.waitForPlan(isPastDue)
    await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    const plan = await subscriber.waitForPlan(isActive)
    expect(plan).toMatchObject({ paymentGraceEndsAt: null, entitlementDueAt: null })
    await sleep(failedAt + paymentGraceMillis + 500 - Date.now())
    expect(await subscriber.fetchPlan()).toEqual(plan)
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
    expect((await subscriber.planHistory()).map((had) => had.planStatus)).toEqual(['active', 'past_due', 'active'])
  })

  test('nothing ends if there is a new subscription by then', async () => {
    const subscriber = await paid()
    const relay = await subscriber.startRelay()
    const failedAt = failedWithGraceLeft(3000)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
    await subscriber.waitForPlan(isPastDue)
    await subscriber.sendEvent('subscription.activated', { subscription_id: `${subscriber.subscriptionId}_new` })
    await subscriber.waitForPlan(isActive)
    await sleep(failedAt + paymentGraceMillis + 500 - Date.now())
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    await subscriber.sendEvent('subscription.downgraded')
    await sleep(500)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
  })
})

describe.concurrent('a payment after the 48 hours', () => {
  test('restores the plan and its add-ons, and restarts no relay', async () => {
    const subscriber = await paid({ addons: 2 })
    const relay = await subscriber.startRelay()
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, Date.now() - 50 * hourMillis)
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
    await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    expect(await subscriber.waitForPlan(isActive)).toMatchObject({ planTier: 'paid', addons: 2 })
    expect(await lastTransition(service, relay)).toEqual(disconnectedBySystem)
    expect((await subscriber.active()).sessions).toEqual([])
    await subscriber.startRelay()
  })
})

describe.concurrent('a subscription that is cancelled while it is past due', () => {
  test('ends with its period if that is earlier', async () => {
    const subscriber = await paid()
    const relay = await subscriber.startRelay()
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, Date.now() - 46 * hourMillis)
    await subscriber.waitForPlan(isPastDue)
    const endsAt = new Date(Date.now() + 3000)
    const period = {
      period_start: new Date(Date.now() - 24 * hourMillis).toISOString(),
      period_end: endsAt.toISOString(),
    }
    await subscriber.sendEvent('subscription.cancelled', period)
    await subscriber.waitForPlan((plan) => plan.paymentGraceEndsAt?.getTime() === endsAt.getTime())
    await expectPaidUntil(subscriber, endsAt.getTime())
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
    expect(await findDowngradeTime(subscriber)).toBeGreaterThanOrEqual(endsAt.getTime())
  })

  test('ends after the 48 hours if its period is longer', async () => {
    const subscriber = await paid()
    const failedAt = failedWithGraceLeft(3000)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
    const period_end = new Date(Date.now() + 24 * hourMillis).toISOString()
    await subscriber.sendEvent('subscription.cancelled', { period_end })
    await subscriber.waitForPlan((plan) => isPastDue(plan) && plan.planUntil?.toISOString() === period_end)
    await expectPaidUntil(subscriber, failedAt + paymentGraceMillis)
    await subscriber.waitForPlan(isFree)
    expect(await findDowngradeTime(subscriber)).toBeGreaterThanOrEqual(failedAt + paymentGraceMillis)
  })
})

test('the same events in any order, each of them twice, lead to the same plan', async () => {
  const day = (n: number) => began + n * 24 * hourMillis
  const began = Date.now() - 40 * 24 * hourMillis
  const period = (from: number) => ({
    period_start: new Date(day(from)).toISOString(),
    period_end: new Date(day(from + 30)).toISOString(),
  })
  const events: readonly ((one: Subscriber) => Promise<void>)[] = [
    (one) => one.sendEvent('subscription.activated', { invoice_id: 'inv_1', ...period(0) }, day(0)),
    (one) => one.sendEvent('addon.updated', { subscription_id: addonSubscriptionId(one), quantity: 3 }, day(1)),
    (one) => one.sendEvent('payment.failed', { invoice_id: 'inv_2' }, day(30)),
    (one) => one.sendEvent('payment.recovered', { invoice_id: 'inv_2' }, day(35)),
    (one) => one.sendEvent('subscription.activated', { invoice_id: 'inv_2', ...period(30) }, day(35)),
    (one) => one.sendEvent('addon.updated', { subscription_id: addonSubscriptionId(one), quantity: 2 }, day(36)),
    (one) => one.sendEvent('payment.failed', { invoice_id: 'inv_3' }, day(39)),
  ]
  const orders = fc.sample(fc.shuffledSubarray([...events, ...events], { minLength: 14 }), { numRuns: 5, seed: 48 })
  const accounts = await Promise.all(
    [events, ...orders].map(async (order) => {
      const subscriber = await newSubscriber(service)
      for (const send of order) await send(subscriber)
      await eventually(
        () => service.api.sql`select from billing_events where user_id = ${subscriber.userId} and status = 'pending'`,
        (pending) => pending.length === 0,
      )
      return subscriber.fetchPlan()
    }),
  )
  expect(accounts[0]).toMatchObject({ planStatus: 'past_due', addons: 2, paymentGraceEndsAt: new Date(day(41)) })
  expect(accounts[0]).toMatchObject({ periodStart: new Date(day(30)), periodEnd: new Date(day(60)) })
  for (const plan of accounts) expect(plan).toEqual(accounts[0])
})
