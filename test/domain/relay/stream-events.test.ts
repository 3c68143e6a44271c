/** When a relay says that its stream started, is weak, is lost, has recovered or ended. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  eventGapMillisMin,
  isEndOfStream,
  judgeSample,
  type StreamEventKind,
  streamStateAfter,
  unjudgedStream,
} from '../../../domain/relay/stream-events.ts'

const stepMillis = 250
const weakKbps = 800

interface Piece {
  readonly millis: number
  readonly kbps: number
}

interface Event {
  readonly kind: StreamEventKind
  readonly at: number
}

/** The bitrate over the second before a time, of a stream that is a sequence of pieces. */
function averageBefore(pieces: readonly Piece[], at: number): number {
  let [beginsAt, kilobits] = [0, 0]
  for (const { millis, kbps } of pieces) {
    const overlap = Math.min(at, beginsAt + millis) - Math.max(at - 1_000, beginsAt)
    if (overlap > 0) kilobits += (kbps * overlap) / 1_000
    beginsAt += millis
  }
  return kilobits
}

/** When data came last before a time; negative infinity without any. */
function lastDataBefore(pieces: readonly Piece[], at: number): number {
  let [beginsAt, lastAt] = [0, Number.NEGATIVE_INFINITY]
  for (const { millis, kbps } of pieces) {
    if (kbps > 0 && beginsAt < at) lastAt = Math.min(at, beginsAt + millis)
    beginsAt += millis
  }
  return lastAt
}

/** The events of a stream, judged every 250 ms until its end. */
function judge(...pieces: readonly Piece[]): Event[] {
  const end = pieces.reduce((total, { millis }) => total + millis, 0)
  const events: Event[] = []
  let judged = unjudgedStream
  for (let at = 0; at <= end; at += stepMillis) {
    const sample = { at, lastDataAt: lastDataBefore(pieces, at), bitrateKbps: averageBefore(pieces, at) }
    const next = judgeSample(judged, sample, weakKbps)
    judged = next.judged
    if (next.kind) events.push({ kind: next.kind, at })
  }
  return events
}

const good = (millis: number): Piece => ({ millis, kbps: 4_000 })
const poor = (millis: number): Piece => ({ millis, kbps: 400 })
const silent = (millis: number): Piece => ({ millis, kbps: 0 })

describe('a stream', () => {
  test('starts once data has come in for a second', () => {
    expect(judge(silent(5_000), good(10_000))).toEqual([{ kind: 'stream_started', at: 6_250 }])
  })

  test('that sends single packets does not start', () => {
    const pieces = Array.from({ length: 20 }, () => [poor(100), silent(1_900)]).flat()
    expect(judge(...pieces)).toEqual([])
  })

  test('is weak after three seconds below the limit', () => {
    const [started, weak] = judge(good(20_000), poor(20_000))
    expect(started?.kind).toBe('stream_started')
    expect(weak?.kind).toBe('stream_weak')
    expect(weak?.at).toBeGreaterThanOrEqual(22_500)
    expect(weak?.at).toBeLessThanOrEqual(23_250)
  })

  test('that is below the limit from its beginning starts, and is weak then', () => {
    expect(judge(poor(20_000)).map(({ kind }) => kind)).toEqual(['stream_started', 'stream_weak'])
  })

  test('is not weak after two seconds below the limit', () => {
    expect(judge(good(10_000), poor(2_000), good(10_000)).map(({ kind }) => kind)).toEqual(['stream_started'])
  })

  test('at the limit is good', () => {
    expect(judge({ millis: 60_000, kbps: weakKbps }).map(({ kind }) => kind)).toEqual(['stream_started'])
  })

  test('is lost after two seconds without data', () => {
    expect(judge(good(20_000), silent(20_000)).slice(1)).toEqual([{ kind: 'stream_lost', at: 22_000 }])
  })

  test('is not lost after a shorter gap', () => {
    expect(judge(good(10_000), silent(1_900), good(10_000)).map(({ kind }) => kind)).toEqual(['stream_started'])
  })

  test('that sends a packet now and then is weak', () => {
    const trickle = Array.from({ length: 20 }, () => [silent(1_400), poor(100)]).flat()
    expect(judge(good(10_000), ...trickle).map(({ kind }) => kind)).toEqual(['stream_started', 'stream_weak'])
  })

  test.each([
    ['weak', poor(10_000)],
    ['lost', silent(10_000)],
  ])('that was %s recovers after two seconds of good data', (_, away) => {
    const recovered = judge(good(10_000), away, good(10_000)).at(-1)
    expect(recovered?.kind).toBe('stream_recovered')
    expect(recovered?.at).toBeGreaterThanOrEqual(22_000)
    expect(recovered?.at).toBeLessThanOrEqual(22_750)
  })

  test('that was weak and is silent is lost', () => {
    expect(judge(good(10_000), poor(10_000), silent(10_000)).map(({ kind }) => kind)).toEqual([
      'stream_started',
      'stream_weak',
      'stream_lost',
    ])
  })

  test('that comes back below the limit is weak after three seconds, and has not recovered', () => {
    const events = judge(good(10_000), silent(10_000), poor(20_000))
    expect(events.map(({ kind }) => kind)).toEqual(['stream_started', 'stream_lost', 'stream_weak'])
    expect(events[2]?.at).toBe(23_250)
  })

  test('ends after five minutes without data, and starts again with the next data', () => {
    const events = judge(good(10_000), silent(320_000), good(10_000))
    expect(events.slice(1)).toEqual([
      { kind: 'stream_lost', at: 12_000 },
      { kind: 'stream_ended', at: 312_000 },
      { kind: 'stream_started', at: 331_250 },
    ])
  })

  test('ends with its relay, if it had started and has not ended', () => {
    const judgedAfter = (lastKind: StreamEventKind | undefined) => isEndOfStream({ ...unjudgedStream, lastKind })
    expect(judgedAfter(undefined)).toBe(false)
    expect(judgedAfter('stream_ended')).toBe(false)
    for (const kind of ['stream_started', 'stream_weak', 'stream_recovered', 'stream_lost'] as const)
      expect(judgedAfter(kind)).toBe(true)
  })

  test('is neither lost nor weak because the process of its relay was paused', () => {
    let judged = unjudgedStream
    const kinds: (StreamEventKind | undefined)[] = []
    const sampleAt = (at: number, lastDataAt: number, bitrateKbps: number) => {
      const next = judgeSample(judged, { at, lastDataAt, bitrateKbps }, weakKbps)
      judged = next.judged
      if (next.kind) kinds.push(next.kind)
    }
    for (let at = 0; at <= 10_000; at += stepMillis) sampleAt(at, at, 4_000)
    // The datagrams of 20 s are still to be read.
    sampleAt(30_000, 10_000, 0)
    for (let at = 30_250; at <= 40_000; at += stepMillis) sampleAt(at, at, 4_000)
    expect(kinds).toEqual(['stream_started'])
  })
})

