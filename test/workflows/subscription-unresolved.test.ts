import { describe, expect, test } from 'vitest'
import { entitlementAt, type UnresolvedPayment } from '../../domain/subscription.ts'
import { addon, day, fact, failed, failedAt, firstMonth, graceSeconds, hour, knowing } from './billing-facts.ts'

const graceEndsAt = failedAt + 48 * hour
const payment = (acceptedAt: number): UnresolvedPayment => ({ acceptedAt, holdsUntil: acceptedAt + 3 * day })

const unpaid = knowing(firstMonth, failed)
const standing = (at: number, unresolved: readonly UnresolvedPayment[], state = unpaid) =>
  entitlementAt(state, at, graceSeconds, unresolved)

describe('a payment that was accepted and is not resolved yet', () => {
  test('holds back the end of the grace for three days from its acceptance, and no longer', () => {
    const accepted = graceEndsAt - hour
    const until = accepted + 3 * day
    const pastDue = { planTier: 'paid', planStatus: 'past_due', graceEndsAt: until, changesAt: until }
    for (const at of [accepted, graceEndsAt, until - 1])
      expect(standing(at, [payment(accepted)])).toMatchObject(pastDue)
    expect(standing(until, [payment(accepted)])).toMatchObject({ planTier: 'free', changesAt: null })
  })

  test('holds nothing back when it was accepted after the grace, as often as there are others', () => {
    for (const accepted of [graceEndsAt, graceEndsAt + hour])
      expect(standing(graceEndsAt + hour, [payment(accepted)]).planTier).toBe('free')
    const chained = [payment(graceEndsAt - hour), payment(graceEndsAt + hour)]
    expect(standing(graceEndsAt + hour, chained).graceEndsAt).toBe(graceEndsAt - hour + 3 * day)
  })

  test('never shortens a grace', () => {
    const early = payment(failedAt - 10 * day)
    expect(standing(failedAt, [early]).graceEndsAt).toBe(graceEndsAt)
  })

  test('holds back the end of add-ons as well', () => {
    const state = knowing(
      firstMonth,
      addon('update_addon', failedAt - day, { quantity: 2 }),
      addon('payment_failed', failedAt),
    )
    expect(standing(graceEndsAt, [], state).addons).toBe(0)
    expect(standing(graceEndsAt, [payment(failedAt)], state).addons).toBe(2)
  })

  test('gives nothing that is not there: no plan without one, none after its end, no longer period', () => {
    const unresolved = [payment(failedAt)]
    expect(standing(failedAt, unresolved, knowing()).planTier).toBe('free')
    const ended = knowing(firstMonth, failed, fact('downgrade', failedAt + hour))
    expect(standing(failedAt + hour, unresolved, ended).planTier).toBe('free')
    const cancelled = knowing(firstMonth, failed, fact('cancelled', failedAt, { periodEnd: failedAt + day }))
    expect(standing(failedAt + day, unresolved, cancelled).planTier).toBe('free')
  })
})
