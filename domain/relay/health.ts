/**
 * The rules of silence: when a relay is lost, how long its deadlines are extended, and when its usage ends. Silence
 * counts only while an api process could take reports and their path to it was open, and provisioning time only while a
 * worker could create instances. All durations are in seconds, as Postgres measured them.
 */
import {
  idleSecondsMin,
  type RelayReason,
  type RelaySessionEvent,
  type RelaySessionSettings,
  type RelayState,
} from './session.ts'

/** `api` processes take health reports; `worker` processes run workflows and create instances. */
export const processRoles = ['api', 'worker'] as const
export type ProcessRole = (typeof processRoles)[number]

const absenceSecondsMax: Readonly<Record<ProcessRole, number>> = { api: 10, worker: 15 }

/**
 * A role counts as absent when no process has confirmed its presence for this long. It is a small part of the time
 * limit that it protects, so that short absences can't add up to the limit unnoticed.
 */
export const absenceSeconds = (role: ProcessRole, limitSeconds: number): number =>
  Math.min(absenceSecondsMax[role], limitSeconds / 3)

/**
 * The longest time that the report of a session is held open: its end shows at once that the relay, or the way to it,
 * is gone.
 */
export const heldReportSecondsMax = (healthTimeoutSeconds: number): number => Math.min(10, healthTimeoutSeconds / 3)

/** How often the relay of a session reports that is looked at, so that a page names what is wrong within 5 s. */
export const watchedReportSeconds = 1.8

/** A relay that holds reports open is suspect when the next one is this late. Suspicion alone changes nothing. */
export const lateReportSeconds = (healthTimeoutSeconds: number): number => Math.min(3, healthTimeoutSeconds / 3)

/** When the processes of a role were there, or the path of reports was open. */
export interface Presence {
  /** Since the present run of confirmations began. */
  readonly forSeconds: number
  /** Since the last confirmation. */
  readonly lastSeenSeconds: number
}

export const isPresent = (role: ProcessRole, { lastSeenSeconds }: Presence, limitSeconds: number): boolean =>
  lastSeenSeconds <= absenceSeconds(role, limitSeconds)

/** What the reports of a region's relays need: an api process, and an open path to it. */
export interface Reception {
  readonly api: Presence
  /** Of the path from the region's relays to the API; null when no worker has looked at it. */
  readonly path: Presence | null
}

/** When reports could be received. */
const receptionOf = ({ api, path }: Reception): Presence => ({
  forSeconds: Math.min(api.forSeconds, path?.forSeconds ?? Number.POSITIVE_INFINITY),
  lastSeenSeconds: Math.max(api.lastSeenSeconds, path?.lastSeenSeconds ?? 0),
})

const isReceiving = (reception: Reception, limitSeconds: number): boolean =>
  isPresent('api', receptionOf(reception), limitSeconds)

/**
 * A probe of the path that has not succeeded for longer proves nothing: its worker may be where the address never
 * answers.
 */
export const probeTrustedHours = 24

/** The last report of a relay, and when reports could be received. */
export interface ReportObservation extends Reception {
  /** Since the last report of the bound instance; null when it never reported. */
  readonly lastReportSeconds: number | null
}

/** The part of the time since the last report in which a report could have been received. */
const silentSeconds = (observation: ReportObservation): number =>
  Math.min(observation.lastReportSeconds ?? Number.POSITIVE_INFINITY, receptionOf(observation).forSeconds)

/** The part of a silence of `quietSeconds` in which an instance without a session could have reported. */
export const unboundSilentSeconds = (
  quietSeconds: number,
  reception: Reception,
  healthTimeoutSeconds: number,
): number =>
  isReceiving(reception, healthTimeoutSeconds) ? Math.min(quietSeconds, receptionOf(reception).forSeconds) : 0

/** As if the path were open: silence is then no proof, but a reason to ask the provider. */
const withOpenPath = <Observation extends Reception>(observation: Observation): Observation => ({
  ...observation,
  path: null,
})

/**
 * Silence of an active session. A relay that never reported is silent from the time on when its session became active.
 */
export interface ActiveObservation extends ReportObservation {
  readonly region: string
  readonly activeSeconds: number
  /** The number of active sessions in the region. */
  readonly activeInRegion: number
}

const isSilentFor = (seconds: number, observation: ActiveObservation, healthTimeoutSeconds: number): boolean =>
  isReceiving(observation, healthTimeoutSeconds) &&
  Math.min(silentSeconds(observation), observation.activeSeconds) > seconds

