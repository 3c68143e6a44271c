import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  capacityStatusOf,
  defaultRegionOf,
  orderByRoom,
  type RegionLimit,
  type RegionUse,
  regionsToTry,
} from '../../domain/regions.ts'

const region = (name: string, capacity: number, placesTaken = 0, isDrained = false) => ({
  limit: { region: name, capacity },
  use: { region: name, placesTaken, isDrained },
})
const limitsOf = (all: readonly ReturnType<typeof region>[]): RegionLimit[] => all.map(({ limit }) => limit)
const usesOf = (all: readonly ReturnType<typeof region>[]): RegionUse[] => all.map(({ use }) => use)
const namesOf = (regions: readonly RegionLimit[] | 'drained') =>
  regions === 'drained' ? regions : regions.map((one) => one.region)

describe('regions by room', () => {
  test('the region with the most free places comes first, and ties keep the configured order', () => {
    const all = [region('a', 10, 8), region('b', 5, 1), region('c', 4), region('full', 3, 3), region('d', 90, 1, true)]
    expect(namesOf(orderByRoom(limitsOf(all), usesOf(all)))).toEqual(['b', 'c', 'a'])
  })

  test('a region whose places are not counted yet has none', () => {
    const one = region('one', 10)
    expect(orderByRoom([one.limit, { region: 'uncounted', capacity: 5 }], [one.use])).toEqual([one.limit])
  })

  const anyRegions = fc
    .array(fc.record({ capacity: fc.nat(20), placesTaken: fc.nat(25), isDrained: fc.boolean() }), { maxLength: 8 })
    .map((all) =>
      all.map(({ capacity, placesTaken, isDrained }, index) =>
        region(`region-${index}`, capacity, placesTaken, isDrained),
      ),
    )

  test('exactly the regions that are neither full nor drained are tried, each before those with less room', () => {
    fc.assert(
      fc.property(anyRegions, (all) => {
        const ordered = orderByRoom(limitsOf(all), usesOf(all)).map((limit) => {
          const index = all.findIndex((one) => one.limit === limit)
          const { use } = all[index] as (typeof all)[number]
          return { index, free: limit.capacity - use.placesTaken, isDrained: use.isDrained }
        })
        const open = all.filter(({ limit, use }) => !use.isDrained && use.placesTaken < limit.capacity)
        expect(ordered).toHaveLength(open.length)
        expect(ordered.every(({ free, isDrained }) => free > 0 && !isDrained)).toBe(true)
        for (const [position, one] of ordered.slice(1).entries()) {
          const before = ordered[position] as (typeof ordered)[number]
          expect(before.free > one.free || (before.free === one.free && before.index < one.index)).toBe(true)
        }
      }),
    )
  })
})

describe('a start', () => {
  const all = [region('first', 5, 4), region('wide', 50), region('drained', 50, 0, true)]
  const [limits, uses] = [limitsOf(all), usesOf(all)]

  test('with a region tries that region alone, even a full one', () => {
    expect(namesOf(regionsToTry({ named: 'first' }, limits, uses))).toEqual(['first'])
    const full = [region('full', 2, 2)]
    expect(namesOf(regionsToTry({ named: 'full' }, limitsOf(full), usesOf(full)))).toEqual(['full'])
  })

  test('with a drained region is refused', () => {
    expect(regionsToTry({ named: 'drained' }, limits, uses)).toBe('drained')
  })

  test('with a region that does not exist tries none', () => {
    expect(regionsToTry({ named: 'elsewhere' }, limits, uses)).toEqual([])
  })

  test('with `auto` tries the regions by room', () => {
    expect(namesOf(regionsToTry('auto', limits, uses))).toEqual(['wide', 'first'])
  })

  test('without a region tries the default region alone, and the regions by room when that is drained', () => {
    expect(namesOf(regionsToTry('default', limits, uses))).toEqual(['first'])
    const withDefault = limits.map((one) => ({ ...one, default: one.region === 'drained' }))
    expect(defaultRegionOf(withDefault)?.region).toBe('drained')
    expect(namesOf(regionsToTry('default', withDefault, uses))).toEqual(['wide', 'first'])
  })
})

test.each([
  [10, 0, false, 'available'],
  [10, 7, false, 'available'],
  [10, 8, false, 'limited'],
  [10, 10, false, 'full'],
  [10, 12, false, 'full'],
  [10, 0, true, 'full'],
  [0, 0, false, 'full'],
  [1, 0, false, 'available'],
])('of %i places %i are taken, and drained is %s: %s', (capacity, placesTaken, isDrained, status) => {
  const { limit, use } = region('one', capacity, placesTaken, isDrained)
  expect(capacityStatusOf(limit, use)).toBe(status)
})
