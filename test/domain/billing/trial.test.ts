/** What remains of a trial, and who gets one. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type TrialFacts, trialMillisLeft, trialOf } from '../../../domain/billing/trial.ts'

const fresh: TrialFacts = { isAddressProved: true, isAddressSpent: false, consumedMillis: null }
const anyFacts = fc.record({
  isAddressProved: fc.boolean(),
  isAddressSpent: fc.boolean(),
  consumedMillis: fc.option(fc.double({ min: 0, max: 1e10, noNaN: true })),
})

test('without a length there is no trial, whatever the account has done', () => {
  fc.assert(fc.property(anyFacts, (facts) => void expect(trialOf(facts, 0)).toBeNull()))
})

test('a trial that has not begun is open for a proved address alone, and for none that had one before', () => {
  expect(trialOf(fresh, 3600)).toEqual({ state: 'open', remainingSeconds: 3600, totalSeconds: 3600 })
  expect(trialOf({ ...fresh, isAddressProved: false }, 3600)?.state).toBe('address_unverified')
  expect(trialOf({ ...fresh, isAddressSpent: true }, 3600)).toBeNull()
})

test('a trial that has begun goes on until its last second is used, whatever happens to the address', () => {
  const begun = { isAddressProved: false, isAddressSpent: true }
  expect(trialOf({ ...begun, consumedMillis: 3_599_999 }, 3600)).toMatchObject({ state: 'open', remainingSeconds: 1 })
  expect(trialOf({ ...begun, consumedMillis: 3_600_000 }, 3600)).toMatchObject({ state: 'ended', remainingSeconds: 0 })
})

test('what remains is never negative nor more than the length, never grows with use, and is open exactly while some is left', () => {
  fc.assert(
    fc.property(
      anyFacts,
      fc.integer({ min: 1, max: 2_592_000 }),
      fc.nat(10_000_000),
      (facts, totalSeconds, moreMillis) => {
        const trial = trialOf(facts, totalSeconds)
        if (trial === null) return void expect(facts).toMatchObject({ isAddressSpent: true, consumedMillis: null })
        const { state, remainingSeconds } = trial
        expect(remainingSeconds).toBeGreaterThanOrEqual(0)
        expect(remainingSeconds).toBeLessThanOrEqual(totalSeconds)
        expect(state === 'ended').toBe(remainingSeconds === 0)
        const { consumedMillis } = facts
        if (consumedMillis === null) return
        expect(state === 'ended').toBe(trialMillisLeft(consumedMillis, totalSeconds) === 0)
        const later = trialOf({ ...facts, consumedMillis: consumedMillis + moreMillis }, totalSeconds)
        expect(later?.remainingSeconds).toBeLessThanOrEqual(remainingSeconds)
      },
    ),
  )
})
