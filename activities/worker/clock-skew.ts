/**
 * How far this worker's clock is ahead of Postgres's and Temporal's. Postgres's clock decides about deadlines and
 * Temporal's timers only wake workflows: a skew makes them wake early or late, and shifts the times that are shown to
 * users.
 */
import { type Database, first } from '../../db/connection.ts'
import type { Logger } from '../../platform/log.ts'

export type SkewedClock = 'postgres' | 'temporal'

/** Seconds by which the worker's clock is ahead; null before the first sample. */
export type Skews = Readonly<Record<SkewedClock, number | null>>

/** A greater skew is logged. */
const warnAboveSeconds = 2
const windowMillis = 60_000

export interface ClockSkew {
  /**
   * Adds a sample.
   * @param sentAt the other clock's time when it sent a message, in milliseconds since 1970.
   * @param receivedAt this clock's time when the message arrived.
   */
  observe(clock: SkewedClock, sentAt: number, receivedAt: number): void
  /** Adds a sample of Postgres's clock. */
  measurePostgres(sql: Database): Promise<void>
  current(): Skews
}

interface Window {
  readonly openedAt: number
  /** A sample contains the transit time of its message too, so the smallest of a window is the most exact. */
  leastMillis: number
}

/** @param clock a monotonic clock, in milliseconds. */
export function createClockSkew(log: Logger, clock: () => number = () => performance.now()): ClockSkew {
  const windows = new Map<SkewedClock, Window>()
  const skews: Record<SkewedClock, number | null> = { postgres: null, temporal: null }

  const closeWindow = (name: SkewedClock, { leastMillis }: Window) => {
    const wasGreat = Math.abs(skews[name] ?? 0) > warnAboveSeconds
    const skewSeconds = leastMillis / 1000
    skews[name] = skewSeconds
    if (Math.abs(skewSeconds) > warnAboveSeconds && !wasGreat)
      log.warn({ clock: name, skew_seconds: skewSeconds }, "this worker's clock differs: synchronise the clocks (NTP)")
  }

  const observe: ClockSkew['observe'] = (name, sentAt, receivedAt) => {
    const [millis, now] = [receivedAt - sentAt, clock()]
    const window = windows.get(name)
    if (window && now - window.openedAt < windowMillis) {
      window.leastMillis = Math.min(window.leastMillis, millis)
      return
    }
    if (window) closeWindow(name, window)
    windows.set(name, { openedAt: now, leastMillis: millis })
  }

  const latest = (name: SkewedClock): number | null => {
    const window = windows.get(name)
    return skews[name] ?? (window ? window.leastMillis / 1000 : null)
  }

  return {
    observe,
    measurePostgres: async (sql) => {
      const sentAt = Date.now()
      const row = await first(
        sql<{ millis: number }[]>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as millis`,
      )
      // Postgres read its clock about halfway through the round trip.
      if (row) observe('postgres', row.millis, (sentAt + Date.now()) / 2)
    },
    current: () => ({ postgres: latest('postgres'), temporal: latest('temporal') }),
  }
}
