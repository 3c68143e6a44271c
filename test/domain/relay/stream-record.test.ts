/** The points of stream records: what a slot keeps of its reports, and how points are packed. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type IngestStats, readIngest } from '../../../domain/relay/ingest.ts'
import {
  joinPoints,
  mergePoints,
  packPoint,
  type StreamPoint,
  toPoint,
  unpackPoints,
} from '../../../domain/relay/stream-record.ts'

const pointOf = (stats: IngestStats): StreamPoint => {
  const { summary } = readIngest({ publishing: true, ...stats })
  if (summary === null) throw new Error('the report states no stream')
  return toPoint(summary)
}

const points: fc.Arbitrary<StreamPoint> = fc.record({
  bitrateKbps: fc.nat(1_000_000),
  links: fc.nat(63),
  lossTenths: fc.option(fc.nat(1000)),
  rttMs: fc.option(fc.nat(16_382)),
  players: fc.nat(63),
})

/** As Postgres packs them: 7 bytes each, zero for a slot without a point. */
const packAll = (slots: readonly (StreamPoint | null)[]): Uint8Array =>
  Buffer.from(
    slots
      .map((point) =>
        BigInt(point === null ? 0 : packPoint(point))
          .toString(16)
          .padStart(14, '0'),
      )
      .join(''),
    'hex',
  )

describe('the point of a report', () => {
  test('has the loss in tenths of a percent and the round trip in milliseconds', () => {
    const stats = { bitrate_kbps: 5200.4, links: 3, loss_pct: 2.36, rtt_ms: 41.5, players: 1 }
    expect(pointOf(stats)).toEqual({ bitrateKbps: 5200, links: 3, lossTenths: 24, rttMs: 42, players: 1 })
  })

  test('has no links, loss and round trip while no stream comes in', () => {
    const stats = { publishing: false, bitrate_kbps: 7, links: 2, loss_pct: 3, rtt_ms: 40, players: 2 }
    expect(pointOf(stats)).toEqual({ bitrateKbps: 0, links: 0, lossTenths: null, rttMs: null, players: 2 })
  })

  test('has the largest numbers that fit for larger ones', () => {
    const stats = { bitrate_kbps: 1e9, links: 1e9, loss_pct: 1e9, rtt_ms: 1e9, players: 1e9 }
    expect(pointOf(stats)).toEqual({ bitrateKbps: 1_000_000, links: 63, lossTenths: 1000, rttMs: 16_382, players: 63 })
  })
})

describe('the point of a slot', () => {
  test('has the highest bitrate, the fewest links, the greatest loss and round trip, and the last players', () => {
    const earlier = pointOf({ bitrate_kbps: 900, links: 3, loss_pct: 0.5, rtt_ms: 80, players: 2 })
    const later = pointOf({ bitrate_kbps: 700, links: 2, loss_pct: 9, rtt_ms: 40, players: 1 })
    expect(mergePoints(earlier, later)).toEqual({ bitrateKbps: 900, links: 2, lossTenths: 90, rttMs: 80, players: 1 })
  })

  test('has the links of the time in which a stream came in', () => {
    const [away, back] = [pointOf({ publishing: false }), pointOf({ bitrate_kbps: 800, links: 2, rtt_ms: 40 })]
    for (const merged of [mergePoints(away, back), mergePoints(back, away)])
      expect(merged).toMatchObject({ bitrateKbps: 800, links: 2, lossTenths: null, rttMs: 40 })
    expect(mergePoints(away, away).links).toBe(0)
  })

  test('is the same however its reports are grouped', () => {
    fc.assert(
      fc.property(points, points, points, (a, b, c) => {
        expect(mergePoints(mergePoints(a, b), c)).toEqual(mergePoints(a, mergePoints(b, c)))
      }),
    )
  })
})

describe('packed points', () => {
  test('are read as they were, with the times of their slots', () => {
    fc.assert(
      fc.property(fc.array(fc.option(points), { maxLength: 60 }), (slots) => {
        const expected = slots.flatMap((point, slot) => (point === null ? [] : [{ at: 600 + slot * 10, ...point }]))
        expect(unpackPoints(600, packAll(slots))).toEqual(expected)
      }),
    )
  })

  test('of two parts that share a slot are one point', () => {
    const [earlier, later] = [pointOf({ bitrate_kbps: 900, links: 1 }), pointOf({ bitrate_kbps: 700, links: 2 })]
    const parts = [unpackPoints(0, packAll([null, earlier])), unpackPoints(10, packAll([later, later]))]
    expect(joinPoints(parts)).toEqual([
      { at: 10, ...mergePoints(earlier, later) },
      { at: 20, ...later },
    ])
  })
})
