import { expect, test } from 'vitest'
import { findUnusedBilling } from '../../domain/billed-subscriptions.ts'

const plan = { kind: 'plan', status: 'active', quantity: 1 } as const
const addons = { kind: 'addon', status: 'active', quantity: 2 } as const

test('billed add-ons of an account without a plan are counted by quantity', () => {
  const subscriptions = [addons, { ...addons, status: 'past_due', quantity: 1 } as const]
  expect(findUnusedBilling('free', subscriptions)).toEqual({ addonsWithoutPlan: 3, billedPlans: 0 })
  expect(findUnusedBilling('paid', subscriptions)).toEqual({ addonsWithoutPlan: 0, billedPlans: 0 })
})

test('cancelled and ended subscriptions and add-ons with quantity 0 are not billed', () => {
  const subscriptions = [
    { ...plan, status: 'cancelled' },
    { ...addons, status: 'cancelled' },
    { ...addons, status: 'ended' },
    { ...addons, quantity: 0 },
  ] as const
  expect(findUnusedBilling('free', subscriptions)).toEqual({ addonsWithoutPlan: 0, billedPlans: 0 })
})

test('all billed plans are counted', () => {
  expect(findUnusedBilling('paid', [plan, { ...plan, status: 'past_due' }, addons]).billedPlans).toBe(2)
})
