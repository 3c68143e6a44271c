/** Accepted payments that are not resolved yet, in the entitlement. */
import { describe, expect, test } from 'vitest'
import { entitlementAt, type UnresolvedPayment } from '../../../domain/billing/entitlement.ts'
import { addonEvent, day, failed, failedAt, firstMonth, graceSeconds, hour, planEvent } from './billing-events.ts'

const graceEndsAt = failedAt + 48 * hour
const payment = (acceptedAt: number): UnresolvedPayment => ({ acceptedAt, holdsUntil: acceptedAt + 3 * day })

const pastDue = [firstMonth, failed]
const entitlement = (at: number, unresolved: readonly UnresolvedPayment[], events = pastDue) =>
  entitlementAt(events, at, graceSeconds, unresolved)

describe('an accepted payment that is not resolved yet', () => {
  test('puts off the end of the payment grace period for three days from its acceptance, and no longer', () => {
    const accepted = graceEndsAt - hour
    const until = accepted + 3 * day
    for (const at of [accepted, graceEndsAt, until - 1])
      expect(entitlement(at, [payment(accepted)])).toMatchObject({
        planTier: 'paid',
        planStatus: 'past_due',
        graceEndsAt: until,
        changesAt: until,
      })
    expect(entitlement(until, [payment(accepted)])).toMatchObject({ planTier: 'free', changesAt: null })
  })

  test('puts nothing off when it was accepted after the payment grace period, also beside one that does', () => {
    for (const accepted of [graceEndsAt, graceEndsAt + hour])
      expect(entitlement(graceEndsAt + hour, [payment(accepted)]).planTier).toBe('free')
    const inTimeAndLate = [payment(graceEndsAt - hour), payment(graceEndsAt + hour)]
    expect(entitlement(graceEndsAt + hour, inTimeAndLate).graceEndsAt).toBe(graceEndsAt - hour + 3 * day)
  })

  test('never shortens a payment grace period', () => {
    const early = payment(failedAt - 10 * day)
    expect(entitlement(failedAt, [early]).graceEndsAt).toBe(graceEndsAt)
  })

  test('puts off the end of add-ons as well', () => {
    const events = [
      firstMonth,
      addonEvent('update_addon', failedAt - day, { quantity: 2 }),
      addonEvent('payment_failed', failedAt),
    ]
    expect(entitlement(graceEndsAt, [], events).addons).toBe(0)
    expect(entitlement(graceEndsAt, [payment(failedAt)], events).addons).toBe(2)
  })

  test('gives no plan without a subscription, none after its end, and no longer period', () => {
    const unresolved = [payment(failedAt)]
    expect(entitlement(failedAt, unresolved, []).planTier).toBe('free')
    const ended = [...pastDue, planEvent('downgrade', failedAt + hour)]
    expect(entitlement(failedAt + hour, unresolved, ended).planTier).toBe('free')
    const cancelled = [...pastDue, planEvent('cancelled', failedAt, { periodEnd: failedAt + day })]
    expect(entitlement(failedAt + day, unresolved, cancelled).planTier).toBe('free')
  })
})