const anyPieces = fc.array(
  fc.record({
    millis: fc.integer({ min: 1, max: 24 }).map((steps) => steps * stepMillis),
    kbps: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 700, max: 900 })),
  }),
  { minLength: 1, maxLength: 40 },
)

const followers: Readonly<Record<StreamEventKind, readonly StreamEventKind[]>> = {
  stream_started: ['stream_weak', 'stream_lost'],
  stream_weak: ['stream_recovered', 'stream_lost'],
  stream_recovered: ['stream_weak', 'stream_lost'],
  stream_lost: ['stream_recovered', 'stream_weak', 'stream_ended'],
  stream_ended: ['stream_started'],
}

describe('of any stream', () => {
  test('the first event is its start, each other one can follow the one before it, and two seconds lie between them', () => {
    fc.assert(
      fc.property(anyPieces, (pieces) => {
        const events = judge(...pieces)
        expect(events[0]?.kind ?? 'stream_started').toBe('stream_started')
        for (const [index, { kind, at }] of events.entries()) {
          const before = events[index - 1]
          if (!before) continue
          expect(followers[before.kind]).toContain(kind)
          expect(at - before.at).toBeGreaterThanOrEqual(eventGapMillisMin)
        }
      }),
    )
  })

  test('an event is true when it is said', () => {
    fc.assert(
      fc.property(anyPieces, (pieces) => {
        for (const { kind, at } of judge(...pieces)) {
          const seconds = (count: number) =>
            Array.from({ length: count }, (_, back) => averageBefore(pieces, at - back * 1_000))
          if (kind === 'stream_weak') expect(Math.max(...seconds(3))).toBeLessThan(weakKbps)
          if (kind === 'stream_recovered') expect(Math.min(...seconds(2))).toBeGreaterThanOrEqual(weakKbps)
          if (kind === 'stream_lost') expect(Math.max(...seconds(2))).toBe(0)
          if (kind === 'stream_started') expect(at - lastDataBefore(pieces, at)).toBeLessThan(1_000)
        }
      }),
    )
  })

  test('what lasts for eight seconds is what the last event says', () => {
    const cases = [
      ['good', 4_000],
      ['weak', 400],
      ['lost', 0],
    ] as const
    fc.assert(
      fc.property(anyPieces, fc.constantFrom(...cases), (pieces, [state, kbps]) => {
        const last = judge(...pieces, { millis: 8_000, kbps }).at(-1)
        expect(streamStateAfter(last?.kind)).toBe(last === undefined ? 'none' : state)
        if (kbps > 0) expect(last).toBeDefined()
      }),
    )
  })
})
