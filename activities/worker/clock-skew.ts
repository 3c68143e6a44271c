/**
 * How far this worker's clock is ahead of Postgres's and Temporal's. Postgres's clock decides on deadlines and Temporal's
 * timers only wake: a skew makes them wake early or late, and the times shown to people wrong by as much.
 */
import { type Database, first } from '../../db/connection.ts'
import type { Logger } from '../../platform/log.ts'

export type SkewedClock = 'postgres' | 'temporal'

/** Seconds by which the worker is ahead; null until there was a sample. */
export type Skews = Readonly<Record<SkewedClock, number | null>>

/** A skew beyond this is worth an operator's attention, in seconds. */
const warnAboveSeconds = 2
const windowMillis = 60_000

export interface ClockSkew {
  /** One sample: the other clock's time when it sent a message, and ours when the message arrived, in milliseconds. */
  observe(clock: SkewedClock, theirs: number, ours: number): void
  /** Asks Postgres for its time. */
  measurePostgres(sql: Database): Promise<void>
  current(): Skews
}

interface Window {
  readonly openedAt: number
  /** A sample holds the time that its message took as well, so the least one of a window is the best. */
  least: number
}

/** @param clock milliseconds that only grow. */
export function createClockSkew(log: Logger, clock: () => number = () => performance.now()): ClockSkew {
  const windows = new Map<SkewedClock, Window>()
  const skews: Record<SkewedClock, number | null> = { postgres: null, temporal: null }

  const close = (name: SkewedClock, { least }: Window) => {
    const wasFar = Math.abs(skews[name] ?? 0) > warnAboveSeconds
    skews[name] = least / 1000
    if (Math.abs(least / 1000) > warnAboveSeconds && !wasFar)
      log.warn({ clock: name, skew_seconds: least / 1000 }, "this worker's clock differs: synchronise the clocks (NTP)")
  }

  const observe: ClockSkew['observe'] = (name, theirs, ours) => {
    const [millis, now] = [ours - theirs, clock()]
    const window = windows.get(name)
    if (window && now - window.openedAt < windowMillis) {
      window.least = Math.min(window.least, millis)
      return
    }
    if (window) close(name, window)
    windows.set(name, { openedAt: now, least: millis })
  }

  const latest = (name: SkewedClock): number | null => {
    const window = windows.get(name)
    return skews[name] ?? (window ? window.least / 1000 : null)
  }

  return {
    observe,
    measurePostgres: async (sql) => {
      const askedAt = Date.now()
      const row = first(
        await sql<{ millis: number }[]>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as millis`,
      )
      // The middle of the round trip is when Postgres looked at its clock.
      if (row) observe('postgres', row.millis, (askedAt + Date.now()) / 2)
    },
    current: () => ({ postgres: latest('postgres'), temporal: latest('temporal') }),
  }
}
