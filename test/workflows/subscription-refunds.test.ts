import { describe, expect, test } from 'vitest'
import {
  addon,
  begin,
  day,
  fact,
  firstMonth,
  monthLater,
  plan,
  secondMonth,
  standing,
  twoMonthsLater,
} from './billing-facts.ts'

const refund = (at: number, invoiceId: string | null, periodEnd: number | null = null) =>
  fact('refund', at, { invoiceId, periodEnd })
const paid = (at: number, invoiceId: string | null) => fact('payment_recovery', at, { invoiceId })

describe('a full refund', () => {
  test('of the present period ends the plan at once', () => {
    const after = standing(begin + day, firstMonth, refund(begin + day, 'i1'))
    expect(after).toMatchObject({ planTier: 'free', isPlainlyFree: true, subscriptions: [{ status: 'ended' }] })
    expect(plan(monthLater + day, firstMonth, secondMonth, refund(monthLater + day, 'i2'))).toBe('free none 0')
  })

  test('of an older period changes nothing', () => {
    const months = [firstMonth, secondMonth]
    expect(standing(monthLater + day, ...months, refund(monthLater + day, 'i1'))).toEqual(
      standing(monthLater + day, ...months),
    )
  })

  test('in part changes nothing', () => {
    const part = fact('refund', begin + day, { invoiceId: 'i1', amount: 'partial' })
    expect(standing(begin + day, firstMonth, part)).toEqual(standing(begin + day, firstMonth))
  })

  test('is undone by the next period that is paid: a chargeback, then a renewal', () => {
    const chargeback = refund(begin + 9 * day, 'i1')
    expect(plan(begin + 9 * day, firstMonth, chargeback)).toBe('free none 0')
    expect(plan(monthLater, firstMonth, chargeback, secondMonth)).toBe('paid active 0')
  })

  test('is undone by a new activation', () => {
    const anew = fact('activate', begin + 2 * day)
    const again = fact('activate', begin + 2 * day, { periodEnd: monthLater })
    for (const activation of [anew, again])
      expect(plan(begin + 3 * day, firstMonth, refund(begin + day, 'i1'), activation)).toBe('paid active 0')
    const nameless = [fact('activate', begin), refund(begin + day, null)]
    expect(plan(begin + day, ...nameless)).toBe('free none 0')
    expect(plan(begin + 3 * day, ...nameless, anew)).toBe('paid active 0')
  })

  test('is undone by the same money when it comes back: a dispute that was won', () => {
    const disputed = [firstMonth, paid(begin, 'i1'), refund(begin + day, 'i1')]
    expect(plan(begin + 30 * day, ...disputed)).toBe('free none 0')
    expect(plan(begin + 30 * day, ...disputed, paid(begin + 30 * day, 'i1'))).toBe('paid active 0')
  })

  test('of one of two payments for the same period counts when it was the later', () => {
    const again = fact('payment_recovery', begin + day, { invoiceId: 'i2', periodStart: begin, periodEnd: monthLater })
    expect(plan(begin + 2 * day, firstMonth, again, refund(begin + 2 * day, 'i1'))).toBe('paid active 0')
    expect(plan(begin + 2 * day, firstMonth, again, refund(begin + 2 * day, 'i2'))).toBe('free none 0')
  })

  test('of a cancelled subscription does not wait for the end of its period', () => {
    const cancelled = fact('cancelled', begin + day, { periodEnd: monthLater })
    expect(plan(begin + 2 * day, firstMonth, cancelled, refund(begin + 2 * day, 'i1'))).toBe('free none 0')
  })

  test('of one subscription leaves the others', () => {
    const other = addon('update_addon', begin, { quantity: 2 })
    expect(plan(begin + day, firstMonth, other, refund(begin + day, 'i1'))).toBe('free none 2')
  })
})

