/**
 * Incidents: when a part of the service did not work for its users. Each measurement moves the incident of its subject
 * by one step. A bad measurement begins a suspicion, which becomes an incident when it lasts. An incident ends after it
 * has been fine for a while. So a short fault opens none, and a fault that comes and goes is a single incident.
 */
import type { Millis } from '../millis.ts'

/** `relays` and `starts` are parts of a region, the others of the whole service. */
export const incidentParts = ['api', 'site', 'sign_in', 'billing', 'control', 'relays', 'starts'] as const
export type IncidentPart = (typeof incidentParts)[number]

/** `reported` is an incident that an operator added; the others are measured. */
export const incidentKinds = ['part_outage', 'starts_failing', 'region_closed', 'reported'] as const
export type IncidentKind = (typeof incidentKinds)[number]

/** How long incidents are kept after their end, and shown. */
export const incidentDays = 90

/** What is measured. At most one incident of a subject is open. */
export interface IncidentSubject {
  /** Null for the whole service. */
  readonly region: string | null
  readonly part: IncidentPart
  readonly kind: IncidentKind
}

export interface Measurement extends IncidentSubject {
  /** Since when the subject is bad; null while it is fine. */
  readonly badSince: Millis | null
}

/** A suspicion or an incident. */
export interface Incident {
  readonly beganAt: Millis
  /** Null for a suspicion, which is not shown. */
  readonly confirmedAt: Millis | null
  /** Since when the subject has been fine; null while it is bad. */
  readonly fineSince: Millis | null
  readonly endedAt: Millis | null
}

/** A subject that is bad for less is no incident. */
export const confirmMillis = 60_000
/** An incident ends when its subject has been fine for this long. Its end is the beginning of that time. */
export const fineMillis = 300_000
/** The service counts as stopped when it measured nothing for longer. An upgrade takes less. */
export const gapMillis = 120_000

interface Moment {
  readonly now: Millis
  /** The measurement before this one; null at the first. */
  readonly measuredAt: Millis | null
  /** The end of the subject's last incident, which the next one does not overlap; null without one. */
  readonly lastEndedAt: Millis | null
}

/**
 * The time between the last two measurements does not prove that anything was fine or bad in it, when it is too long.
 */
export const hasGap = ({ now, measuredAt }: Pick<Moment, 'now' | 'measuredAt'>): boolean =>
  measuredAt === null || now - measuredAt > gapMillis

/**
 * The next step of a subject.
 * @param incident its suspicion or incident that has not ended.
 * @returns what it becomes; undefined when there is no suspicion and no incident any more.
 */
export function nextIncident(
  incident: Incident | undefined,
  { badSince }: Pick<Measurement, 'badSince'>,
  moment: Moment,
): Incident | undefined {
  return badSince === null ? whileFine(incident, moment) : whileBad(incident, badSince, moment)
}

function whileBad(incident: Incident | undefined, badSince: Millis, moment: Moment): Incident {
  const { now, lastEndedAt } = moment
  const isKept = incident !== undefined && (incident.confirmedAt !== null || !hasGap(moment))
  const beganAt = isKept ? incident.beganAt : Math.max(Math.min(badSince, now), lastEndedAt ?? badSince)
  const confirmedAt = (isKept ? incident.confirmedAt : null) ?? (now - beganAt >= confirmMillis ? now : null)
  return { beganAt, confirmedAt, fineSince: null, endedAt: null }
}

function whileFine(incident: Incident | undefined, moment: Moment): Incident | undefined {
  if (incident === undefined || incident.confirmedAt === null) return undefined
  const { now } = moment
  const fineSince = hasGap(moment) ? now : (incident.fineSince ?? now)
  return { ...incident, fineSince, endedAt: now - fineSince >= fineMillis ? fineSince : null }
}
