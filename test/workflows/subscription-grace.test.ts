import { describe, expect, test } from 'vitest'
import { day, fact, failed, failedAt, firstMonth, hour, monthLater, plan, standing } from './billing-facts.ts'

describe('48 hours of grace after a failed payment', () => {
  const graceEndsAt = failedAt + 48 * hour

  test('keep the plan until 47:59:59.999, and end it at 48:00:00.000', () => {
    const pastDue = { planTier: 'paid', planStatus: 'past_due', graceEndsAt, changesAt: graceEndsAt, endsAt: null }
    expect(standing(failedAt, firstMonth, failed)).toMatchObject(pastDue)
    expect(standing(graceEndsAt - 1, firstMonth, failed)).toMatchObject(pastDue)
    expect(standing(graceEndsAt, firstMonth, failed)).toMatchObject({
      planTier: 'free',
      planStatus: 'none',
      graceEndsAt: null,
      changesAt: null,
      isPlainlyFree: true,
      subscriptions: [{ status: 'past_due' }],
    })
  })

  test('are not moved by further failures of the invoice', () => {
    const again = fact('payment_failed', failedAt + 24 * hour, { invoiceId: 'i2' })
    expect(standing(failedAt + 25 * hour, firstMonth, failed, again).graceEndsAt).toBe(graceEndsAt)
    expect(plan(graceEndsAt, firstMonth, failed, again)).toBe('free none 0')
  })

  test('begin with the first of two invoices that are open, and with the other when that one is paid', () => {
    const other = fact('payment_failed', failedAt + 5 * hour, { invoiceId: 'i3' })
    const paid = fact('payment_recovery', failedAt + 6 * hour, { invoiceId: 'i2' })
    expect(standing(failedAt + 7 * hour, firstMonth, other, failed).graceEndsAt).toBe(graceEndsAt)
    expect(standing(failedAt + 7 * hour, firstMonth, other, failed, paid).graceEndsAt).toBe(graceEndsAt + 5 * hour)
  })

  test('end with a payment in the last second, and one after 50 hours brings the plan back', () => {
    const inTime = fact('payment_recovery', graceEndsAt - 1000, { invoiceId: 'i2' })
    expect(plan(graceEndsAt + day, firstMonth, failed, inTime)).toBe('paid active 0')
    const late = fact('payment_recovery', failedAt + 50 * hour, { invoiceId: 'i2' })
    expect(plan(failedAt + 50 * hour, firstMonth, failed, late)).toBe('paid active 0')
  })

  test('do not begin for an invoice that was paid, whenever its failure is told', () => {
    const paid = fact('payment_recovery', failedAt - day, { invoiceId: 'i2' })
    expect(plan(failedAt, firstMonth, paid, failed)).toBe('paid active 0')
  })

  test.each([
    ['a payment without an invoice at the same time', fact('payment_recovery', failedAt), 'active'],
    ['a payment without an invoice before it', fact('payment_recovery', failedAt - 1), 'past_due'],
    ['a payment of another invoice', fact('payment_recovery', failedAt + 1, { invoiceId: 'i1' }), 'past_due'],
    ['a later activation', fact('activate', failedAt + 1), 'active'],
    ['an activation at the same time', fact('activate', failedAt), 'past_due'],
    ['a later change of add-ons', fact('update_addon', failedAt + 1), 'past_due'],
  ])('after %s: %s', (_what, news, status) => {
    expect(standing(failedAt + hour, firstMonth, failed, news).planStatus).toBe(status)
  })

  test('for a failure without an invoice end with any payment from then on', () => {
    const nameless = fact('payment_failed', failedAt)
    const payment = (at: number) => fact('payment_recovery', at, { invoiceId: 'i2' })
    expect(plan(failedAt, firstMonth, nameless)).toBe('paid past_due 0')
    expect(plan(failedAt, firstMonth, nameless, payment(failedAt - 1))).toBe('paid past_due 0')
    expect(plan(failedAt, firstMonth, nameless, payment(failedAt))).toBe('paid active 0')
  })

  test('and a cancellation: the earlier end counts', () => {
    const cancelled = (periodEnd: number) => fact('cancelled', failedAt + hour, { periodEnd })
    const soon = failedAt + 10 * hour
    const inGrace = standing(failedAt + 2 * hour, firstMonth, failed, cancelled(soon))
    expect(inGrace).toMatchObject({ planStatus: 'past_due', graceEndsAt: soon, endsAt: soon, changesAt: soon })
    expect(standing(soon, firstMonth, failed, cancelled(soon))).toMatchObject({
      planTier: 'free',
      subscriptions: [{ status: 'ended' }],
      isPlainlyFree: true,
    })
    const later = standing(failedAt + 2 * hour, firstMonth, failed, cancelled(monthLater))
    expect(later).toMatchObject({ planStatus: 'past_due', graceEndsAt, endsAt: monthLater, changesAt: graceEndsAt })
    expect(plan(graceEndsAt, firstMonth, failed, cancelled(monthLater))).toBe('free none 0')
  })

  test('mean nothing any more once another subscription gives the plan', () => {
    const anew = fact('activate', failedAt + hour, { subscriptionId: 'plan-2' })
    const after = standing(failedAt + 2 * hour, firstMonth, failed, anew)
    expect(after).toMatchObject({ planStatus: 'active', graceEndsAt: null, changesAt: null })
    expect(plan(graceEndsAt, firstMonth, failed, anew)).toBe('paid active 0')
  })

  test('are over after the provider ended the subscription, whatever is paid later, until it is activated again', () => {
    const ended = fact('downgrade', failedAt + 10 * day)
    const payments = [failedAt + 10 * day, failedAt + 12 * day].flatMap((at) => [
      fact('payment_recovery', at, { invoiceId: 'i2' }),
      fact('payment_recovery', at),
    ])
    for (const paid of payments) {
      expect(plan(failedAt + 400 * day, firstMonth, failed, ended, paid)).toBe('free none 0')
      const activated = fact('activate', failedAt + 13 * day)
      expect(plan(failedAt + 13 * day, firstMonth, failed, ended, paid, activated)).toBe('paid active 0')
    }
  })
})
