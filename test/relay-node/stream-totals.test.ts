/** The totals of a stream: bytes, time, and a peak that is never below the average. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StreamTotals } from '../../relay-node/stream-totals.ts'
import { propertyRuns } from '../support/property-runs.ts'

/** Packets with the pauses before them, from single packets and bursts to streams with gaps. */
const packets = fc.array(
  fc.record({
    pause: fc.oneof(fc.nat(40), fc.constant(0), fc.nat(1_500), fc.integer({ min: 2_900, max: 9_000 })),
    bytes: fc.oneof(fc.constant(1_316), fc.nat(1_456)),
  }),
  { maxLength: 300 },
)

function receiveAll(received: readonly { readonly pause: number; readonly bytes: number }[]) {
  const totals = new StreamTotals()
  let now = 1_000
  return received.map(({ pause, bytes }) => {
    now += pause
    totals.receive(bytes, now)
    return { bytes: totals.bytes, millis: totals.millis, peakKbps: totals.peakKbps }
  })
}

test('the average is never above the peak, and no total goes back', () => {
  fc.assert(
    fc.property(packets, (received) => {
      let before = { bytes: 0, millis: 0, peakKbps: 0 }
      for (const totals of receiveAll(received)) {
        const average = totals.bytes === 0 ? 0 : (totals.bytes * 8) / totals.millis
        expect(average).toBeLessThanOrEqual(totals.peakKbps * (1 + 1e-9))
        expect(totals.millis).toBeGreaterThanOrEqual(before.millis)
        // The rate of a piece that is not complete falls while its second passes.
        expect(totals.bytes).toBeGreaterThanOrEqual(before.bytes)
        before = totals
      }
    }),
    { numRuns: propertyRuns(100, 3_000) },
  )
})

test('the average of several processes together is not above the highest of their peaks', () => {
  fc.assert(
    fc.property(fc.array(packets, { minLength: 1, maxLength: 4 }), (processes) => {
      const ends = processes.map((received) => receiveAll(received).at(-1) ?? { bytes: 0, millis: 0, peakKbps: 0 })
      const sum = (of: (end: { bytes: number; millis: number }) => number) =>
        ends.reduce((all, end) => all + of(end), 0)
      const [bytes, millis] = [sum((end) => end.bytes), sum((end) => end.millis)]
      const peak = Math.max(...ends.map(({ peakKbps }) => peakKbps))
      expect(bytes === 0 ? 0 : (bytes * 8) / millis).toBeLessThanOrEqual(peak * (1 + 1e-9))
    }),
    { numRuns: propertyRuns(50, 1_000) },
  )
})

test('the time is exact to a second for each run, and no peak is a rate over less than a second', () => {
  fc.assert(
    fc.property(packets, (received) => {
      let [exact, runs, window, highest] = [0, 0, 0, 0]
      for (const [index, { pause }] of received.entries()) {
        if (index === 0 || pause > 3_000) runs += 1
        else exact += pause
      }
      const end = receiveAll(received).at(-1)
      expect(end?.millis ?? 0).toBeGreaterThanOrEqual(exact)
      expect(end?.millis ?? 0).toBeLessThanOrEqual(exact + runs * 1_000)
      // All bytes in the second before each packet and the packet itself, and at most those of the piece's first
      // packet.
      for (const [index, { bytes }] of received.entries()) {
        window = bytes
        for (let other = index - 1, age = received[index]?.pause ?? 0; other >= 0 && age <= 2_000; other -= 1) {
          window += received[other]?.bytes ?? 0
          age += received[other]?.pause ?? 0
        }
        highest = Math.max(highest, window)
      }
      expect(end?.peakKbps ?? 0).toBeLessThanOrEqual((highest * 8) / 1_000 + 1e-6)
    }),
    { numRuns: propertyRuns(50, 1_000) },
  )
})

/** A packet each 10 ms. */
const stream = (seconds: number, kbps: number) =>
  Array.from({ length: seconds * 100 }, () => ({ pause: 10, bytes: (kbps * 10) / 8 }))

test('a stream of ten seconds has ten seconds at its bitrate', () => {
  const end = receiveAll(stream(10, 2_500)).at(-1)
  expect(end?.millis).toBe(9_990)
  // With the packet at either end of the first piece.
  expect(end?.peakKbps).toBeGreaterThanOrEqual(2_500)
  expect(end?.peakKbps).toBeLessThan(2_530)
})

test('a gap of up to three seconds is time with data, and a longer one is not', () => {
  const withGap = (pause: number) => receiveAll([...stream(10, 2_500), { pause, bytes: 1 }, ...stream(5, 2_500)]).at(-1)
  expect(withGap(3_000)?.millis).toBe(9_990 + 3_000 + 5_000)
  expect(withGap(3_001)?.millis).toBe(9_990 + 5_000)
})

test('a second with more data is the peak', () => {
  const peak = receiveAll([...stream(10, 2_500), ...stream(2, 8_000), ...stream(10, 2_500)]).at(-1)?.peakKbps
  expect(peak).toBeGreaterThan(7_900)
  expect(peak).toBeLessThan(8_100)
})

test('an empty packet is one: the time with data goes on', () => {
  const empty = { pause: 1_000, bytes: 0 }
  expect(receiveAll([{ pause: 0, bytes: 1_316 }, empty, empty]).map(({ millis }) => millis)).toEqual([
    1_000, 1_000, 2_000,
  ])
})

test('a packet alone counts as a second', () => {
  expect(receiveAll([{ pause: 0, bytes: 1_250 }])).toEqual([{ bytes: 1_250, millis: 1_000, peakKbps: 10 }])
  expect(receiveAll([])).toEqual([])
})
