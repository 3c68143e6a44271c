/** The announcement that a route is going to be left out: RFC 9745 and RFC 8594. */

export interface Deprecation {
  /** When it was announced: a date such as `2027-01-31`, in UTC. */
  readonly since: string
  /** When the route may be left out, at least a year later. */
  readonly sunset: string
}

/** The header fields of every reply of the route. Throws unless the dates are valid and a year apart. */
export function deprecationHeaders({ since, sunset }: Deprecation): { Deprecation: string; Sunset: string } {
  const announcedAt = readDate(since)
  const yearLater = new Date(announcedAt)
  yearLater.setUTCFullYear(yearLater.getUTCFullYear() + 1)
  const endsAt = readDate(sunset)
  if (endsAt < yearLater) throw new Error(`the sunset ${sunset} is less than a year after ${since}`)
  return { Deprecation: `@${announcedAt.getTime() / 1000}`, Sunset: endsAt.toUTCString() }
}

function readDate(text: string): Date {
  const date = new Date(`${text}T00:00:00Z`)
  if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(text)) throw new Error(`${text} is not a date`)
  return date
}
