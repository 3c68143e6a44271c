import { describe, expect, test } from 'vitest'
import {
  addon,
  begin,
  day,
  fact,
  failed,
  failedAt,
  firstMonth,
  granted,
  hour,
  monthLater,
  plan,
  standing,
  withdrawn,
} from './billing-facts.ts'

describe('add-ons', () => {
  test('are counted up over subscriptions, to three', () => {
    const two = (subscriptionId: string) => addon('update_addon', begin, { subscriptionId, quantity: 2 })
    expect(plan(begin, two('a'))).toBe('free none 2')
    expect(plan(begin, two('a'), two('b'))).toBe('free none 3')
  })

  test.each([
    [-1, 0],
    [0, 0],
    [2.9, 2],
    [4, 3],
    [1e300, 3],
    [null, 1],
  ])('of a quantity of %s are %s', (quantity, addons) => {
    expect(standing(begin, addon('activate', begin, { quantity })).addons).toBe(addons)
  })

  test('become fewer when the provider says so, whatever arrives first', () => {
    const [three, one] = [
      addon('update_addon', begin, { quantity: 3 }),
      addon('update_addon', begin + 1, { quantity: 1 }),
    ]
    expect(standing(begin, one, three).addons).toBe(1)
  })

  test('are not counted by a refund', () => {
    const three = addon('update_addon', begin, { quantity: 3 })
    const refund = addon('refund', begin + 1, { quantity: 1, invoiceId: 'a0', amount: 'partial' })
    expect(standing(begin + 1, three, refund).addons).toBe(3)
  })

  test('have a grace, a cancellation and refunds of their own', () => {
    const two = addon('update_addon', begin, { quantity: 2 })
    const unpaid = [firstMonth, two, addon('payment_failed', failedAt)]
    expect(standing(failedAt, ...unpaid)).toMatchObject({
      planStatus: 'active',
      graceEndsAt: null,
      addons: 2,
      changesAt: failedAt + 48 * hour,
    })
    expect(plan(failedAt + 48 * hour, ...unpaid)).toBe('paid active 0')
    const cancelled = addon('cancelled', begin + day, { periodEnd: monthLater })
    expect(standing(begin + day, firstMonth, two, cancelled)).toMatchObject({ addons: 2, changesAt: monthLater })
    expect(plan(monthLater, firstMonth, two, cancelled)).toBe('paid active 0')
    const paidBack = [
      addon('payment_recovery', begin, { invoiceId: 'a1' }),
      addon('refund', begin + day, { invoiceId: 'a1' }),
    ]
    expect(plan(begin + day, firstMonth, two, ...paidBack)).toBe('paid active 0')
  })

  test('stay known while the plan is gone, and come back with it', () => {
    const two = addon('update_addon', begin, { quantity: 2 })
    expect(plan(failedAt + 48 * hour, firstMonth, two, failed)).toBe('free none 2')
    const paid = fact('payment_recovery', failedAt + 50 * hour, { invoiceId: 'i2' })
    expect(plan(failedAt + 50 * hour, firstMonth, two, failed, paid)).toBe('paid active 2')
  })
})

describe('a complimentary plan', () => {
  test('lasts until its time, add-ons and all', () => {
    const grant = granted(begin, 2, monthLater)
    expect(standing(begin, grant)).toMatchObject({
      planTier: 'paid',
      planStatus: 'active',
      addons: 2,
      endsAt: monthLater,
      changesAt: monthLater,
      periodEnd: null,
      subscriptions: [],
    })
    expect(plan(monthLater - 1, grant)).toBe('paid active 2')
    expect(standing(monthLater, grant)).toMatchObject({ planTier: 'free', addons: 0, isPlainlyFree: true })
  })

  test('is as an operator said last, and gone when withdrawn', () => {
    expect(plan(begin + 9, granted(begin + 5, 3), granted(begin, 1))).toBe('paid active 3')
    expect(standing(begin + 9, withdrawn(begin + 5), granted(begin, 1)).isPlainlyFree).toBe(true)
    expect(plan(begin + 9, withdrawn(begin + 5), granted(begin + 6))).toBe('paid active 0')
    const [one, two] = [
      { ...granted(begin, 2), key: '1' },
      { ...granted(begin, 1), key: '2' },
    ]
    expect(plan(begin, one, two)).toBe(plan(begin, two, one))
    expect(plan(begin, two, one)).toBe('paid active 1')
  })

  test('for a time says nothing of a subscription that goes on', () => {
    expect(standing(begin, granted(begin, 0, monthLater), fact('activate', begin)).endsAt).toBeNull()
  })

  test('covers a subscription that fell behind, and leaves the period to one that is paid', () => {
    const grant = granted(begin, 1)
    expect(standing(failedAt, grant, firstMonth, failed)).toMatchObject({ planStatus: 'active', graceEndsAt: null })
    expect(standing(begin, grant, firstMonth)).toMatchObject({ periodEnd: monthLater, endsAt: null, addons: 1 })
  })
})
