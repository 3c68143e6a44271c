/** Add-ons in the entitlement: sums, ends, and those in the subscription of a plan. */
import { describe, expect, test } from 'vitest'
import {
  addonEvent,
  begin,
  day,
  entitlement,
  failed,
  failedAt,
  firstMonth,
  granted,
  hour,
  monthLater,
  planAt,
  planEvent,
  withdrawn,
} from './billing-events.ts'

describe('add-ons', () => {
  test('add up over subscriptions, to at most three', () => {
    const two = (subscriptionId: string) => addonEvent('update_addon', begin, { subscriptionId, quantity: 2 })
    expect(planAt(begin, two('a'))).toBe('free none 2')
    expect(planAt(begin, two('a'), two('b'))).toBe('free none 3')
  })

  test.each([
    [-1, 0],
    [0, 0],
    [2.9, 2],
    [4, 3],
    [1e300, 3],
    [null, 1],
  ])('with a quantity of %s are %s', (quantity, addons) => {
    expect(entitlement(begin, addonEvent('activate', begin, { quantity })).addons).toBe(addons)
  })

  test('become fewer with a later event, whichever arrives first', () => {
    const [earlier, later] = [
      addonEvent('update_addon', begin, { quantity: 3 }),
      addonEvent('update_addon', begin + 1, { quantity: 1 }),
    ]
    expect(entitlement(begin, later, earlier).addons).toBe(1)
  })

  test('are not changed by the quantity in a refund', () => {
    const three = addonEvent('update_addon', begin, { quantity: 3 })
    const refund = addonEvent('refund', begin + 1, { quantity: 1, invoiceId: 'a0', amount: 'partial' })
    expect(entitlement(begin + 1, three, refund).addons).toBe(3)
  })

  test('have their own payment grace period, cancellation and refunds', () => {
    const two = addonEvent('update_addon', begin, { quantity: 2 })
    const unpaid = [firstMonth, two, addonEvent('payment_failed', failedAt)]
    expect(entitlement(failedAt, ...unpaid)).toMatchObject({
      planStatus: 'active',
      graceEndsAt: null,
      addons: 2,
      changesAt: failedAt + 48 * hour,
    })
    expect(planAt(failedAt + 48 * hour, ...unpaid)).toBe('paid active 0')
    const cancelled = addonEvent('cancelled', begin + day, { periodEnd: monthLater })
    expect(entitlement(begin + day, firstMonth, two, cancelled)).toMatchObject({ addons: 2, changesAt: monthLater })
    expect(planAt(monthLater, firstMonth, two, cancelled)).toBe('paid active 0')
    const paidBack = [
      addonEvent('payment_recovery', begin, { invoiceId: 'a1' }),
      addonEvent('refund', begin + day, { invoiceId: 'a1' }),
    ]
    expect(planAt(begin + day, firstMonth, two, ...paidBack)).toBe('paid active 0')
  })

  test('are kept while the plan has ended, and count again with it', () => {
    const two = addonEvent('update_addon', begin, { quantity: 2 })
    expect(planAt(failedAt + 48 * hour, firstMonth, two, failed)).toBe('free none 2')
    const paid = planEvent('payment_recovery', failedAt + 50 * hour, { invoiceId: 'i2' })
    expect(planAt(failedAt + 50 * hour, firstMonth, two, failed, paid)).toBe('paid active 2')
  })
})

describe('a complimentary plan', () => {
  test('ends at its time, with its add-ons', () => {
    const grant = granted(begin, 2, monthLater)
    expect(entitlement(begin, grant)).toMatchObject({
      planTier: 'paid',
      planStatus: 'active',
      addons: 2,
      endsAt: monthLater,
      changesAt: monthLater,
      periodEnd: null,
      subscriptions: [],
    })
    expect(planAt(monthLater - 1, grant)).toBe('paid active 2')
    expect(entitlement(monthLater, grant)).toMatchObject({ planTier: 'free', addons: 0, changesAt: null })
  })

  test('is as granted last, and ends when it is withdrawn', () => {
    expect(planAt(begin + 9, granted(begin + 5, 3), granted(begin, 1))).toBe('paid active 3')
    expect(planAt(begin + 9, withdrawn(begin + 5), granted(begin, 1))).toBe('free none 0')
    expect(planAt(begin + 9, withdrawn(begin + 5), granted(begin + 6))).toBe('paid active 0')
    const [first, second] = [
      { ...granted(begin, 2), key: '1' },
      { ...granted(begin, 1), key: '2' },
    ]
    expect(planAt(begin, first, second)).toBe(planAt(begin, second, first))
    expect(planAt(begin, second, first)).toBe('paid active 1')
  })

  test('with an end does not end a subscription that continues', () => {
    expect(entitlement(begin, granted(begin, 0, monthLater), planEvent('activate', begin)).endsAt).toBeNull()
  })

  test('replaces a plan that is past due, and leaves the period to one that is paid', () => {
    const grant = granted(begin, 1)
    expect(entitlement(failedAt, grant, firstMonth, failed)).toMatchObject({ planStatus: 'active', graceEndsAt: null })
    expect(entitlement(begin, grant, firstMonth)).toMatchObject({ periodEnd: monthLater, endsAt: null, addons: 1 })
  })
})
