/** Refunds and disputes in the entitlement. */
import { describe, expect, test } from 'vitest'
import {
  addonEvent,
  begin,
  day,
  entitlement,
  failed,
  failedAt,
  firstMonth,
  hour,
  monthLater,
  planAt,
  planEvent,
  secondMonth,
  twoMonthsLater,
} from './billing-events.ts'

const refund = (at: number, invoiceId: string | null, periodEnd: number | null = null) =>
  planEvent('refund', at, { invoiceId, periodEnd })
/** What was refunded of the invoice came back. */
const returned = (at: number, invoiceId: string | null) => planEvent('refund', at, { invoiceId, amount: 'none' })
const paid = (at: number, invoiceId: string | null) => planEvent('payment_recovery', at, { invoiceId })

describe('a full refund', () => {
  test('of the present period ends the plan at once', () => {
    const after = entitlement(begin + day, firstMonth, refund(begin + day, 'i1'))
    expect(after).toMatchObject({ planTier: 'free', changesAt: null, subscriptions: [{ status: 'ended' }] })
    expect(planAt(monthLater + day, firstMonth, secondMonth, refund(monthLater + day, 'i2'))).toBe('free none 0')
  })

  test('of an older period changes nothing', () => {
    const months = [firstMonth, secondMonth]
    expect(entitlement(monthLater + day, ...months, refund(monthLater + day, 'i1'))).toEqual(
      entitlement(monthLater + day, ...months),
    )
  })

  test('differs from a partial one, which changes nothing', () => {
    const part = planEvent('refund', begin + day, { invoiceId: 'i1', amount: 'partial' })
    expect(entitlement(begin + day, firstMonth, part)).toEqual(entitlement(begin + day, firstMonth))
  })

  test('has no effect on the next paid period: a chargeback, then a renewal', () => {
    const chargeback = refund(begin + 9 * day, 'i1')
    expect(planAt(begin + 9 * day, firstMonth, chargeback)).toBe('free none 0')
    expect(planAt(monthLater, firstMonth, chargeback, secondMonth)).toBe('paid active 0')
  })

  test('has no effect on a later activation', () => {
    const anew = planEvent('activate', begin + 2 * day)
    const again = planEvent('activate', begin + 2 * day, { periodEnd: monthLater })
    for (const activation of [anew, again])
      expect(planAt(begin + 3 * day, firstMonth, refund(begin + day, 'i1'), activation)).toBe('paid active 0')
    const nameless = [planEvent('activate', begin), refund(begin + day, null)]
    expect(planAt(begin + day, ...nameless)).toBe('free none 0')
    expect(planAt(begin + 3 * day, ...nameless, anew)).toBe('paid active 0')
  })

  test('has no effect once its invoice is paid again: a dispute that was won', () => {
    const disputed = [firstMonth, paid(begin, 'i1'), refund(begin + day, 'i1')]
    expect(planAt(begin + 30 * day, ...disputed)).toBe('free none 0')
    expect(planAt(begin + 30 * day, ...disputed, paid(begin + 30 * day, 'i1'))).toBe('paid active 0')
  })

  test('ends the plan when the invoice is refunded again after a won dispute that named no invoice', () => {
    const won = [firstMonth, refund(begin + day, 'i1'), paid(begin + 2 * day, null)]
    expect(planAt(begin + 3 * day, ...won)).toBe('paid active 0')
    expect(planAt(begin + 4 * day, ...won, refund(begin + 4 * day, 'i1'))).toBe('free none 0')
  })

  test('ends the plan also when an invoice of an older period was paid again in the present one', () => {
    const months = [firstMonth, secondMonth, paid(monthLater + day, 'i1')]
    expect(planAt(monthLater + 2 * day, ...months)).toBe('paid active 0')
    expect(planAt(monthLater + 2 * day, ...months, refund(monthLater + 2 * day, 'i2'))).toBe('free none 0')
  })

  test('is undone when its money came back, and then only by a refund of the same invoice', () => {
    const disputed = [firstMonth, paid(begin, 'i1'), refund(begin + day, 'i1')]
    const back = (invoiceId: string | null, at = begin + 2 * day) => returned(at, invoiceId)
    expect(planAt(begin + 3 * day, ...disputed, back('i1'))).toBe('paid active 0')
    expect(planAt(begin + 3 * day, ...disputed, back('i1', begin + day))).toBe('paid active 0')
    for (const other of ['i2', null]) expect(planAt(begin + 3 * day, ...disputed, back(other))).toBe('free none 0')
    expect(planAt(begin + 4 * day, ...disputed, back('i1'), refund(begin + 3 * day, 'i1'))).toBe('free none 0')
    const cancelled = planEvent('downgrade', begin + 2 * day)
    expect(planAt(begin + 4 * day, ...disputed, cancelled, back('i1', begin + 3 * day))).toBe('free none 0')
  })

  test('that is undone leaves another refund of the period and what is unpaid', () => {
    const both = [firstMonth, refund(begin + day, null), refund(begin + 2 * day, 'i1')]
    expect(planAt(begin + 4 * day, ...both, returned(begin + 3 * day, 'i1'))).toBe('free none 0')
    const unpaid = [firstMonth, failed, refund(failedAt + 1, 'i1'), returned(failedAt + 2, 'i1')]
    expect(planAt(failedAt + 3, ...unpaid)).toBe('paid past_due 0')
    expect(planAt(failedAt + 48 * hour, ...unpaid)).toBe('free none 0')
  })

  test('of one of two payments for the same period counts if it is of the later one', () => {
    const again = planEvent('payment_recovery', begin + day, {
      invoiceId: 'i2',
      periodStart: begin,
      periodEnd: monthLater,
    })
    expect(planAt(begin + 2 * day, firstMonth, again, refund(begin + 2 * day, 'i1'))).toBe('paid active 0')
    expect(planAt(begin + 2 * day, firstMonth, again, refund(begin + 2 * day, 'i2'))).toBe('free none 0')
  })

  test('ends a cancelled subscription before its period ends', () => {
    const cancelled = planEvent('cancelled', begin + day, { periodEnd: monthLater })
    expect(planAt(begin + 2 * day, firstMonth, cancelled, refund(begin + 2 * day, 'i1'))).toBe('free none 0')
  })

  test('of one subscription does not end the others', () => {
    const other = addonEvent('update_addon', begin, { quantity: 2 })
    expect(planAt(begin + day, firstMonth, other, refund(begin + day, 'i1'))).toBe('free none 2')
  })
})

