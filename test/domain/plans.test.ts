import { expect, test } from 'vitest'
import { addonsMax, relayLimit } from '../../domain/plans.ts'

test('the free tier includes no relay, whatever its add-ons', () => {
  expect(relayLimit({ planTier: 'free', addons: 0 })).toBe(0)
  expect(relayLimit({ planTier: 'free', addons: addonsMax })).toBe(0)
})

test('the paid plan includes one relay and each add-on one more, four in all', () => {
  expect([0, 1, 2, 3, 4].map((addons) => relayLimit({ planTier: 'paid', addons }))).toEqual([1, 2, 3, 4, 4])
})
