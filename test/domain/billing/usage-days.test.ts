/** The division of relay time into days and connections. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sumByConnection, toUsageDays, type UsagePart } from '../../../domain/billing/usage-days.ts'

const part = (day: string, connectionId: string | null, seconds: number): UsagePart => ({
  day,
  connectionId,
  micros: Math.round(seconds * 1_000_000),
})

const anyParts = fc.array(
  fc.record({
    day: fc.constantFrom('2026-11-21', '2026-11-22', '2026-11-23'),
    connectionId: fc.constantFrom('one', 'two', null),
    micros: fc.nat(100_000_000_000),
  }),
)
const wholeSeconds = (parts: readonly UsagePart[]) =>
  Math.floor(parts.reduce((sum, { micros }) => sum + micros, 0) / 1_000_000)

describe('the relay time by day', () => {
  test('lists the days in their order, with their connections', () => {
    const parts = [part('2026-11-21', 'one', 10), part('2026-11-22', 'one', 20), part('2026-11-22', null, 5)]
    expect(toUsageDays(parts)).toEqual([
      { day: '2026-11-21', seconds: 10, connections: [{ connectionId: 'one', seconds: 10 }] },
      {
        day: '2026-11-22',
        seconds: 25,
        connections: [
          { connectionId: 'one', seconds: 20 },
          { connectionId: null, seconds: 5 },
        ],
      },
    ])
  })

  test('gives a second to the part that completes it', () => {
    const halves = [part('2026-11-21', 'one', 0.5), part('2026-11-21', 'two', 0.5), part('2026-11-22', 'one', 0.9)]
    expect(toUsageDays(halves)).toEqual([
      {
        day: '2026-11-21',
        seconds: 1,
        connections: [
          { connectionId: 'one', seconds: 0 },
          { connectionId: 'two', seconds: 1 },
        ],
      },
      { day: '2026-11-22', seconds: 0, connections: [{ connectionId: 'one', seconds: 0 }] },
    ])
  })

  test('adds up to the whole seconds of the cycle, by day and by connection', () => {
    fc.assert(
      fc.property(anyParts, (parts) => {
        const days = toUsageDays(parts)
        expect(days.reduce((sum, { seconds }) => sum + seconds, 0)).toBe(wholeSeconds(parts))
        expect(sumByConnection(days).reduce((sum, { seconds }) => sum + seconds, 0)).toBe(wholeSeconds(parts))
      }),
    )
  })

  test('differs from the exact time of a part by less than a second', () => {
    fc.assert(
      fc.property(anyParts, (parts) => {
        const rounded = toUsageDays(parts.map((piece, index) => ({ ...piece, connectionId: String(index) })))
        for (const { connectionId, seconds } of rounded.flatMap(({ connections }) => connections))
          expect(Math.abs(seconds - (parts[Number(connectionId)]?.micros ?? 0) / 1_000_000)).toBeLessThan(1)
      }),
    )
  })
})

describe('the relay time by connection', () => {
  test('is summed over all days, the largest first and the unnamed connections last', () => {
    const parts = [
      part('2026-11-21', null, 90),
      part('2026-11-21', 'one', 10),
      part('2026-11-21', 'two', 15),
      part('2026-11-22', 'one', 20),
      part('2026-11-22', 'three', 1),
    ]
    expect(sumByConnection(toUsageDays(parts))).toEqual([
      { connectionId: 'one', seconds: 30 },
      { connectionId: 'two', seconds: 15 },
      { connectionId: 'three', seconds: 1 },
      { connectionId: null, seconds: 90 },
    ])
    expect(sumByConnection(toUsageDays(parts.toReversed()))).toEqual(sumByConnection(toUsageDays(parts)))
  })

  test('is empty without relay time', () => {
    expect(sumByConnection(toUsageDays([]))).toEqual([])
  })
})