describe('a full refund without a known invoice', () => {
  const snapshot = planEvent('activate', begin, { periodStart: begin, periodEnd: monthLater })

  test.each([
    ['ends a period that had begun by then', refund(begin + day, null), 'free none 0'],
    ['ends a period that began at that moment', refund(begin, null), 'free none 0'],
    ['does not end a period that began afterwards', refund(begin - 1, null), 'paid active 0'],
    ['ends the period that it names', refund(begin + day, null, monthLater), 'free none 0'],
    ['does not end the period after the one that it names', refund(begin + day, null, begin), 'paid active 0'],
  ])('%s', (_what, refunded, left) => {
    expect(planAt(begin + day, snapshot, refunded)).toBe(left)
    expect(planAt(begin + day, firstMonth, refunded)).toBe(left)
  })

  test('that names an unknown invoice ends only a period without an invoice', () => {
    expect(planAt(begin + day, snapshot, refund(begin + day, 'unheard-of'))).toBe('free none 0')
    expect(planAt(begin + day, firstMonth, refund(begin + day, 'unheard-of'))).toBe('paid active 0')
  })

  test('is of its invoice alone once another event names that invoice', () => {
    const failedRenewal = planEvent('payment_failed', begin + day, { invoiceId: 'i2' })
    expect(planAt(begin + day, snapshot, failedRenewal, refund(begin + day, 'i2'))).toBe('paid past_due 0')
  })

  test('has no effect on what was paid after it', () => {
    expect(planAt(begin + 3 * day, paid(begin, null), refund(begin + day, null))).toBe('free none 0')
    expect(planAt(begin + 3 * day, paid(begin, null), refund(begin + day, null), paid(begin + 2 * day, null))).toBe(
      'paid active 0',
    )
    const paidLate = planEvent('payment_recovery', begin + 2 * day, { invoiceId: 'i1', periodStart: begin })
    expect(planAt(begin + 3 * day, refund(begin + day, null), paidLate)).toBe('paid active 0')
  })

  test('counts beside another refund of the same moment', () => {
    const two = [refund(begin + day, null, begin), refund(begin + day, null, monthLater)]
    expect(planAt(begin + day, firstMonth, ...two)).toBe('free none 0')
  })
})

