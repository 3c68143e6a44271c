import { describe, expect, test } from 'vitest'
import { applyEvent, initialState } from '../../domain/subscription.ts'
import {
  addon,
  begin,
  day,
  fact,
  failed,
  failedAt,
  firstMonth,
  knowing,
  monthLater,
  plan,
  secondMonth,
  standing,
  twoMonthsLater,
} from './billing-facts.ts'

describe('each of the seven things that a provider tells, by itself', () => {
  test('nothing: the account is plainly free', () => {
    expect(standing(begin)).toEqual({
      planTier: 'free',
      planStatus: 'none',
      addons: 0,
      periodStart: null,
      periodEnd: null,
      endsAt: null,
      graceEndsAt: null,
      changesAt: null,
      subscriptions: [],
      isPlainlyFree: true,
    })
  })

  test('activate: the plan is paid, without an end', () => {
    expect(standing(begin, firstMonth)).toEqual({
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
          periodStart: begin,
          periodEnd: monthLater,
        },
      ],
      isPlainlyFree: false,
    })
    expect(plan(begin + 400 * day, firstMonth)).toBe('paid active 0')
    expect(standing(begin, { ...firstMonth, quantity: 3 })).toEqual(standing(begin, firstMonth))
  })

  test('update_addon: the add-ons are as many, whether there is a plan or not', () => {
    const two = addon('update_addon', begin, { quantity: 2 })
    expect(plan(begin, two)).toBe('free none 2')
    expect(plan(begin, two, firstMonth)).toBe('paid active 2')
    expect(standing(begin, two).isPlainlyFree).toBe(false)
  })

  test('payment_recovery: whoever pays has the plan, though nobody told that it began', () => {
    expect(plan(begin, fact('payment_recovery', begin, { invoiceId: 'i1' }))).toBe('paid active 0')
  })

  test('payment_failed: gives nothing by itself, and is not forgotten', () => {
    expect(standing(failedAt, failed)).toMatchObject({
      planTier: 'free',
      isPlainlyFree: true,
      subscriptions: [{ status: 'ended' }],
    })
    expect(plan(failedAt, failed, firstMonth)).toBe('paid past_due 0')
  })

  test('cancelled: paid until the period ends, and not a millisecond longer', () => {
    const cancelled = fact('cancelled', begin + day, { periodEnd: monthLater })
    expect(standing(begin + day, firstMonth, cancelled)).toMatchObject({
      planTier: 'paid',
      planStatus: 'cancelled',
      endsAt: monthLater,
      graceEndsAt: null,
      changesAt: monthLater,
      periodStart: null,
      periodEnd: monthLater,
    })
    expect(plan(monthLater - 1, firstMonth, cancelled)).toBe('paid cancelled 0')
    expect(standing(monthLater, firstMonth, cancelled)).toMatchObject({
      planTier: 'free',
      planStatus: 'none',
      endsAt: null,
      isPlainlyFree: true,
      subscriptions: [{ status: 'ended' }],
    })
  })

  test('downgrade: the plan is gone at once', () => {
    expect(plan(begin + day, firstMonth, fact('downgrade', begin + day))).toBe('free none 0')
  })

  test('refund: of the present period in full takes the plan at once', () => {
    expect(plan(begin + day, firstMonth, fact('refund', begin + day, { invoiceId: 'i1' }))).toBe('free none 0')
  })
})