/** Whether a relay that holds its reports open should have reported again. */
export const isLate = (observation: ActiveObservation, healthTimeoutSeconds: number): boolean =>
  isSilentFor(
    heldReportSecondsMax(healthTimeoutSeconds) + lateReportSeconds(healthTimeoutSeconds),
    observation,
    healthTimeoutSeconds,
  )

export interface RegionSilence<Session> {
  readonly region: string
  readonly active: number
  /** The number of sessions that have been silent for half the health timeout. */
  readonly quiet: number
  /** The sessions that have been silent for the whole timeout. */
  readonly silent: readonly Session[]
  /** Those, and the ones that would be silent if the path of their reports were open. */
  readonly unheard: readonly Session[]
}

/** @param sessions at least those active sessions that have not reported for half the health timeout. */
export function silenceByRegion<Session extends ActiveObservation>(
  sessions: readonly Session[],
  healthTimeoutSeconds: number,
): RegionSilence<Session>[] {
  const regions = [...new Set(sessions.map(({ region }) => region))]
  return regions.map((region) => {
    const inRegion = sessions.filter((session) => session.region === region)
    return {
      region,
      active: inRegion[0]?.activeInRegion ?? 0,
      quiet: inRegion.filter((session) => isSilentFor(healthTimeoutSeconds / 2, session, healthTimeoutSeconds)).length,
      silent: inRegion.filter((session) => isSilentFor(healthTimeoutSeconds, session, healthTimeoutSeconds)),
      unheard: inRegion.filter((session) =>
        isSilentFor(healthTimeoutSeconds, withOpenPath(session), healthTimeoutSeconds),
      ),
    }
  })
}

/** @param figures of a region: the number of its active sessions that have not reported for half the health timeout. */
export const countQuiet = (
  { quiet, api }: { readonly quiet: number; readonly api: Presence },
  healthTimeoutSeconds: number,
): number => (isPresent('api', api, healthTimeoutSeconds) && api.forSeconds > healthTimeoutSeconds / 2 ? quiet : 0)

interface BoundObservation extends ReportObservation {
  /** Since the instance was bound to its session. */
  readonly boundSeconds: number
}

/** Whether a bound instance should have reported by now. */
export const isOverdue = (observation: BoundObservation, healthTimeoutSeconds: number): boolean =>
  observation.lastReportSeconds === null &&
  isReceiving(observation, healthTimeoutSeconds) &&
  Math.min(observation.boundSeconds, receptionOf(observation).forSeconds) > healthTimeoutSeconds

/** Whether it should have, or would if the path of its reports were open. */
export const isUnheard = (observation: BoundObservation, healthTimeoutSeconds: number): boolean =>
  isOverdue(withOpenPath(observation), healthTimeoutSeconds)

/**
 * When most relays of a region fall silent together, the cause is the region or the way to it, and stopping its relays
 * would make it worse. Relays that have been silent for half the timeout count as well: otherwise the first few would
 * be stopped before the others are noticed.
 */
export const isRegionalOutage = ({ active, quiet }: { readonly active: number; readonly quiet: number }): boolean =>
  active >= 5 && quiet > active / 2

/** A relay that died is charged for this long after its last report, or for one report interval when that is longer. */
const chargedSecondsAfterReport = 10

/**
 * How long ago the use of a stopped session ended. A relay that stopped reporting before its session ended is charged
 * until shortly after its last report.
 */
export function usageEndedSecondsAgo(
  observation: ReportObservation,
  limits: { readonly healthTimeoutSeconds: number; readonly healthIntervalSeconds: number },
): number {
  if (observation.lastReportSeconds === null) return 0
  const silence = silentSeconds(observation)
  const isDead = isReceiving(observation, limits.healthTimeoutSeconds) && silence > limits.healthTimeoutSeconds
  return isDead ? Math.max(0, silence - Math.max(chargedSecondsAfterReport, limits.healthIntervalSeconds)) : 0
}

/** A session's row and last report, read while the row is locked. */
export interface ObservedSession extends ReportObservation {
  readonly state: RelayState
  readonly reason: RelayReason
  readonly instanceId: string | null
  /** How long no stream has come in, according to the reports; null while one comes in. */
  readonly idleSeconds: number | null
  readonly createdSeconds: number
  /** Since the bound instance was proved to be gone; null when it was not. */
  readonly goneSeconds: number | null
  /** Since grace began; null outside of grace. */
  readonly graceSeconds: number | null
  /** Until grace ends; null outside of grace. */
  readonly graceEndsInSeconds: number | null
  readonly worker: Presence
}

