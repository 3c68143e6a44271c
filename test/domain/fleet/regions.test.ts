/** The order of regions by room, and their capacity status. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  candidateRegions,
  capacityStatusOf,
  countFreePlaces,
  defaultRegionOf,
  forTrials,
  orderByRoom,
  type RegionLimit,
  type RegionUse,
} from '../../../domain/fleet/regions.ts'

const region = (name: string, capacity: number, placesTaken = 0, isDrained = false) => ({
  limit: { region: name, capacity },
  use: { region: name, placesTaken, isDrained },
})
const limitsOf = (all: readonly ReturnType<typeof region>[]): RegionLimit[] => all.map(({ limit }) => limit)
const usesOf = (all: readonly ReturnType<typeof region>[]): RegionUse[] => all.map(({ use }) => use)
const namesOf = (regions: readonly RegionLimit[]) => regions.map((limit) => limit.region)

describe('regions by room', () => {
  test('the region with the most free places comes first, and ties keep the configured order', () => {
    const all = [region('a', 10, 8), region('b', 5, 1), region('c', 4), region('full', 3, 3), region('d', 90, 1, true)]
    expect(namesOf(orderByRoom(limitsOf(all), usesOf(all)))).toEqual(['b', 'c', 'a'])
  })

  test('a region whose places are not counted yet has none', () => {
    const counted = region('one', 10)
    expect(orderByRoom([counted.limit, { region: 'uncounted', capacity: 5 }], [counted.use])).toEqual([counted.limit])
  })

  test('a region has a place for a trial exactly while it is available to everyone', () => {
    const anyRegion = fc.record({ capacity: fc.nat(500), placesTaken: fc.nat(600), isDrained: fc.boolean() })
    fc.assert(
      fc.property(anyRegion, ({ capacity, placesTaken, isDrained }) => {
        const { limit, use } = region('any', capacity, placesTaken, isDrained)
        expect(countFreePlaces(forTrials(limit), use) > 0).toBe(capacityStatusOf(limit, use) === 'available')
      }),
    )
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
          const index = all.findIndex((candidate) => candidate.limit === limit)
          const { use } = all[index] as (typeof all)[number]
          return { index, free: limit.capacity - use.placesTaken, isDrained: use.isDrained }
        })
        const open = all.filter(({ limit, use }) => !use.isDrained && use.placesTaken < limit.capacity)
        expect(ordered).toHaveLength(open.length)
        expect(ordered.every(({ free, isDrained }) => free > 0 && !isDrained)).toBe(true)
        for (const [position, after] of ordered.slice(1).entries()) {
          const before = ordered[position] as (typeof ordered)[number]
          expect(before.free > after.free || (before.free === after.free && before.index < after.index)).toBe(true)
        }
      }),
    )
  })
})

describe('a start', () => {
  const limits = limitsOf([region('first', 5), region('second', 50), region('third', 50)])

  test('with a region may use that region alone', () => {
    expect(namesOf(candidateRegions({ named: 'second' }, limits))).toEqual(['second'])
  })

  test('with a region that does not exist may use none', () => {
    expect(candidateRegions({ named: 'elsewhere' }, limits)).toEqual([])
  })

  test('with `auto` may use all regions', () => {
    expect(candidateRegions('auto', limits)).toEqual(limits)
  })

  test('without a region may use the default region alone', () => {
    expect(namesOf(candidateRegions('default', limits))).toEqual(['first'])
    const withDefault = limits.map((limit) => ({ ...limit, default: limit.region === 'third' }))
    expect(defaultRegionOf(withDefault)?.region).toBe('third')
    expect(namesOf(candidateRegions('default', withDefault))).toEqual(['third'])
    expect(candidateRegions('default', [])).toEqual([])
  })
})

test.each([
  [10, 3, false, 7],
  [10, 10, false, 0],
  [10, 12, false, 0],
  [10, 3, true, 0],
])('of %i places %i are taken, and drained is %s: %i are free', (capacity, placesTaken, isDrained, free) => {
  const { limit, use } = region('one', capacity, placesTaken, isDrained)
  expect(countFreePlaces(limit, use)).toBe(free)
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