describe('the status of a subscription', () => {
  test('is the latest by the time that the provider tells, not the last to arrive', () => {
    const cancelled = fact('cancelled', begin + day, { periodEnd: monthLater })
    const resumed = fact('activate', begin + 2 * day)
    expect(plan(begin + 3 * day, firstMonth, resumed, cancelled)).toBe('paid active 0')
  })

  test('of things at the same time is the worst', () => {
    const [cancelled, ended] = [fact('cancelled', begin, { periodEnd: monthLater }), fact('downgrade', begin)]
    expect(plan(begin, cancelled, firstMonth)).toBe('paid cancelled 0')
    expect(plan(begin, ended, cancelled, firstMonth)).toBe('free none 0')
  })

  test('of one of a plan and of add-ons under the same id are two', () => {
    const both = [fact('activate', begin), addon('update_addon', begin, { subscriptionId: 'plan-1', quantity: 1 })]
    expect(plan(begin + day, ...both, fact('downgrade', begin + day))).toBe('free none 1')
  })

  test.each([
    ['31 January', Date.UTC(2026, 0, 31, 8), Date.UTC(2026, 1, 3), Date.UTC(2026, 1, 28, 8)],
    ['31 January, in March', Date.UTC(2026, 0, 31, 8), Date.UTC(2026, 2, 3), Date.UTC(2026, 2, 31, 8)],
    ['31 December, in a leap year', Date.UTC(2027, 11, 31, 8), Date.UTC(2028, 1, 1), Date.UTC(2028, 1, 29, 8)],
    ['the day itself', Date.UTC(2026, 4, 5), Date.UTC(2026, 5, 5), Date.UTC(2026, 6, 5)],
  ])('cancelled without a period lasts to the next month since %s', (_what, since, at, until) => {
    expect(standing(at, fact('activate', since), fact('cancelled', at)).endsAt).toBe(until)
  })

  test('cancelled before it begins lasts until then', () => {
    const future = fact('activate', begin, { periodStart: twoMonthsLater })
    expect(standing(begin, future, fact('cancelled', begin + 1)).endsAt).toBe(twoMonthsLater)
  })

  test('cancelled without a period gives nothing when nobody saw it begin, and a month when somebody paid', () => {
    expect(plan(begin, fact('cancelled', begin))).toBe('free none 0')
    expect(standing(begin, fact('cancelled', begin), fact('payment_recovery', begin - day)).endsAt).toBe(monthLater)
  })

  test('of several plans is the best one, and of equals the one that lasts longest', () => {
    const cancelled = (subscriptionId: string, periodEnd: number) =>
      fact('cancelled', begin, { subscriptionId, periodEnd })
    const two = [cancelled('a', monthLater), cancelled('b', twoMonthsLater)]
    expect(standing(begin, ...two)).toMatchObject({ planStatus: 'cancelled', endsAt: twoMonthsLater })
    expect(standing(monthLater, ...two).changesAt).toBe(twoMonthsLater)
    expect(standing(begin, ...two).changesAt).toBe(monthLater)
    const pastDue = [firstMonth, fact('payment_failed', begin)]
    expect(plan(begin, ...two, ...pastDue)).toBe('paid past_due 0')
    expect(plan(begin, ...two, ...pastDue, fact('activate', begin, { subscriptionId: 'c' }))).toBe('paid active 0')
    const [soon, late] = [cancelled('y', monthLater), cancelled('z', monthLater + day)]
    expect(standing(begin + day, soon, late).endsAt).toBe(monthLater + day)
    const elsewhere = { ...secondMonth, subscriptionId: 'plan-0' }
    expect(standing(begin, firstMonth, elsewhere)).toMatchObject({ periodStart: monthLater, periodEnd: twoMonthsLater })
    expect(standing(begin, secondMonth, { ...firstMonth, subscriptionId: 'plan-0' }).periodEnd).toBe(twoMonthsLater)
  })

  test('has the period that was told last, but never one of a refund or of a late payment for what is over', () => {
    const past = { periodStart: begin - 30 * day, periodEnd: begin + day }
    const paidLate = fact('payment_recovery', begin + day, { invoiceId: 'i0', ...past })
    const refunded = fact('refund', begin + day, { invoiceId: 'i0', ...past })
    const now = standing(begin + day, paidLate, refunded, firstMonth)
    expect(now).toMatchObject({ periodStart: begin, periodEnd: monthLater })
    expect(standing(monthLater, firstMonth, secondMonth).periodEnd).toBe(twoMonthsLater)
  })

  test('has no known beginning of its period when that would not come before the end', () => {
    const odd = fact('activate', begin, { periodStart: monthLater, periodEnd: monthLater })
    expect(standing(begin, odd)).toMatchObject({ periodStart: null, periodEnd: monthLater })
  })
})

describe('what can not be understood', () => {
  test.each([
    ['no time', { at: Number.NaN }],
    ['a time that is no number', { at: '2026' }],
    ['an unknown action', { action: 'constructor' }],
    ['an unknown kind', { kind: 'seat' }],
  ])('changes nothing: %s', (_what, odd) => {
    const state = knowing(firstMonth)
    expect(applyEvent(state, { ...firstMonth, at: begin + 1, ...odd } as never)).toBe(state)
  })

  test('is left out, and the rest counts', () => {
    const odd = {
      action: 'cancelled',
      provider: 'sandbox',
      subscriptionId: 'plan-1',
      kind: 'plan',
      at: begin,
      periodEnd: 'x',
    }
    expect(standing(begin, fact('activate', begin), odd as never)).toMatchObject({
      planStatus: 'cancelled',
      endsAt: monthLater,
    })
  })

  test.each([1e300, -1e300, 8.64e15, -0, 0.5])('has no anniversary, and does no harm: a time of %s', (at) => {
    const state = knowing(fact('activate', at), fact('cancelled', at), fact('payment_failed', at))
    expect(JSON.parse(JSON.stringify(state))).toEqual(state)
    const after = standing(at, fact('activate', at), fact('cancelled', at))
    expect(JSON.parse(JSON.stringify(after))).toEqual(after)
  })

  test('or says nothing new is no reason for a new state', () => {
    const state = knowing(firstMonth, failed)
    expect(applyEvent(state, firstMonth)).toBe(state)
    expect(applyEvent(initialState, fact('refund', begin, { amount: 'partial' }))).toBe(initialState)
  })
})
