/** Numbers that start again at 0. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { advance, distanceBetween, sequenceMask, toRanges } from '../../relay-node/sequence-numbers.ts'

const number = fc.integer({ min: 0, max: sequenceMask })

test('the distance to a number that is a count ahead is that count, also where numbers wrap', () => {
  fc.assert(
    fc.property(number, fc.integer({ min: 0, max: 1_000_000 }), (from, count) => {
      expect(distanceBetween(from, advance(from, count))).toBe(count)
      expect(distanceBetween(advance(from, count), from)).toBe(count === 0 ? 0 : -count)
    }),
  )
})

test('ranges have each number once, and no two of them touch', () => {
  fc.assert(
    fc.property(number, fc.uniqueArray(fc.nat(200), { maxLength: 50 }), (from, offsets) => {
      const numbers = offsets.sort((a, b) => a - b).map((offset) => advance(from, offset))
      const ranges = toRanges(numbers)
      const listed = ranges.flatMap(({ first, last }) =>
        Array.from({ length: distanceBetween(first, last) + 1 }, (_, offset) => advance(first, offset)),
      )
      expect(listed).toEqual(numbers)
      for (const [index, { first }] of ranges.entries()) {
        const before = ranges[index - 1]
        if (before) expect(distanceBetween(before.last, first)).toBeGreaterThan(1)
      }
    }),
  )
})
