/** The payment grace period of 48 hours in the entitlement. */
import { describe, expect, test } from 'vitest'
import {
  day,
  entitlement,
  failed,
  failedAt,
  firstMonth,
  hour,
  monthLater,
  planAt,
  planEvent,
} from './billing-events.ts'

describe('the payment grace period of 48 hours', () => {
  const graceEndsAt = failedAt + 48 * hour

  test('keeps the plan until 47:59:59.999, and ends it at 48:00:00.000', () => {
    const pastDue = { planTier: 'paid', planStatus: 'past_due', graceEndsAt, changesAt: graceEndsAt, endsAt: null }
    expect(entitlement(failedAt, firstMonth, failed)).toMatchObject(pastDue)
    expect(entitlement(graceEndsAt - 1, firstMonth, failed)).toMatchObject(pastDue)
    expect(entitlement(graceEndsAt, firstMonth, failed)).toMatchObject({
      planTier: 'free',
      planStatus: 'none',
      graceEndsAt: null,
      changesAt: null,
      subscriptions: [{ status: 'past_due' }],
    })
  })

  test('is not moved by further failures of the invoice', () => {
    const again = planEvent('payment_failed', failedAt + 24 * hour, { invoiceId: 'i2' })
    expect(entitlement(failedAt + 25 * hour, firstMonth, failed, again).graceEndsAt).toBe(graceEndsAt)
    expect(planAt(graceEndsAt, firstMonth, failed, again)).toBe('free none 0')
  })

  test('begins with the first of two unpaid invoices, and with the other once that one is paid', () => {
    const other = planEvent('payment_failed', failedAt + 5 * hour, { invoiceId: 'i3' })
    const paid = planEvent('payment_recovery', failedAt + 6 * hour, { invoiceId: 'i2' })
    expect(entitlement(failedAt + 7 * hour, firstMonth, other, failed).graceEndsAt).toBe(graceEndsAt)
    expect(entitlement(failedAt + 7 * hour, firstMonth, other, failed, paid).graceEndsAt).toBe(graceEndsAt + 5 * hour)
  })

  test('ends with a payment in the last second, and a payment after 50 hours restores the plan', () => {
    const inTime = planEvent('payment_recovery', graceEndsAt - 1000, { invoiceId: 'i2' })
    expect(planAt(graceEndsAt + day, firstMonth, failed, inTime)).toBe('paid active 0')
    const late = planEvent('payment_recovery', failedAt + 50 * hour, { invoiceId: 'i2' })
    expect(planAt(failedAt + 50 * hour, firstMonth, failed, late)).toBe('paid active 0')
  })

  test('does not begin for an invoice that was paid, before or after the failure', () => {
    const paid = planEvent('payment_recovery', failedAt - day, { invoiceId: 'i2' })
    expect(planAt(failedAt, firstMonth, paid, failed)).toBe('paid active 0')
  })

  test.each([
    ['a payment without an invoice at the same time', planEvent('payment_recovery', failedAt), 'active'],
    ['a payment without an invoice before it', planEvent('payment_recovery', failedAt - 1), 'past_due'],
    ['a payment of another invoice', planEvent('payment_recovery', failedAt + 1, { invoiceId: 'i1' }), 'past_due'],
    ['a later activation', planEvent('activate', failedAt + 1), 'active'],
    ['an activation at the same time', planEvent('activate', failedAt), 'past_due'],
    ['a later change of add-ons', planEvent('update_addon', failedAt + 1), 'past_due'],
  ])('after %s: %s', (_what, event, status) => {
    expect(entitlement(failedAt + hour, firstMonth, failed, event).planStatus).toBe(status)
  })

  test('after a failure without an invoice ends with any payment from then on', () => {
    const nameless = planEvent('payment_failed', failedAt)
    const payment = (at: number) => planEvent('payment_recovery', at, { invoiceId: 'i2' })
    expect(planAt(failedAt, firstMonth, nameless)).toBe('paid past_due 0')
    expect(planAt(failedAt, firstMonth, nameless, payment(failedAt - 1))).toBe('paid past_due 0')
    expect(planAt(failedAt, firstMonth, nameless, payment(failedAt))).toBe('paid active 0')
  })

  test('ends with a cancelled period if that ends earlier', () => {
    const cancelled = (periodEnd: number) => planEvent('cancelled', failedAt + hour, { periodEnd })
    const soon = failedAt + 10 * hour
    const inGrace = entitlement(failedAt + 2 * hour, firstMonth, failed, cancelled(soon))
    expect(inGrace).toMatchObject({ planStatus: 'past_due', graceEndsAt: soon, endsAt: soon, changesAt: soon })
    expect(entitlement(soon, firstMonth, failed, cancelled(soon))).toMatchObject({
      planTier: 'free',
      addons: 0,
      changesAt: null,
      subscriptions: [{ status: 'ended' }],
    })
    const later = entitlement(failedAt + 2 * hour, firstMonth, failed, cancelled(monthLater))
    expect(later).toMatchObject({ planStatus: 'past_due', graceEndsAt, endsAt: monthLater, changesAt: graceEndsAt })
    expect(planAt(graceEndsAt, firstMonth, failed, cancelled(monthLater))).toBe('free none 0')
  })

  test('has no effect once another subscription gives the plan', () => {
    const anew = planEvent('activate', failedAt + hour, { subscriptionId: 'plan-2' })
    const after = entitlement(failedAt + 2 * hour, firstMonth, failed, anew)
    expect(after).toMatchObject({ planStatus: 'active', graceEndsAt: null, changesAt: null })
    expect(planAt(graceEndsAt, firstMonth, failed, anew)).toBe('paid active 0')
  })

  test('is over once the provider ended the subscription: later payments change nothing, an activation does', () => {
    const ended = planEvent('downgrade', failedAt + 10 * day)
    const payments = [failedAt + 10 * day, failedAt + 12 * day].flatMap((at) => [
      planEvent('payment_recovery', at, { invoiceId: 'i2' }),
      planEvent('payment_recovery', at),
    ])
    for (const paid of payments) {
      expect(planAt(failedAt + 400 * day, firstMonth, failed, ended, paid)).toBe('free none 0')
      const activated = planEvent('activate', failedAt + 13 * day)
      expect(planAt(failedAt + 13 * day, firstMonth, failed, ended, paid, activated)).toBe('paid active 0')
    }
  })
})
