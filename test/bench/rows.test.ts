/** The verdict on a measured row: ratio, target, failure. */
import { describe, expect, test } from 'vitest'
import { compare, type Figure, failed, single, withRatio } from '../../bench/rows.ts'

const figure = (target?: Pick<Figure, 'target' | 'bound'>): Figure => ({
  name: 'one',
  what: 'one',
  unit: 'ms',
  ...target,
})
const pairsOf = (...ratios: number[]) =>
  ratios.map((ratio) => ({ floor: { 'p50 ms': 10 }, ours: { 'p50 ms': 10 * ratio } }))

describe('the median of the ratios decides whether a target is met', () => {
  test.each([
    ['at_most', 1.3, [1.1, 1.2, 9], true],
    ['at_most', 1.3, [1.1, 1.4, 1.5], false],
    ['at_least', 0.7, [0.1, 0.7, 0.8], true],
    ['at_least', 0.7, [0.6, 0.69, 2], false],
    ['within', 0.15, [0.86, 0.86, 0.86], true],
    ['within', 0.15, [1.16, 1.16, 1.16], false],
  ] as const)('%s %d: %j', (bound, target, ratios, met) => {
    const row = compare(figure({ bound, target }), pairsOf(...ratios), 'p50 ms')
    expect(row).toMatchObject({ met, ratio: ratios[1], low: Math.min(...ratios), high: Math.max(...ratios), floor: 10 })
  })
})

test('without a ratio the value decides', () => {
  expect(single(figure({ bound: 'at_most', target: 60 }), 60)).toMatchObject({ ours: 60, ratio: null, met: true })
  expect(single(figure({ bound: 'at_most', target: 60 }), 61)).toMatchObject({ met: false })
})

test('a figure without a target is met', () => {
  expect(withRatio(figure(), { floor: 1, ours: 5, ratio: 5 })).toMatchObject({ target: null, bound: null, met: true })
})

test('a measurement that failed is not met and has its reason', () => {
  const row = failed(figure(), new Error('no server'))
  expect(row).toMatchObject({ ours: null, ratio: null, met: false, error: 'no server' })
})

test('a reading that lacks the figure does not meet a target', () => {
  expect(compare(figure({ bound: 'at_most', target: 2 }), pairsOf(1), 'per second').met).toBe(false)
})