describe('with payments that name an invoice and activations that name none, as at Lemon Squeezy, the plan', () => {
  const snapshot = (at: number, periodEnd: number) => planEvent('activate', at, { periodEnd })
  const month = [snapshot(begin + 5, monthLater), paid(begin, 'i1'), snapshot(begin + 9 * day, monthLater)]

  test('ends with the refund of the payment, and stays ended when the same period is stated again', () => {
    expect(planAt(begin + 10 * day, ...month)).toBe('paid active 0')
    const refunded = [...month, refund(begin + 10 * day, 'i1')]
    expect(planAt(begin + 10 * day, ...refunded)).toBe('free none 0')
    expect(planAt(begin + 11 * day, ...refunded, snapshot(begin + 11 * day, monthLater))).toBe('free none 0')
  })

  test('ends with the refund of the payment when no period has an end', () => {
    const aboutNow = planEvent('activate', begin + day, { periodStart: begin })
    expect(planAt(begin + 2 * day, paid(begin, 'i1'), aboutNow, refund(begin + 2 * day, 'i1'))).toBe('free none 0')
  })

  test('stays when the refunded payment was a late one for an earlier period', () => {
    const late = planEvent('payment_recovery', monthLater + day, { invoiceId: 'i1', periodEnd: monthLater })
    const renewed = [snapshot(begin, monthLater), late, snapshot(monthLater + 2 * day, twoMonthsLater)]
    expect(planAt(monthLater + 3 * day, ...renewed, refund(monthLater + 3 * day, 'i1'))).toBe('paid active 0')
  })

  test('is back with the next period', () => {
    const refunded = [...month, refund(begin + 10 * day, 'i1')]
    expect(planAt(monthLater, ...refunded, snapshot(monthLater, twoMonthsLater))).toBe('paid active 0')
    expect(planAt(monthLater, ...refunded, paid(monthLater, 'i2'))).toBe('paid active 0')
  })

  test('is back when the payment is made again: a dispute that was won', () => {
    const refunded = [...month, refund(begin + 10 * day, 'i1')]
    expect(planAt(begin + 20 * day, ...refunded, paid(begin + 20 * day, 'i1'))).toBe('paid active 0')
  })

  test('stays when the payment of an older period is refunded', () => {
    const renewed = [...month, snapshot(monthLater + 5, twoMonthsLater)]
    expect(planAt(monthLater + day, ...renewed, refund(monthLater + day, 'i1'))).toBe('paid active 0')
    expect(planAt(monthLater + day, ...renewed, paid(monthLater, 'i2'), refund(monthLater + day, 'i2'))).toBe(
      'free none 0',
    )
  })
})

describe('a full refund without a known payment', () => {
  const two = addonEvent('update_addon', begin, { quantity: 2 })

  test.each([null, 'i9'])('of the invoice %s ends add-ons', (invoiceId) => {
    const refunded = addonEvent('refund', begin + day, { invoiceId })
    expect(planAt(begin + day, firstMonth, two, refunded)).toBe('paid active 0')
    expect(planAt(begin + day, refunded, two, firstMonth)).toBe('paid active 0')
  })

  test('has no effect on add-ons that were bought after it', () => {
    const again = addonEvent('update_addon', begin + 2 * day, { quantity: 1 })
    expect(planAt(begin + 3 * day, firstMonth, two, addonEvent('refund', begin + day), again)).toBe('paid active 1')
  })

  test('ends a plan of which only the cancellation is known', () => {
    const cancelled = planEvent('cancelled', begin, { periodEnd: monthLater })
    expect(planAt(begin + day, cancelled)).toBe('paid cancelled 0')
    expect(planAt(begin + day, cancelled, planEvent('refund', begin + day))).toBe('free none 0')
  })

  test('differs from a partial one, which ends nothing', () => {
    const refunded = addonEvent('refund', begin + day, { amount: 'partial' })
    expect(planAt(begin + day, firstMonth, two, refunded)).toBe('paid active 2')
  })
})