/** Why an event's transitions are not made although they are legal. */
export type Objection =
  /** The condition that the event reported has passed. */
  | { readonly type: 'outdated' }
  /** The relay reports, so provisioning succeeded or grace is over. */
  | { readonly type: 'reporting' }
  /** The deadline is this far ahead. `isExtended`: later than in the session's row. */
  | { readonly type: 'postponed'; readonly forSeconds: number; readonly isExtended: boolean }

const eventsCheckedForObjections = [
  'ready',
  'provision_failed',
  'health_lost',
  'health_restored',
  'relay_gone',
  'instance_gone',
  'idle',
  'deadline',
] as const
type CheckedEvent = (typeof eventsCheckedForObjections)[number]

/** Whether the relay's health may object to the transitions of this event. */
export const isCheckedForObjections = (event: RelaySessionEvent['type']): event is CheckedEvent =>
  (eventsCheckedForObjections as readonly string[]).includes(event)

/** The reason not to make the event's transitions, from the relay's health; undefined when there is none. */
export function findObjection(
  event: CheckedEvent,
  session: ObservedSession,
  settings: Omit<RelaySessionSettings, 'stopGraceSeconds'>,
): Objection | undefined {
  const hasReported = (session.lastReportSeconds ?? Number.POSITIVE_INFINITY) < settings.healthTimeoutSeconds
  switch (event) {
    // The report may have come from an instance that has been replaced or given up since.
    case 'ready':
    case 'health_restored':
      return session.lastReportSeconds === null ? { type: 'outdated' } : undefined
    case 'provision_failed':
      return session.lastReportSeconds === null ? undefined : { type: 'reporting' }
    case 'health_lost':
    case 'instance_gone':
      return hasReported ? { type: 'outdated' } : undefined
    case 'relay_gone':
      return session.goneSeconds !== null &&
        session.goneSeconds <= (session.lastReportSeconds ?? Number.POSITIVE_INFINITY)
        ? undefined
        : { type: 'outdated' }
    case 'idle':
      return hasReported && (session.idleSeconds ?? -1) >= idleSecondsMin(settings.maxSessionSeconds)
        ? undefined
        : { type: 'outdated' }
    case 'deadline':
      return session.state === 'provisioning'
        ? objectionToProvisionTimeout(session, settings)
        : objectionToGraceEnd(session, settings)
  }
}

/** Time without a worker, or in which the instance could not report, does not count as provisioning time. */
function objectionToProvisionTimeout(
  { lastReportSeconds, createdSeconds, instanceId, worker, ...reception }: ObservedSession,
  { provisionTimeoutSeconds, healthTimeoutSeconds }: Omit<RelaySessionSettings, 'stopGraceSeconds'>,
): Objection | undefined {
  if (lastReportSeconds !== null && lastReportSeconds < createdSeconds) return { type: 'reporting' }
  // A worker evaluates this rule, so an absence of workers has just ended.
  const workerSeconds = isPresent('worker', worker, provisionTimeoutSeconds) ? worker.forSeconds : 0
  const own = provisionTimeoutSeconds - createdSeconds
  const forSeconds = Math.max(
    own,
    provisionTimeoutSeconds - workerSeconds,
    instanceId === null ? 0 : provisionTimeoutSeconds - receptionOf(reception).forSeconds,
    instanceId === null || isReceiving(reception, healthTimeoutSeconds)
      ? 0
      : absenceSeconds('api', healthTimeoutSeconds),
  )
  return forSeconds > 0 ? { type: 'postponed', forSeconds, isExtended: forSeconds > own } : undefined
}

/** Grace for lost health ends only after a report could have been received during its whole length. */
function objectionToGraceEnd(
  { reason, lastReportSeconds, graceSeconds, graceEndsInSeconds, ...reception }: ObservedSession,
  settings: Omit<RelaySessionSettings, 'stopGraceSeconds'>,
): Objection | undefined {
  const sinceGrace = graceSeconds ?? 0
  const isHealthLost = reason === 'health_lost'
  if (isHealthLost && lastReportSeconds !== null && lastReportSeconds < sinceGrace) return { type: 'reporting' }
  const own = graceEndsInSeconds ?? 0
  const { forSeconds: receivedForSeconds } = receptionOf(reception)
  const forSeconds = Math.max(
    own,
    isHealthLost && receivedForSeconds < sinceGrace ? settings.graceSeconds - receivedForSeconds : 0,
    isHealthLost && !isReceiving(reception, settings.healthTimeoutSeconds)
      ? absenceSeconds('api', settings.healthTimeoutSeconds)
      : 0,
  )
  return forSeconds > 0 ? { type: 'postponed', forSeconds, isExtended: forSeconds > own } : undefined
}
