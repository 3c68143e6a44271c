/** The actions of billing events, and the plan that follows from them. */
import { describe, expect, test } from 'vitest'
import {
  addonEvent,
  begin,
  day,
  entitlement,
  failed,
  failedAt,
  firstMonth,
  monthLater,
  planAt,
  planEvent,
  secondMonth,
  twoMonthsLater,
} from './billing-events.ts'

describe('each of the seven actions by itself', () => {
  test('none: the account is free', () => {
    expect(entitlement(begin)).toEqual({
      planTier: 'free',
      planStatus: 'none',
      addons: 0,
      periodStart: null,
      periodEnd: null,
      endsAt: null,
      graceEndsAt: null,
      changesAt: null,
      subscriptions: [],
    })
  })

  test('activate: the plan is paid and has no end', () => {
    expect(entitlement(begin, firstMonth)).toEqual({
      planTier: 'paid',
      planStatus: 'active',
      addons: 0,
      periodStart: begin,
      periodEnd: monthLater,
      endsAt: null,
      graceEndsAt: null,
      changesAt: null,
      subscriptions: [
        {
          provider: 'sandbox',
          subscriptionId: 'plan-1',
          kind: 'plan',
          status: 'active',
          quantity: 1,
          addons: 0,
          periodStart: begin,
          periodEnd: monthLater,
        },
      ],
    })
    expect(planAt(begin + 400 * day, firstMonth)).toBe('paid active 0')
    expect(entitlement(begin, { ...firstMonth, quantity: 3 })).toEqual(entitlement(begin, firstMonth))
  })

  test('update_addon: sets the number of add-ons, with or without a plan', () => {
    const two = addonEvent('update_addon', begin, { quantity: 2 })
    expect(planAt(begin, two)).toBe('free none 2')
    expect(planAt(begin, two, firstMonth)).toBe('paid active 2')
  })

  test('payment_recovery: gives the plan without a known activation', () => {
    expect(planAt(begin, planEvent('payment_recovery', begin, { invoiceId: 'i1' }))).toBe('paid active 0')
  })

  test('payment_failed: gives nothing by itself, and counts after an activation of an earlier time', () => {
    expect(entitlement(failedAt, failed)).toMatchObject({
      planTier: 'free',
      addons: 0,
      changesAt: null,
      subscriptions: [{ status: 'ended' }],
    })
    expect(planAt(failedAt, failed, firstMonth)).toBe('paid past_due 0')
  })

  test('cancelled: the plan ends at the end of the period, to the millisecond', () => {
    const cancelled = planEvent('cancelled', begin + day, { periodEnd: monthLater })
    expect(entitlement(begin + day, firstMonth, cancelled)).toMatchObject({
      planTier: 'paid',
      planStatus: 'cancelled',
      endsAt: monthLater,
      graceEndsAt: null,
      changesAt: monthLater,
      periodStart: null,
      periodEnd: monthLater,
    })
    expect(planAt(monthLater - 1, firstMonth, cancelled)).toBe('paid cancelled 0')
    expect(entitlement(monthLater, firstMonth, cancelled)).toMatchObject({
      planTier: 'free',
      planStatus: 'none',
      addons: 0,
      endsAt: null,
      changesAt: null,
      subscriptions: [{ status: 'ended' }],
    })
  })

  test('downgrade: the plan ends at once', () => {
    expect(planAt(begin + day, firstMonth, planEvent('downgrade', begin + day))).toBe('free none 0')
  })

  test('refund: a full refund of the present period ends the plan at once', () => {
    expect(planAt(begin + day, firstMonth, planEvent('refund', begin + day, { invoiceId: 'i1' }))).toBe('free none 0')
  })
})

