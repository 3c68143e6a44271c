/** Subscriptions over real durations, with skipped time. Other tests use events with past dates instead. */
import { beforeAll, expect, test } from 'vitest'
import { operator } from '../support/relays.ts'
import {
  activeByRelay,
  addonSubscriptionId,
  hourMillis,
  isFree,
  lastTransition,
  newPaidSubscriber,
  newSubscriber,
  paymentGraceMillis,
  type Subscriber,
  waitForDisconnect,
} from '../support/subscribers.ts'
import { type SkippingService, startSkippingService } from '../support/time-skipping.ts'

let at: SkippingService
beforeAll(async () => {
  at = await startSkippingService()
}, 300_000)

const second = 1000
const paid = async (data: { addons?: number } = {}) => newPaidSubscriber(at.service, { ...data, since: await at.now() })
const withStatus = (status: string) => (plan: { planStatus: string }) => plan.planStatus === status

/** Skips to that time, and resolves when everything that was due has happened. */
async function passUntil(time: number) {
  await at.pass(Math.max(0, time - (await at.now())))
}

async function fail(subscriber: Subscriber): Promise<number> {
  const failedAt = await at.now()
  await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, failedAt)
  await subscriber.waitForPlan(withStatus('past_due'))
  return failedAt
}

test('a plan with a failed payment is paid at 47:59:59, and free with its relays disconnected at 48:00:00', async () => {
  const subscriber = await paid()
  const endsAt = (await fail(subscriber)) + paymentGraceMillis
  await passUntil(endsAt - hourMillis)
  const relay = await subscriber.startRelay()
  await passUntil(endsAt - second)
  expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'past_due' })
  expect(await lastTransition(at.service, relay)).toEqual(activeByRelay)
  await passUntil(endsAt)
  await subscriber.waitForPlan(isFree)
  await waitForDisconnect(at.service, relay)
  const [row] = await at.service.api.sql<{ at: string }[]>`
    select detail ->> 'at' as at from audit_entries
    where user_id = ${subscriber.userId} and action = 'plan_changed' and detail ->> 'plan_tier' = 'free'`
  const lateness = Date.parse(row?.at ?? '') - endsAt
  expect(lateness).toBeGreaterThanOrEqual(0)
  expect(lateness).toBeLessThan(second)
})

test('further failures within the 48 hours do not extend them', async () => {
  const subscriber = await paid()
  const endsAt = (await fail(subscriber)) + paymentGraceMillis
  for (const hours of [24, 47]) {
    await passUntil(endsAt - paymentGraceMillis + hours * hourMillis)
    await subscriber.sendEvent('payment.failed', { invoice_id: 'inv_2' }, await at.now())
  }
  await passUntil(endsAt - second)
  expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', paymentGraceEndsAt: new Date(endsAt) })
  await passUntil(endsAt)
  await subscriber.waitForPlan(isFree)
})

test('a payment at 47:59:50 keeps the plan and the relay, even days later', async () => {
  const subscriber = await paid()
  const endsAt = (await fail(subscriber)) + paymentGraceMillis
  await passUntil(endsAt - 10 * second)
  const relay = await subscriber.startRelay()
  await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' }, await at.now())
  await subscriber.waitForPlan(withStatus('active'))
  await passUntil(endsAt + 72 * hourMillis)
  expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
  expect(await lastTransition(at.service, relay)).toEqual(activeByRelay)
})

test('a payment at 50 hours restores the plan and its add-ons, and restarts no relay', async () => {
  const subscriber = await paid({ addons: 2 })
  const failedAt = await fail(subscriber)
  const relay = await subscriber.startRelay()
  await passUntil(failedAt + paymentGraceMillis)
  await waitForDisconnect(at.service, relay)
  await passUntil(failedAt + 50 * hourMillis)
  await subscriber.sendEvent('payment.recovered', { invoice_id: 'inv_2' }, await at.now())
  expect(await subscriber.waitForPlan(withStatus('active'))).toMatchObject({ planTier: 'paid', addons: 2 })
  expect((await subscriber.active()).sessions).toEqual([])
})

test('a new subscription within the 48 hours survives the end of the old one', async () => {
  const subscriber = await paid()
  const endsAt = (await fail(subscriber)) + paymentGraceMillis
  await passUntil(endsAt - 24 * hourMillis)
  const subscription_id = `${subscriber.subscriptionId}_new`
  await subscriber.sendEvent('subscription.activated', { subscription_id }, await at.now())
  await subscriber.waitForPlan(withStatus('active'))
  await passUntil(endsAt + hourMillis)
  expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'active' })
})

test('a cancelled plan ends with its period, or with the payment grace period if that is earlier', async () => {
  const [pastDue, active] = [await paid(), await paid()]
  await fail(pastDue)
  const began = await at.now()
  const until = (hours: number) => ({ period_end: new Date(began + hours * hourMillis).toISOString() })
  await pastDue.sendEvent('subscription.cancelled', until(10), began)
  await active.sendEvent('subscription.cancelled', until(7 * 24), began)
  for (const subscriber of [pastDue, active]) await subscriber.waitForPlan((plan) => plan.planUntil !== null)
  await passUntil(began + 10 * hourMillis - second)
  expect(await pastDue.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'past_due' })
  await passUntil(began + 10 * hourMillis)
  await pastDue.waitForPlan(isFree)
  await passUntil(began + 7 * 24 * hourMillis - second)
  expect(await active.fetchPlan()).toMatchObject({ planTier: 'paid', planStatus: 'cancelled' })
  await passUntil(began + 7 * 24 * hourMillis)
  await active.waitForPlan(isFree)
})

test('after a reduction of add-ons the newest relays end after 30 minutes', async () => {
  const subscriber = await paid({ addons: 3 })
  const relays = []
  for (let count = 0; count < 4; count += 1) relays.push(await subscriber.startRelay())
  await subscriber.sendEvent(
    'addon.updated',
    { subscription_id: addonSubscriptionId(subscriber), quantity: 1 },
    await at.now(),
  )
  const endsAt = (await subscriber.waitForPlan((plan) => plan.surplusEndsAt !== null)).surplusEndsAt?.getTime() ?? 0
  expect(Math.abs(endsAt - (await at.now()) - hourMillis / 2)).toBeLessThan(10 * second)
  await passUntil(endsAt - second)
  for (const relay of relays) expect(await lastTransition(at.service, relay)).toEqual(activeByRelay)
  await passUntil(endsAt)
  for (const relay of relays.slice(2)) await waitForDisconnect(at.service, relay)
  for (const relay of relays.slice(0, 2)) expect(await lastTransition(at.service, relay)).toEqual(activeByRelay)
})

test('a complimentary plan with an end date ends on that date, with its relay', async () => {
  const subscriber = await newSubscriber(at.service)
  const until = (await at.now()) + 3 * 24 * hourMillis
  const body = { plan_tier: 'paid', until: new Date(until).toISOString() }
  await at.service.api.post(`/admin/users/${subscriber.userId}/grant`, body, { headers: operator })
  await passUntil(until - hourMillis)
  const relay = await subscriber.startRelay()
  await passUntil(until - second)
  expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'paid', planUntil: new Date(until) })
  await passUntil(until)
  await subscriber.waitForPlan(isFree)
  await waitForDisconnect(at.service, relay)
})