describe('an invoice that is not for a period, such as a proration or a manual fee', () => {
  const side = { invoiceId: 'side', invoiceReason: 'other' } as const
  const fee = (at: number) => planEvent('payment_recovery', at, side)
  const addons = [
    addonEvent('update_addon', begin, { quantity: 2 }),
    addonEvent('payment_recovery', begin, { invoiceId: 'a1' }),
  ]

  test('is refunded in full without an effect on the plan', () => {
    const month = planEvent('payment_recovery', begin, {
      invoiceId: 'i1',
      invoiceReason: 'period',
      periodEnd: monthLater,
    })
    const refunded = planEvent('refund', begin + 2 * day, side)
    for (const known of [[firstMonth], [month], [firstMonth, month]])
      for (const events of [
        [...known, fee(begin + day), refunded],
        [refunded, fee(begin + day), ...known],
        [...known, refunded],
      ])
        expect(planAt(begin + 3 * day, ...events)).toBe('paid active 0')
  })

  test('is refunded in full without an effect on the add-ons whose change it paid for', () => {
    const prorated = [addonEvent('payment_recovery', begin + day, side), addonEvent('refund', begin + 2 * day, side)]
    expect(planAt(begin + 3 * day, firstMonth, ...addons, ...prorated)).toBe('paid active 2')
    const refunded = addonEvent('refund', begin + 2 * day, { invoiceId: 'a1', invoiceReason: 'period' })
    expect(planAt(begin + 3 * day, firstMonth, ...addons, ...prorated, refunded)).toBe('paid active 0')
  })

  test('does not protect the period from a refund when an activation names it as the latest invoice', () => {
    const named = planEvent('activate', begin + day, { invoiceId: 'side', periodStart: begin, periodEnd: monthLater })
    const known = [firstMonth, planEvent('payment_recovery', begin, { invoiceId: 'i1' }), named, fee(begin + day)]
    expect(planAt(begin + 3 * day, ...known)).toBe('paid active 0')
    expect(planAt(begin + 3 * day, ...known, planEvent('refund', begin + 2 * day, side))).toBe('paid active 0')
    expect(planAt(begin + 3 * day, ...known, refund(begin + 2 * day, 'i1'))).toBe('free none 0')
  })

  test('gives no plan, and its payment settles only its own failures', () => {
    expect(planAt(begin + day, fee(begin))).toBe('free none 0')
    const unpaid = planEvent('payment_failed', begin + day, { invoiceId: 'i2' })
    const pastDue = planEvent('payment_failed', begin + day)
    for (const failure of [unpaid, pastDue])
      expect(planAt(begin + 2 * day, firstMonth, failure, fee(begin + 2 * day))).toBe('paid past_due 0')
    const ownFailure = planEvent('payment_failed', begin + day, side)
    expect(planAt(begin + 2 * day, firstMonth, ownFailure)).toBe('paid past_due 0')
    expect(planAt(begin + 2 * day, firstMonth, ownFailure, fee(begin + 2 * day))).toBe('paid active 0')
  })

  test('changes nothing when its payment or refund does not name it', () => {
    const nameless = { invoiceReason: 'other' } as const
    const refunded = planEvent('refund', begin + day, nameless)
    expect(planAt(begin + 2 * day, firstMonth, refunded, planEvent('payment_recovery', begin + day, nameless))).toBe(
      'paid active 0',
    )
    expect(planAt(begin + 2 * day, planEvent('payment_recovery', begin + day, nameless))).toBe('free none 0')
  })
})