describe('a full refund without an invoice that is known', () => {
  const snapshot = fact('activate', begin, { periodStart: begin, periodEnd: monthLater })

  test.each([
    ['what had begun by then', refund(begin + day, null), 'free none 0'],
    ['what began in that moment', refund(begin, null), 'free none 0'],
    ['nothing that began afterwards', refund(begin - 1, null), 'paid active 0'],
    ['what belongs to its period', refund(begin + day, null, monthLater), 'free none 0'],
    ['nothing of the next period', refund(begin + day, null, begin), 'paid active 0'],
  ])('takes %s', (_what, given, left) => {
    expect(plan(begin + day, snapshot, given)).toBe(left)
    expect(plan(begin + day, firstMonth, given)).toBe(left)
  })

  test('that names one takes only what names none', () => {
    expect(plan(begin + day, snapshot, refund(begin + day, 'unheard-of'))).toBe('free none 0')
    expect(plan(begin + day, firstMonth, refund(begin + day, 'unheard-of'))).toBe('paid active 0')
  })

  test('means that invoice and no other once something else names it', () => {
    const failedRenewal = fact('payment_failed', begin + day, { invoiceId: 'i2' })
    expect(plan(begin + day, snapshot, failedRenewal, refund(begin + day, 'i2'))).toBe('paid past_due 0')
  })

  test('does not take what was paid after it', () => {
    expect(plan(begin + 3 * day, paid(begin, null), refund(begin + day, null))).toBe('free none 0')
    expect(plan(begin + 3 * day, paid(begin, null), refund(begin + day, null), paid(begin + 2 * day, null))).toBe(
      'paid active 0',
    )
    const paidLate = fact('payment_recovery', begin + 2 * day, { invoiceId: 'i1', periodStart: begin })
    expect(plan(begin + 3 * day, refund(begin + day, null), paidLate)).toBe('paid active 0')
  })

  test('counts beside another of the same moment', () => {
    const two = [refund(begin + day, null, begin), refund(begin + day, null, monthLater)]
    expect(plan(begin + day, firstMonth, ...two)).toBe('free none 0')
  })
})

describe('a provider that tells payments by invoice, and again and again without one what the subscription is like', () => {
  const snapshot = (at: number, periodEnd: number) => fact('activate', at, { periodEnd })
  const month = [snapshot(begin + 5, monthLater), paid(begin, 'i1'), snapshot(begin + 9 * day, monthLater)]

  test('loses the plan with the refund of the payment, whatever it tells again of that period', () => {
    expect(plan(begin + 10 * day, ...month)).toBe('paid active 0')
    const refunded = [...month, refund(begin + 10 * day, 'i1')]
    expect(plan(begin + 10 * day, ...refunded)).toBe('free none 0')
    expect(plan(begin + 11 * day, ...refunded, snapshot(begin + 11 * day, monthLater))).toBe('free none 0')
  })

  test('or of no period at all', () => {
    const aboutNow = fact('activate', begin + day, { periodStart: begin })
    expect(plan(begin + 2 * day, paid(begin, 'i1'), aboutNow, refund(begin + 2 * day, 'i1'))).toBe('free none 0')
  })

  test('keeps it when what is refunded was paid late for a period that is over', () => {
    const late = fact('payment_recovery', monthLater + day, { invoiceId: 'i1', periodEnd: monthLater })
    const renewed = [snapshot(begin, monthLater), late, snapshot(monthLater + 2 * day, twoMonthsLater)]
    expect(plan(monthLater + 3 * day, ...renewed, refund(monthLater + 3 * day, 'i1'))).toBe('paid active 0')
  })

  test('has it again with the next period', () => {
    const refunded = [...month, refund(begin + 10 * day, 'i1')]
    expect(plan(monthLater, ...refunded, snapshot(monthLater, twoMonthsLater))).toBe('paid active 0')
    expect(plan(monthLater, ...refunded, paid(monthLater, 'i2'))).toBe('paid active 0')
  })

  test('has it again when a dispute of that payment was won', () => {
    const refunded = [...month, refund(begin + 10 * day, 'i1')]
    expect(plan(begin + 20 * day, ...refunded, paid(begin + 20 * day, 'i1'))).toBe('paid active 0')
  })

  test('keeps it when the payment of an older period is refunded', () => {
    const renewed = [...month, snapshot(monthLater + 5, twoMonthsLater)]
    expect(plan(monthLater + day, ...renewed, refund(monthLater + day, 'i1'))).toBe('paid active 0')
    expect(plan(monthLater + day, ...renewed, paid(monthLater, 'i2'), refund(monthLater + day, 'i2'))).toBe(
      'free none 0',
    )
  })
})

