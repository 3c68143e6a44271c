/**
 * Points in time and durations as text. The server does not know the visitor's time zone, so it writes times in UTC,
 * and `site.js` rewrites those with `data-local` in local time. Both name the zone.
 */

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

/** `just now`, `1 minute ago`, `5 hours ago`, `12 days ago`. */
export function formatAge(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000
  const unit = units.find(([, length]) => seconds >= length)
  if (!unit) return 'just now'
  const count = Math.floor(seconds / unit[1])
  return `${count} ${unit[0]}${count === 1 ? '' : 's'} ago`
}

/** `3 December 2026 (UTC)`. */
export const formatDay = (at: Date): string =>
  `${at.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })} (UTC)`

/** `3 Dec 2026, 14:05 UTC`. */
export const formatDateTime = (at: Date): string => `${formatShortDay(at)}, ${at.toISOString().slice(11, 16)} UTC`

const formatShortDay = (at: Date): string =>
  at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })

/** `3 Dec 2026, 14:05:09 UTC`, where the order of events within a minute matters. */
export const formatInstant = (at: Date): string => `${formatShortDay(at)}, ${at.toISOString().slice(11, 19)} UTC`

/** `14:05 UTC`, and of another day than today as {@link formatDateTime}. */
export const formatClock = (at: Date, now: Date): string =>
  formatDay(at) === formatDay(now) ? `${at.toISOString().slice(11, 16)} UTC` : formatDateTime(at)

/** `45 min`, `9 h 30 min`, and from ten hours on without minutes: `12 h`. */
export function formatHours(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  if (minutes >= 600) return `${Math.round(minutes / 60)} h`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** `45 s`, and from a minute on as {@link formatHours}. */
export const formatDuration = (seconds: number): string =>
  seconds < 60 ? `${Math.max(0, Math.floor(seconds))} s` : formatHours(seconds)

/** `1:45`. */
export function formatCountdown(seconds: number): string {
  const left = Math.max(0, Math.ceil(seconds))
  return `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`
}

/**
 * `47 h 59 min`, within the last hour `12:34 minutes`, and within the last minute `29 seconds`. `site.js` formats it in
 * the same way.
 */
export function formatTimeLeft(seconds: number): string {
  const left = Math.max(0, Math.ceil(seconds))
  if (left < 60) return left === 1 ? '1 second' : `${left} seconds`
  if (left < 3600) return `${formatCountdown(left)} minutes`
  return `${Math.floor(left / 3600)} h ${Math.floor((left % 3600) / 60)} min`
}

interface TimeLeftProps {
  /** RFC 3339. */
  readonly until: string
  /** Shown afterwards. */
  readonly expiredText: string
}

/** A countdown. `site.js` updates it from the seconds left, not from the deadline, since clocks differ. */
export function TimeLeft({ until, expiredText }: TimeLeftProps) {
  const seconds = (Date.parse(until) - Date.now()) / 1000
  return (
    <time
      class="countdown"
      datetime={until}
      data-seconds-left={Math.max(0, Math.round(seconds))}
      data-expired-text={expiredText}
    >
      {seconds > 0 ? formatTimeLeft(seconds) : expiredText}
    </time>
  )
}

interface TimeAgoProps {
  /** RFC 3339. */
  readonly at: string
  /** Its age by default. */
  readonly text?: string
}

export const TimeAgo = ({ at, text = formatAge(new Date(at), new Date()) }: TimeAgoProps) => (
  <time datetime={at} title={formatInstant(new Date(at))} data-local="title">
    {text}
  </time>
)

/** @param at RFC 3339. */
export const Day = ({ at }: { readonly at: string }) => (
  <time datetime={at} data-local="day">
    {formatDay(new Date(at))}
  </time>
)

/** The same for all visitors: for pages whose other days are in UTC too. @param at RFC 3339. */
export const UtcDay = ({ at }: { readonly at: string }) => <time datetime={at}>{formatDay(new Date(at))}</time>

/** @param at RFC 3339. */
export const DateTime = ({ at }: { readonly at: string }) => (
  <time datetime={at} data-local="minute">
    {formatDateTime(new Date(at))}
  </time>
)

/** To the second: for lists whose order matters. @param at RFC 3339. */
export const Instant = ({ at }: { readonly at: string }) => (
  <time datetime={at} data-local="second">
    {formatInstant(new Date(at))}
  </time>
)

/** `14:05 UTC`, and of another day than today with the date. @param at RFC 3339. */
export const Clock = ({ at }: { readonly at: string }) => (
  <time datetime={at} data-local="clock">
    {formatClock(new Date(at), new Date())}
  </time>
)
