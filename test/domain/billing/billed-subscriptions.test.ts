/** What an account is billed for, as its subscriptions say. */
import { expect, test } from 'vitest'
import { findUnusedBilling, isBilledAddon } from '../../../domain/billing/billed-subscriptions.ts'

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
  expect(findUnusedBilling('free', [plan])).toEqual({ addonsWithoutPlan: 0, billedPlans: 1 })
  // A provider states no quantity of add-ons for a plan.
  expect(findUnusedBilling('paid', [{ ...plan, quantity: 0 }]).billedPlans).toBe(1)
})

test('an add-on counts as billed while it is charged and has a quantity', () => {
  const billed = (subscription: Parameters<typeof isBilledAddon>[0]) => isBilledAddon(subscription)
  expect([addons, { ...addons, status: 'past_due' } as const].map(billed)).toEqual([true, true])
  expect([{ ...addons, quantity: 0 }, { ...addons, status: 'ended' } as const, plan].map(billed)).toEqual([
    false,
    false,
    false,
  ])
})
