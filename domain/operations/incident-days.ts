/** The last days, and on which of them there were incidents. */
import type { Millis } from '../millis.ts'
import { incidentDays } from './incidents.ts'

const dayMillis = 86_400_000

export interface IncidentDay {
  /** `2026-12-03`, in UTC. */
  readonly day: string
  /** `unmeasured` before the service began to measure. */
  readonly level: 'fine' | 'incident' | 'unmeasured'
}

interface Period {
  readonly beganAt: Millis
  /** Null while it is open. */
  readonly endedAt: Millis | null
}

interface Measuring {
  readonly now: Millis
  readonly measuredSince: Millis
}

/** The {@link incidentDays} days until today, oldest first. */
export function listIncidentDays(incidents: readonly Period[], { now, measuredSince }: Measuring): IncidentDay[] {
  const today = Math.floor(now / dayMillis) * dayMillis
  return Array.from({ length: incidentDays }, (_, index) => {
    const begin = today - (incidentDays - 1 - index) * dayMillis
    const end = begin + dayMillis
    const hasIncident = incidents.some(({ beganAt, endedAt }) => beganAt < end && (endedAt ?? now) >= begin)
    const level = hasIncident ? 'incident' : measuredSince >= end ? 'unmeasured' : 'fine'
    return { day: new Date(begin).toISOString().slice(0, 10), level }
  })
}
