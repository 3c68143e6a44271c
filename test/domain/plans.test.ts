import { expect, test } from 'vitest'
import { accessReason, addonsMax, relayLimit } from '../../domain/plans.ts'

test('the free tier includes no relay, whatever its add-ons', () => {
  expect(relayLimit({ planTier: 'free', addons: 0 })).toBe(0)
  expect(relayLimit({ planTier: 'free', addons: addonsMax })).toBe(0)
})

test('the paid plan includes one relay and each add-on one more, four in all', () => {
  expect([0, 1, 2, 3, 4].map((addons) => relayLimit({ planTier: 'paid', addons }))).toEqual([1, 2, 3, 4, 4])
})

test.each([
  [{ isEnabledByOperator: true, planTier: 'paid', isUsageExhausted: false }, 'ok'],
  [{ isEnabledByOperator: true, planTier: 'paid', isUsageExhausted: true }, 'usage_exhausted'],
  [{ isEnabledByOperator: true, planTier: 'free', isUsageExhausted: true }, 'plan_required'],
  [{ isEnabledByOperator: false, planTier: 'free', isUsageExhausted: true }, 'operator_disabled'],
  [{ isEnabledByOperator: false, planTier: 'paid', isUsageExhausted: false }, 'operator_disabled'],
] as const)('access with %j has the reason %s', (request, reason) => {
  expect(accessReason(request)).toBe(reason)
})