describe('a full refund where no payment was told of', () => {
  const two = addon('update_addon', begin, { quantity: 2 })

  test.each([null, 'i9'])('takes add-ons away, of the invoice %s', (invoiceId) => {
    const refunded = addon('refund', begin + day, { invoiceId })
    expect(plan(begin + day, firstMonth, two, refunded)).toBe('paid active 0')
    expect(plan(begin + day, refunded, two, firstMonth)).toBe('paid active 0')
  })

  test('leaves add-ons that were bought after it', () => {
    const again = addon('update_addon', begin + 2 * day, { quantity: 1 })
    expect(plan(begin + 3 * day, firstMonth, two, addon('refund', begin + day), again)).toBe('paid active 1')
  })

  test('ends a plan of which nothing but its cancellation is known', () => {
    const cancelled = fact('cancelled', begin, { periodEnd: monthLater })
    expect(plan(begin + day, cancelled)).toBe('paid cancelled 0')
    expect(plan(begin + day, cancelled, fact('refund', begin + day))).toBe('free none 0')
  })

  test('of a part takes nothing away', () => {
    const refunded = addon('refund', begin + day, { amount: 'partial' })
    expect(plan(begin + day, firstMonth, two, refunded)).toBe('paid active 2')
  })
})

describe('an invoice that is not for a period, such as a proration or a manual fee', () => {
  const side = { invoiceId: 'side', invoiceReason: 'other' } as const
  const fee = (at: number) => fact('payment_recovery', at, side)
  const addons = [addon('update_addon', begin, { quantity: 2 }), addon('payment_recovery', begin, { invoiceId: 'a1' })]

  test('is refunded in full without an effect on the plan', () => {
    const month = fact('payment_recovery', begin, { invoiceId: 'i1', invoiceReason: 'period', periodEnd: monthLater })
    const refunded = fact('refund', begin + 2 * day, side)
    for (const known of [[firstMonth], [month], [firstMonth, month]])
      for (const facts of [
        [...known, fee(begin + day), refunded],
        [refunded, fee(begin + day), ...known],
        [...known, refunded],
      ])
        expect(plan(begin + 3 * day, ...facts)).toBe('paid active 0')
  })

  test('is refunded in full without an effect on the add-ons whose change it paid for', () => {
    const prorated = [addon('payment_recovery', begin + day, side), addon('refund', begin + 2 * day, side)]
    expect(plan(begin + 3 * day, firstMonth, ...addons, ...prorated)).toBe('paid active 2')
    const refunded = addon('refund', begin + 2 * day, { invoiceId: 'a1', invoiceReason: 'period' })
    expect(plan(begin + 3 * day, firstMonth, ...addons, ...prorated, refunded)).toBe('paid active 0')
  })

  test('does not protect the period from a refund when the subscription names it as its latest invoice', () => {
    const named = fact('activate', begin + day, { invoiceId: 'side', periodStart: begin, periodEnd: monthLater })
    const known = [firstMonth, fact('payment_recovery', begin, { invoiceId: 'i1' }), named, fee(begin + day)]
    expect(plan(begin + 3 * day, ...known)).toBe('paid active 0')
    expect(plan(begin + 3 * day, ...known, fact('refund', begin + 2 * day, side))).toBe('paid active 0')
    expect(plan(begin + 3 * day, ...known, refund(begin + 2 * day, 'i1'))).toBe('free none 0')
  })

  test('gives no plan and settles no failure but its own', () => {
    expect(plan(begin + day, fee(begin))).toBe('free none 0')
    const unpaid = fact('payment_failed', begin + day, { invoiceId: 'i2' })
    const pastDue = fact('payment_failed', begin + day)
    for (const failure of [unpaid, pastDue])
      expect(plan(begin + 2 * day, firstMonth, failure, fee(begin + 2 * day))).toBe('paid past_due 0')
    const ownFailure = fact('payment_failed', begin + day, side)
    expect(plan(begin + 2 * day, firstMonth, ownFailure)).toBe('paid past_due 0')
    expect(plan(begin + 2 * day, firstMonth, ownFailure, fee(begin + 2 * day))).toBe('paid active 0')
  })

  test('changes nothing when it is paid or refunded without being named', () => {
    const nameless = { invoiceReason: 'other' } as const
    const refunded = fact('refund', begin + day, nameless)
    expect(plan(begin + 2 * day, firstMonth, refunded, fact('payment_recovery', begin + day, nameless))).toBe(
      'paid active 0',
    )
    expect(plan(begin + 2 * day, fact('payment_recovery', begin + day, nameless))).toBe('free none 0')
  })
})
