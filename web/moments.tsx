/** Moments and lengths of time as people say them. The server does not know their time zone: days are in UTC. */

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

/** `just now`, `1 minute ago`, `5 hours ago`, `12 days ago`. */
export function agoInWords(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000
  const unit = units.find(([, length]) => seconds >= length)
  if (!unit) return 'just now'
  const count = Math.floor(seconds / unit[1])
  return `${count} ${unit[0]}${count === 1 ? '' : 's'} ago`
}

/** `3 December 2026`. */
export const dayInWords = (at: Date): string =>
  at.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })

/** `3 December 2026, 14:05 UTC`. */
export const momentInWords = (at: Date): string => `${dayInWords(at)}, ${at.toISOString().slice(11, 16)} UTC`

/** `0 h`, `45 min`, `12 h 30 min`. */
export function hoursInWords(seconds: number): string {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)]
  if (hours === 0 && minutes > 0) return `${minutes} min`
  return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`
}

/** What is left of a time that runs out: `1:45`. */
export function countdown(seconds: number): string {
  const left = Math.max(0, Math.ceil(seconds))
  return `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`
}

/** @param at RFC 3339. */
export const Ago = ({ at }: { readonly at: string }) => (
  <time datetime={at} title={momentInWords(new Date(at))}>
    {agoInWords(new Date(at), new Date())}
  </time>
)

/** @param at RFC 3339. */
export const Day = ({ at }: { readonly at: string }) => <time datetime={at}>{dayInWords(new Date(at))}</time>

/** @param at RFC 3339. */
export const Moment = ({ at }: { readonly at: string }) => <time datetime={at}>{momentInWords(new Date(at))}</time>
