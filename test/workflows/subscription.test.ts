/** The end of a plan 48 hours after a failed payment, in any order of events. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { suspendJob } from '../support/jobs.ts'
import {
  activeByRelay,
  addonSubscriptionId,
  disconnectedBySystem,
  findDisconnectTime,
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
  waitForAppliedEvents,
  waitForDisconnect,
  waitForRest,
} from '../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
  // It wakes workflows that missed a deadline. Here each of them has to meet its deadlines itself.
  await suspendJob(service.api.sql, 'wake_subscriptions')
})

const paid = (data: { addons?: number } = {}) => newPaidSubscriber(service, data)
const isActive = ({ planStatus }: { planStatus: string }) => planStatus === 'active'

const minuteMillis = 60_000

/** Fails a payment whose payment grace period ends in an hour, and returns its end. */
async function failPayment(subscriber: Subscriber): Promise<number> {
  const failedAt = Date.now() - 47 * hourMillis
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
  expect(await subscriber.waitForPlan(isPastDue)).toMatchObject({
    planTier: 'paid',
    paymentGraceEndsAt: new Date(failedAt + paymentGraceMillis),
  })
  return failedAt + paymentGraceMillis
}

/** Lets time pass until shortly before the deadline. Returns the time of the deadline then. */
async function passTimeUntilBefore(subscriber: Subscriber, deadline: number): Promise<number> {
  const millis = deadline - Date.now() - 1500
  await passTime(service.api, subscriber, millis)
  return deadline - millis
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
    const deadline = await failPayment(subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ addons: 1 })
    await passTime(service.api, subscriber, 59 * minuteMillis)
    await waitForRest(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'past_due', addons: 1 })
    for (const relay of relays) expect(await lastTransition(service, relay)).toEqual(activeByRelay)
    const endsAt = await passTimeUntilBefore(subscriber, deadline - 59 * minuteMillis)
    await subscriber.waitForPlan(isFree)
    for (const relay of relays) await waitForDisconnect(service, relay)
    expect(await findDowngradeTime(subscriber)).toBeGreaterThanOrEqual(endsAt)
    for (const relay of relays) expect(await findDisconnectTime(service, relay)).toBeGreaterThanOrEqual(endsAt)
    expect((await subscriber.start()).status).toBe(403)
  })

  test('the plan ends by the time of the first failure, after any number of further failures', async () => {
    const subscriber = await paid()
    const failedAt = Date.now() - paymentGraceMillis + 45 * minuteMillis
    const deadline = failedAt + paymentGraceMillis
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt + 24 * hourMillis)
    await subscriber.waitForPlan(isPastDue)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt + 47 * hourMillis)
    await waitForAppliedEvents(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', paymentGraceEndsAt: new Date(deadline) })
    const endsAt = await passTimeUntilBefore(subscriber, deadline)
    await subscriber.waitForPlan(isFree)
    expect(await findDowngradeTime(subscriber)).toBeGreaterThanOrEqual(endsAt)
  })

  test('nothing ends if the invoice was paid by then', async () => {
    const subscriber = await paid()
    const relay = await subscriber.startRelay()
    await failPayment(subscriber)
    await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' })
    const plan = await subscriber.waitForPlan(isActive)
    expect(plan).toMatchObject({ paymentGraceEndsAt: null, entitlementDueAt: null })
    await passTime(service.api, subscriber, 2 * hourMillis)
    await waitForRest(service, subscriber)
    expect(await subscriber.fetchPlan()).toEqual(plan)
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
    expect((await subscriber.planHistory()).map((had) => had.planStatus)).toEqual(['active', 'past_due', 'active'])
  })

  test('nothing ends if there is a new subscription by then', async () => {
    const subscriber = await paid()
    const relay = await subscriber.startRelay()
    await failPayment(subscriber)
    await subscriber.sendEvent('subscription.activated', { subscription_id: `${subscriber.subscriptionId}_new` })
    await subscriber.waitForPlan(isActive)
    await passTime(service.api, subscriber, 2 * hourMillis)
    await waitForRest(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
    await subscriber.sendEvent('subscription.downgraded')
    await waitForAppliedEvents(service, subscriber)
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
    const deadline = Date.now() + hourMillis
    const period = {
      period_start: new Date(Date.now() - 24 * hourMillis).toISOString(),
      period_end: new Date(deadline).toISOString(),
    }
    await subscriber.sendEvent('subscription.cancelled', period)
    await subscriber.waitForPlan((plan) => plan.paymentGraceEndsAt?.getTime() === deadline)
    const endsAt = await passTimeUntilBefore(subscriber, deadline)
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
    expect(await findDowngradeTime(subscriber)).toBeGreaterThanOrEqual(endsAt)
  })

  test('ends after the 48 hours if its period is longer', async () => {
    const subscriber = await paid()
    const deadline = await failPayment(subscriber)
    const period_end = new Date(Date.now() + 24 * hourMillis).toISOString()
    await subscriber.sendEvent('subscription.cancelled', { period_end })
    await subscriber.waitForPlan((plan) => isPastDue(plan) && plan.planUntil?.toISOString() === period_end)
    const endsAt = await passTimeUntilBefore(subscriber, deadline)
    await subscriber.waitForPlan(isFree)
    expect(await findDowngradeTime(subscriber)).toBeGreaterThanOrEqual(endsAt)
  })
})

test('the same events in any order, each of them twice, lead to the same plan', async () => {
  const day = (n: number) => began + n * 24 * hourMillis
  const began = Date.now() - 40 * 24 * hourMillis
  const period = (from: number) => ({
    period_start: new Date(day(from)).toISOString(),
    period_end: new Date(day(from + 30)).toISOString(),
  })
  const events: readonly ((subscriber: Subscriber) => Promise<void>)[] = [
    (subscriber) => subscriber.sendEvent('subscription.activated', { invoice_id: 'inv_1', ...period(0) }, day(0)),
    (subscriber) =>
      subscriber.sendEvent('addon.updated', { subscription_id: addonSubscriptionId(subscriber), quantity: 3 }, day(1)),
    (subscriber) => subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, day(30)),
    (subscriber) => subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' }, day(35)),
    (subscriber) => subscriber.sendEvent('subscription.activated', { invoice_id: 'inv_2', ...period(30) }, day(35)),
    (subscriber) =>
      subscriber.sendEvent('addon.updated', { subscription_id: addonSubscriptionId(subscriber), quantity: 2 }, day(36)),
    (subscriber) => subscriber.sendEvent('payment.failed', { invoice_id: 'inv_3' }, day(39)),
  ]
  const orders = fc.sample(fc.shuffledSubarray([...events, ...events], { minLength: 14 }), { numRuns: 5, seed: 48 })
  const accounts = await Promise.all(
    [events, ...orders].map(async (order) => {
      const subscriber = await newSubscriber(service)
      for (const send of order) await send(subscriber)
      await waitForAppliedEvents(service, subscriber)
      return subscriber.fetchPlan()
    }),
  )
  expect(accounts[0]).toMatchObject({ planStatus: 'past_due', addons: 2, paymentGraceEndsAt: new Date(day(41)) })
  expect(accounts[0]).toMatchObject({ periodStart: new Date(day(30)), periodEnd: new Date(day(60)) })
  for (const plan of accounts) expect(plan).toEqual(accounts[0])
})
