/** Measures the parts of the service, and moves their incidents on. */
import { measureParts, type ServiceFigures } from '../../domain/operations/incident-measurements.ts'
import { type Incident, type IncidentSubject, nextIncident } from '../../domain/operations/incidents.ts'
import { isRegionalOutage, silenceByRegion } from '../../domain/relay/health.ts'
import type { Database, Sql } from '../connection.ts'
import {
  readApiFigures,
  readBillingFailures,
  readMailFailures,
  readRegionStates,
  readRelayLosses,
  readStartFailures,
} from '../operations/incident-figures.ts'
import {
  deleteSuspicion,
  insertIncident,
  listLastEnds,
  listOpenIncidents,
  lockWatch,
  recordMeasurement,
  subjectKey,
  updateIncident,
  type WatchedIncident,
} from '../operations/incidents.ts'
import { listQuietSessions } from '../relay/health.ts'

interface Options {
  readonly regions: readonly string[]
  readonly healthTimeoutSeconds: number
}

export interface IncidentChange extends IncidentSubject {
  readonly change: 'began' | 'ended'
}

/**
 * One measurement. Its transaction is all of it, so a run that dies leaves nothing. Of two runs at the same time, the
 * second one continues where the first one ended.
 * @returns which incidents began and ended.
 */
export const recordIncidents = (sql: Database, options: Options): Promise<IncidentChange[]> =>
  sql.begin(async (tx): Promise<IncidentChange[]> => {
    const watch = await lockWatch(tx)
    const measurements = measureParts(await readFigures(tx, watch, options))
    const open = new Map((await listOpenIncidents(tx)).map((incident) => [subjectKey(incident), incident]))
    const lastEnds = await listLastEnds(tx)
    // A subject that is not measured any more, such as a region that was removed, cannot be bad.
    const measured = new Set(measurements.map(subjectKey))
    const unmeasured = [...open.values()].filter((incident) => !measured.has(subjectKey(incident)))
    const changes: IncidentChange[] = []
    for (const measurement of [...measurements, ...unmeasured.map((subject) => ({ ...subject, badSince: null }))]) {
      const { region, part, kind } = measurement
      const key = subjectKey(measurement)
      const former = open.get(key)
      const next = nextIncident(former, measurement, { ...watch, lastEndedAt: lastEnds.get(key) ?? null })
      await storeStep(tx, { region, part, kind }, former, next)
      const change = changeBetween(former, next)
      if (change) changes.push({ region, part, kind, change })
    }
    await recordMeasurement(tx, watch.now)
    return changes
  }) as Promise<IncidentChange[]>

async function readFigures(
  tx: Sql,
  watch: Pick<ServiceFigures, 'now' | 'measuredAt'>,
  { regions, healthTimeoutSeconds }: Options,
): Promise<ServiceFigures> {
  const silences = silenceByRegion(await listQuietSessions(tx, healthTimeoutSeconds / 2), healthTimeoutSeconds)
  const silent = new Set(silences.filter(isRegionalOutage).map(({ region }) => region))
  const [starts, losses] = [await readStartFailures(tx), await readRelayLosses(tx)]
  const states = await readRegionStates(tx, regions, healthTimeoutSeconds)
  return {
    ...watch,
    ...(await readApiFigures(tx, healthTimeoutSeconds)),
    mails: await readMailFailures(tx),
    billingEvents: await readBillingFailures(tx),
    regions: states.map((state) => ({
      ...state,
      starts: starts.get(state.region) ?? noFailures,
      losses: losses.get(state.region) ?? noFailures,
      isSilent: silent.has(state.region),
    })),
  }
}

const noFailures = { failed: 0, tried: 0, since: null }

async function storeStep(
  tx: Sql,
  subject: IncidentSubject,
  former: WatchedIncident | undefined,
  next: Incident | undefined,
): Promise<void> {
  if (!former) return next && insertIncident(tx, subject, next)
  if (!next) return deleteSuspicion(tx, former.id)
  const isSame = (['beganAt', 'confirmedAt', 'fineSince', 'endedAt'] as const).every(
    (name) => former[name] === next[name],
  )
  if (!isSame) await updateIncident(tx, former.id, next)
}

function changeBetween(former: Incident | undefined, next: Incident | undefined): IncidentChange['change'] | undefined {
  if (next && next.endedAt !== null) return 'ended'
  return next && next.confirmedAt !== null && (former?.confirmedAt ?? null) === null ? 'began' : undefined
}
