/** What each plan includes. */
import { expect, test } from 'vitest'
import { accessReason, addonsMax, relayLimit } from '../../../domain/billing/plans.ts'

test('the free tier includes no relay, whatever its add-ons', () => {
  expect(relayLimit({ planTier: 'free', addons: 0 })).toBe(0)
  expect(relayLimit({ planTier: 'free', addons: addonsMax })).toBe(0)
})

test('the paid plan includes one relay and each add-on one more, four in all', () => {
  expect([0, 1, 2, 3, 4].map((addons) => relayLimit({ planTier: 'paid', addons }))).toEqual([1, 2, 3, 4, 4])
})

test.each([
  [
    {
      isEnabledByOperator: true,
      planTier: 'paid',
      isDeletionScheduled: false,
      isUsageExhausted: false,
      isTrialOpen: false,
    },
    'ok',
  ],
  [
    {
      isEnabledByOperator: true,
      planTier: 'paid',
      isDeletionScheduled: false,
      isUsageExhausted: true,
      isTrialOpen: false,
    },
    'usage_exhausted',
  ],
  [
    {
      isEnabledByOperator: true,
      planTier: 'free',
      isDeletionScheduled: false,
      isUsageExhausted: true,
      isTrialOpen: false,
    },
    'plan_required',
  ],
  [
    {
      isEnabledByOperator: true,
      planTier: 'free',
      isDeletionScheduled: true,
      isUsageExhausted: true,
      isTrialOpen: false,
    },
    'deletion_scheduled',
  ],
  [
    {
      isEnabledByOperator: false,
      planTier: 'paid',
      isDeletionScheduled: true,
      isUsageExhausted: true,
      isTrialOpen: false,
    },
    'operator_disabled',
  ],
  [
    {
      isEnabledByOperator: false,
      planTier: 'free',
      isDeletionScheduled: false,
      isUsageExhausted: true,
      isTrialOpen: false,
    },
    'operator_disabled',
  ],
  [
    {
      isEnabledByOperator: false,
      planTier: 'paid',
      isDeletionScheduled: false,
      isUsageExhausted: false,
      isTrialOpen: false,
    },
    'operator_disabled',
  ],
  [
    {
      isEnabledByOperator: true,
      planTier: 'free',
      isDeletionScheduled: false,
      isUsageExhausted: true,
      isTrialOpen: true,
    },
    'trial',
  ],
  [
    {
      isEnabledByOperator: true,
      planTier: 'paid',
      isDeletionScheduled: false,
      isUsageExhausted: false,
      isTrialOpen: true,
    },
    'ok',
  ],
  [
    {
      isEnabledByOperator: true,
      planTier: 'free',
      isDeletionScheduled: true,
      isUsageExhausted: false,
      isTrialOpen: true,
    },
    'deletion_scheduled',
  ],
  [
    {
      isEnabledByOperator: false,
      planTier: 'free',
      isDeletionScheduled: false,
      isUsageExhausted: false,
      isTrialOpen: true,
    },
    'operator_disabled',
  ],
] as const)('access with %j has the reason %s', (request, reason) => {
  expect(accessReason(request)).toBe(reason)
})
