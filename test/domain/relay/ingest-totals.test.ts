/** The averages and times that are shown of a session's stream. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type StoredTotals, shownTotals } from '../../../domain/relay/ingest-totals.ts'

const totals: StoredTotals = {
  bytesReceived: 1_000_000,
  secondsPublishing: 8,
  peakBitrateKbps: 1200,
  activeSeconds: 60,
}

test('the average is that over the time with a stream', () => {
  expect(shownTotals(totals)).toEqual({ secondsPublishing: 8, averageBitrateKbps: 1000 })
  expect(shownTotals({ ...totals, secondsPublishing: 8.9 })).toEqual({ secondsPublishing: 8, averageBitrateKbps: 899 })
})

test('there is no average without bytes, and none without time', () => {
  expect(shownTotals({ ...totals, secondsPublishing: 0 }).averageBitrateKbps).toBeNull()
  expect(shownTotals({ ...totals, bytesReceived: 0 }).averageBitrateKbps).toBeNull()
})

test('a time and an average of former relays stay within what is possible', () => {
  expect(shownTotals({ ...totals, secondsPublishing: 2 }).averageBitrateKbps).toBe(1200)
  // The average is that of the stream also when it began before the session was active.
  expect(shownTotals({ ...totals, activeSeconds: 5.5 })).toEqual({ secondsPublishing: 5, averageBitrateKbps: 1000 })
  expect(shownTotals({ ...totals, activeSeconds: -1 }).secondsPublishing).toBe(0)
  fc.assert(
    fc.property(
      fc.nat(),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      fc.nat(1e6),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      (...numbers) => {
        const [bytesReceived, secondsPublishing, peakBitrateKbps, activeSeconds] = numbers
        const shown = shownTotals({ bytesReceived, secondsPublishing, peakBitrateKbps, activeSeconds })
        expect(shown.averageBitrateKbps ?? 0).toBeLessThanOrEqual(peakBitrateKbps)
        expect(shown.secondsPublishing).toBeLessThanOrEqual(activeSeconds)
      },
    ),
  )
})
