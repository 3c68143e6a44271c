/** The forecast of relay time to the end of the cycle. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { forecastExhaustion, forecastUsage } from '../../../domain/billing/usage-forecast.ts'

const day = 86_400_000
const start = Date.UTC(2027, 0, 1)

const anyCase = fc
  .record({
    days: fc.integer({ min: 1, max: 400 }),
    // Not a double: most of these are close to 0, where there is no forecast.
    perMille: fc.integer({ min: 0, max: 1000 }),
    consumedSeconds: fc.nat(5_000_000),
    includedSeconds: fc.nat(5_000_000),
  })
  .map(({ days, perMille, ...amounts }) => ({
    ...amounts,
    cycle: { start, end: start + days * day },
    now: start + Math.round((perMille * days * day) / 1000),
  }))

test('half of a cycle with 90 hours forecasts 180 hours', () => {
  expect(forecastUsage({ start, end: start + 30 * day }, start + 15 * day, 90 * 3600)).toBe(180 * 3600)
})

test('there is no forecast on the first day of a cycle, or outside of it', () => {
  const cycle = { start, end: start + 30 * day }
  expect(forecastUsage(cycle, start + day - 1, 3600)).toBeNull()
  expect(forecastUsage(cycle, start + day, 3600)).toBe(30 * 3600)
  expect(forecastUsage(cycle, start + 31 * day, 3600)).toBeNull()
  expect(forecastUsage(cycle, start - 1, 3600)).toBeNull()
})

test('a cycle without a duration has no forecast', () => {
  expect(forecastUsage({ start, end: start }, start, 0)).toBeNull()
})

test('on the 15th of 30 days with 120 of 160 hours used, these run out on the 20th', () => {
  const cycle = { start, end: start + 30 * day }
  const exhaustion = (consumedHours: number, includedHours: number) =>
    forecastExhaustion(cycle, start + 15 * day, {
      consumedSeconds: consumedHours * 3600,
      includedSeconds: includedHours * 3600,
    })
  expect(exhaustion(120, 160)).toBe(start + 20 * day)
  expect(exhaustion(120, 239)).not.toBeNull()
  expect(exhaustion(120, 240)).toBeNull()
  expect(exhaustion(160, 160)).toBeNull()
  expect(exhaustion(120, 0)).toBeNull()
  expect(exhaustion(0, 160)).toBeNull()
})

test('a forecast is never below what is used, and is what is used at the end of the cycle', () => {
  fc.assert(
    fc.property(anyCase, ({ cycle, now, consumedSeconds }) => {
      const forecast = forecastUsage(cycle, now, consumedSeconds)
      if (forecast !== null) expect(forecast).toBeGreaterThanOrEqual(consumedSeconds)
      expect(forecastUsage(cycle, cycle.end, consumedSeconds)).toBe(consumedSeconds)
    }),
  )
})

test('more use never forecasts less', () => {
  fc.assert(
    fc.property(anyCase, fc.nat(100_000), ({ cycle, now, consumedSeconds }, more) => {
      const [less, greater] = [consumedSeconds, consumedSeconds + more].map((used) => forecastUsage(cycle, now, used))
      expect((greater ?? 0) >= (less ?? 0)).toBe(true)
    }),
  )
})

test('included time runs out within the cycle exactly when the forecast exceeds it', () => {
  fc.assert(
    fc.property(anyCase, ({ cycle, now, ...amounts }) => {
      const at = forecastExhaustion(cycle, now, amounts)
      const { consumedSeconds: used, includedSeconds: included } = amounts
      const forecast = forecastUsage(cycle, now, used)
      expect(at !== null).toBe(forecast !== null && included > 0 && used < included && forecast > included)
      if (at !== null) expect(at >= now && at <= cycle.end).toBe(true)
    }),
  )
})