describe('the status and the period of a subscription', () => {
  test('is the latest by the time of the provider, not the last to arrive', () => {
    const cancelled = planEvent('cancelled', begin + day, { periodEnd: monthLater })
    const resumed = planEvent('activate', begin + 2 * day)
    expect(planAt(begin + 3 * day, firstMonth, resumed, cancelled)).toBe('paid active 0')
  })

  test('is the worst of those with the same time', () => {
    const [cancelled, ended] = [planEvent('cancelled', begin, { periodEnd: monthLater }), planEvent('downgrade', begin)]
    expect(planAt(begin, cancelled, firstMonth)).toBe('paid cancelled 0')
    expect(planAt(begin, ended, cancelled, firstMonth)).toBe('free none 0')
  })

  test('is separate for a plan and add-ons with the same id', () => {
    const both = [
      planEvent('activate', begin),
      addonEvent('update_addon', begin, { subscriptionId: 'plan-1', quantity: 1 }),
    ]
    expect(planAt(begin + day, ...both, planEvent('downgrade', begin + day))).toBe('free none 1')
  })

  test.each([
    ['31 January', Date.UTC(2026, 0, 31, 8), Date.UTC(2026, 1, 3), Date.UTC(2026, 1, 28, 8)],
    ['31 January, in March', Date.UTC(2026, 0, 31, 8), Date.UTC(2026, 2, 3), Date.UTC(2026, 2, 31, 8)],
    ['31 December, in a leap year', Date.UTC(2027, 11, 31, 8), Date.UTC(2028, 1, 1), Date.UTC(2028, 1, 29, 8)],
    ['the day itself', Date.UTC(2026, 4, 5), Date.UTC(2026, 5, 5), Date.UTC(2026, 6, 5)],
  ])('cancelled without a period ends on the next monthly anniversary of %s', (_what, since, at, until) => {
    expect(entitlement(at, planEvent('activate', since), planEvent('cancelled', at)).endsAt).toBe(until)
  })

  test('cancelled before its period begins ends then', () => {
    const future = planEvent('activate', begin, { periodStart: twoMonthsLater })
    expect(entitlement(begin, future, planEvent('cancelled', begin + 1)).endsAt).toBe(twoMonthsLater)
  })

  test('cancelled without a period gives nothing without a known beginning, and a month after a payment', () => {
    expect(planAt(begin, planEvent('cancelled', begin))).toBe('free none 0')
    expect(entitlement(begin, planEvent('cancelled', begin), planEvent('payment_recovery', begin - day)).endsAt).toBe(
      monthLater,
    )
  })

  test('of several plans the best one counts, and of equal ones the one that lasts longest', () => {
    const cancelled = (subscriptionId: string, periodEnd: number) =>
      planEvent('cancelled', begin, { subscriptionId, periodEnd })
    const two = [cancelled('a', monthLater), cancelled('b', twoMonthsLater)]
    expect(entitlement(begin, ...two)).toMatchObject({ planStatus: 'cancelled', endsAt: twoMonthsLater })
    expect(entitlement(monthLater, ...two).changesAt).toBe(twoMonthsLater)
    expect(entitlement(begin, ...two).changesAt).toBe(monthLater)
    const pastDue = [firstMonth, planEvent('payment_failed', begin)]
    expect(planAt(begin, ...two, ...pastDue)).toBe('paid past_due 0')
    expect(planAt(begin, ...two, ...pastDue, planEvent('activate', begin, { subscriptionId: 'c' }))).toBe(
      'paid active 0',
    )
    const [soon, late] = [cancelled('y', monthLater), cancelled('z', monthLater + day)]
    expect(entitlement(begin + day, soon, late).endsAt).toBe(monthLater + day)
    const elsewhere = { ...secondMonth, subscriptionId: 'plan-0' }
    expect(entitlement(begin, firstMonth, elsewhere)).toMatchObject({
      periodStart: monthLater,
      periodEnd: twoMonthsLater,
    })
    expect(entitlement(begin, secondMonth, { ...firstMonth, subscriptionId: 'plan-0' }).periodEnd).toBe(twoMonthsLater)
  })

  test('the period is the one stated last, except in a refund or a late payment for a period that is over', () => {
    const past = { periodStart: begin - 30 * day, periodEnd: begin + day }
    const paidLate = planEvent('payment_recovery', begin + day, { invoiceId: 'i0', ...past })
    const refunded = planEvent('refund', begin + day, { invoiceId: 'i0', ...past })
    const now = entitlement(begin + day, paidLate, refunded, firstMonth)
    expect(now).toMatchObject({ periodStart: begin, periodEnd: monthLater })
    expect(entitlement(monthLater, firstMonth, secondMonth).periodEnd).toBe(twoMonthsLater)
  })

  test('the period has no start when the stated one is not before its end', () => {
    const odd = planEvent('activate', begin, { periodStart: monthLater, periodEnd: monthLater })
    expect(entitlement(begin, odd)).toMatchObject({ periodStart: null, periodEnd: monthLater })
  })
})

describe('an unusable event', () => {
  test.each([
    ['a time that is not a number', { at: Number.NaN }],
    ['a time that is a text', { at: '2026' }],
    ['an unknown action', { action: 'constructor' }],
    ['an unknown kind', { kind: 'seat' }],
  ])('is ignored: %s', (_what, fields) => {
    const unusable = { ...planEvent('downgrade', begin + 1), ...fields } as never
    expect(entitlement(begin + day, firstMonth, unusable)).toEqual(entitlement(begin + day, firstMonth))
  })

  test('counts without the fields that are unusable or missing', () => {
    const event = {
      action: 'cancelled',
      provider: 'sandbox',
      subscriptionId: 'plan-1',
      kind: 'plan',
      at: begin,
      periodEnd: 'x',
    }
    expect(entitlement(begin, planEvent('activate', begin), event as never)).toMatchObject({
      planStatus: 'cancelled',
      endsAt: monthLater,
    })
  })

  test.each([1e300, -1e300, 8.64e15, -0, 0.5])('at a time of %s leads to an entitlement that is plain JSON', (at) => {
    const events = [planEvent('activate', at), planEvent('cancelled', at), planEvent('payment_failed', at)]
    for (const known of [events, events.slice(0, 2)])
      expect(JSON.parse(JSON.stringify(entitlement(at, ...known)))).toEqual(entitlement(at, ...known))
  })
})
