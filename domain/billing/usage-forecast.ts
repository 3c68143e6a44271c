/**
 * The relay time that an account will have used at the end of its cycle if it goes on as before. Times are milliseconds
 * since 1970.
 */
import type { UsageCycle } from './usage-cycle.ts'

/** After less than a day, one stream would decide the pace. */
const observedMillisMin = 86_400_000

/**
 * Whole seconds at the end of the cycle, at the average pace from its start until `now`. Null while the cycle is too
 * young for a pace, and outside of it.
 */
export function forecastUsage({ start, end }: UsageCycle, now: number, consumedSeconds: number): number | null {
  const observed = now - start
  if (observed < Math.min(observedMillisMin, end - start) || now > end || end <= start) return null
  return Math.floor((consumedSeconds * (end - start)) / observed)
}

/**
 * When the included time is used up at that pace; null when it lasts until the end of the cycle or no pace is known.
 */
export function forecastExhaustion(
  { start, end }: UsageCycle,
  now: number,
  { consumedSeconds, includedSeconds }: { readonly consumedSeconds: number; readonly includedSeconds: number },
): number | null {
  const forecast = forecastUsage({ start, end }, now, consumedSeconds)
  if (forecast === null || includedSeconds === 0 || consumedSeconds >= includedSeconds || forecast <= includedSeconds)
    return null
  return start + Math.floor((includedSeconds / consumedSeconds) * (now - start))
}
