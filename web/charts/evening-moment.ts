/** A moment of a session that an address names (`?at=`), and the events beside it. */
import { formatAway } from '../../domain/relay/end-texts.ts'
import type { DescribedEvent } from '../record-event-texts.ts'
import type { View } from './evening-series.ts'

/** What is shown before and after a moment, and how far its events are away at most. */
export const momentMillis = 600_000
const nearestMax = 3

/** `21:14` and `21:14:05`, in the time zone of the visitor, which only scripts know. */
const clockPattern = /^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/
const instantPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/** The text when it is a time of day; undefined for all others. */
export const parseClock = (text: string | null): string | undefined =>
  text !== null && clockPattern.test(text) ? text : undefined

/** Milliseconds since 1970; undefined for a text that is no time with a zone, and for a time outside the session. */
export function parseInstant(text: string | null, { from, to }: View): number | undefined {
  const at = text !== null && instantPattern.test(text) ? Date.parse(text) : Number.NaN
  return at >= from && at <= to ? at : undefined
}

/** The view around a moment within the session. */
export const viewAround = (at: number, { from, to }: View): View => ({
  from: Math.max(from, at - momentMillis),
  to: Math.min(to, at + momentMillis),
})

/** The events that are nearest to a moment, in their order. `evening.js` does the same. */
export const findNearest = (events: readonly DescribedEvent[], at: number): readonly DescribedEvent[] =>
  events
    .map((event) => ({ event, distance: Math.abs(Date.parse(event.at) - at) }))
    .filter(({ distance }) => distance <= momentMillis)
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, nearestMax)
    .map(({ event }) => event)
    .toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))

/** `12 s earlier`, `2 min 5 s later`, or `at this moment`. `evening.js` formats it in the same way. */
export function formatDistance(eventAt: number, at: number): string {
  const seconds = Math.round(Math.abs(eventAt - at) / 1000)
  if (seconds === 0) return 'at this moment'
  return `${formatAway(seconds)} ${eventAt < at ? 'earlier' : 'later'}`
}
