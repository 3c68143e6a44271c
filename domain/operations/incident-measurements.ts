/**
 * What makes a part of the service bad. A single account makes none bad: accounts are counted, each of them once, so
 * that neither its encoder nor its impatience is an incident of the service.
 */
import type { Millis } from '../millis.ts'
import { hasGap, type Measurement } from './incidents.ts'

/** Fewer accounts with the same fault may all have caused it themselves. */
export const accountsMin = 3

/** At least this share of the accounts that tried. */
const shareMin = 0.5

/** The accounts that something failed for, and those that tried it. */
export interface Failures {
  readonly failed: number
  readonly tried: number
  /** Of the first failure; null without one. */
  readonly since: Millis | null
}

export const hasMostFailed = ({ failed, tried }: Failures): boolean =>
  failed >= accountsMin && failed >= tried * shareMin

export interface RegionFigures {
  readonly region: string
  /** The starts of the last minutes, by the last one of each account. */
  readonly starts: Failures
  /** The accounts whose relay failed in the last minutes, of those with a live relay. */
  readonly losses: Failures
  /** Since when the way from its relays to the API is closed; null while it is open or nothing uses it. */
  readonly cutSince: Millis | null
  /** Whether most of its relays fell silent together; see `isRegionalOutage`. */
  readonly isSilent: boolean
  /** Since when an operator drains it, or its provider refuses to create relays; null while it takes relays. */
  readonly closedSince: Millis | null
}

export interface ServiceFigures {
  readonly now: Millis
  /** The measurement before this one; null at the first. */
  readonly measuredAt: Millis | null
  /** Since when no api process has confirmed that it works, or its address does not answer; null while it does. */
  readonly apiBadSince: Millis | null
  /** The first confirmation of the api processes after their last break. */
  readonly apiSince: Millis
  /** The accounts whose mails wait for their delivery, while none is delivered. */
  readonly mails: Failures
  /** The accounts whose billing events wait. */
  readonly billingEvents: Failures
  readonly regions: readonly RegionFigures[]
}

/** One measurement for each subject that can be measured. */
export function measureParts(figures: ServiceFigures): Measurement[] {
  const { now, measuredAt, mails, billingEvents, regions } = figures
  const whole = (part: Measurement['part'], badSince: Millis | null): Measurement => ({
    region: null,
    part,
    kind: 'part_outage',
    badSince,
  })
  // What measures has not run in the meantime. A first measurement follows nothing.
  const stoppedSince = hasGap(figures) ? measuredAt : null
  const apiBadSince = figures.apiBadSince ?? apiBadInGap(figures)
  return [
    whole('api', apiBadSince),
    whole('control', stoppedSince),
    whole('sign_in', sinceWhen(hasMostFailed(mails), mails.since, now)),
    whole('billing', sinceWhen(hasMostFailed(billingEvents), billingEvents.since, now)),
    ...regions.flatMap((region) => measureRegion(region, now, apiBadSince !== null)),
  ]
}

/** The API stopped with what measures, and came back before it. */
const apiBadInGap = ({ measuredAt, apiSince, ...moment }: ServiceFigures): Millis | null =>
  measuredAt !== null && hasGap({ ...moment, measuredAt }) && hasGap({ now: apiSince, measuredAt }) ? measuredAt : null

/** While the API is bad, the way to it is closed for the relays of all regions, which is no fault of theirs. */
function measureRegion(figures: RegionFigures, now: Millis, isApiBad: boolean): Measurement[] {
  const { region, starts, losses, isSilent, closedSince } = figures
  const cutSince = isApiBad ? null : figures.cutSince
  const lostSince = sinceWhen(hasMostFailed(losses), losses.since, now)
  const badSince = cutSince ?? lostSince ?? sinceWhen(isSilent, null, now)
  return [
    { region, part: 'relays', kind: 'part_outage', badSince },
    { region, part: 'starts', kind: 'starts_failing', badSince: sinceWhen(hasMostFailed(starts), starts.since, now) },
    { region, part: 'starts', kind: 'region_closed', badSince: closedSince },
  ]
}

const sinceWhen = (isBad: boolean, since: Millis | null, now: Millis): Millis | null => (isBad ? (since ?? now) : null)
