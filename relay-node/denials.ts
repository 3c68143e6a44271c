/**
 * When denials of the control plane end a relay. An API on a wrong or a restored database denies sessions that run, so
 * denials count only when they are repeated, and a relay with a stream goes on while its session is merely unknown
 * (404).
 */
import type { Outcome } from './health-report.ts'

/** Denials in a row, with the times of the first and of the last one in milliseconds. */
interface Repetition {
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

/** The denials since the last accepted report. */
export interface Denials {
  readonly all: Repetition
  /** Those since the session was last unknown: the control plane has it with another instance. */
  readonly mismatches: Repetition
}

const none: Repetition = { count: 0, firstAt: 0, lastAt: 0 }
export const noDenials: Denials = { all: none, mismatches: none }

const denialsMin = 5
/** A stream may be away for as long before a session counts as idle: an encoder passes a tunnel or restarts. */
export const streamPauseMillisMax = 10 * 60_000
/** No stream goes on for longer in a session that no control plane can end. */
export const unknownMillisMax = 24 * 3_600_000

const repeat = ({ count, firstAt }: Repetition, now: number): Repetition => ({
  count: count + 1,
  firstAt: count === 0 ? now : firstAt,
  lastAt: now,
})

/** A failed report neither counts as a denial nor resets the count. */
export function countDenial(denials: Denials, outcome: Outcome, now: number): Denials {
  if (outcome.type === 'accepted') return noDenials
  if (outcome.type !== 'denied') return denials
  return {
    all: repeat(denials.all, now),
    mismatches: outcome.isUnknown ? none : repeat(denials.mismatches, now),
  }
}

/** Whether the denials came often and long enough. */
const isRepeated = ({ count, firstAt, lastAt }: Repetition, millisMin: number): boolean =>
  count >= denialsMin && lastAt - firstAt >= millisMin

export interface DenialLimits {
  /** How long the control plane must deny the session. */
  readonly millisMin: number
  /** When data of a publisher was last noticed; undefined when the relay never had a stream. */
  readonly lastDataAt: number | undefined
}

/** `going_on`: the relay would end if it had no stream. */
export type DenialVerdict = 'ending' | 'going_on' | 'waiting'

/** Judges after the last denial. All times are of one clock, in milliseconds. */
export function judgeDenials({ all, mismatches }: Denials, { millisMin, lastDataAt }: DenialLimits): DenialVerdict {
  if (isRepeated(mismatches, millisMin)) return 'ending'
  if (!isRepeated(all, millisMin)) return 'waiting'
  const now = all.lastAt
  const hasStream = lastDataAt !== undefined && now - lastDataAt < streamPauseMillisMax
  return hasStream && now - all.firstAt < unknownMillisMax ? 'going_on' : 'ending'
}

export const describeDenials = ({ all: { count, firstAt, lastAt } }: Denials): string =>
  `in ${count} answers over ${Math.round((lastAt - firstAt) / 1000)} s`
