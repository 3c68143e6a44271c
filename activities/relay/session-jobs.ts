/** Jobs of relay sessions: deliver commands that did not arrive, and signal relays that fell silent. */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import { listUndeliveredCommands, markCommandDelivered, postponeDelivery } from '../../db/relay/commands.ts'
import {
  listIdleSessions,
  listMissedReports,
  listQuietSessions,
  listUnreportedInstances,
  listUnreportedReplacements,
} from '../../db/relay/health.ts'
import { type BoundSession, findMissingInstances } from '../../db/relay/missing-instances.ts'
import { claimSignals } from '../../db/relay/signals.ts'
import { assignedReportSecondsMax } from '../../domain/fleet/warm-instances.ts'
import { isOverdue, isRegionalOutage, isUnheard, silenceByRegion } from '../../domain/relay/health.ts'
import { idleSecondsMin } from '../../domain/relay/session.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelaySessionWorkflows } from '../../workflows/relay-session-client.ts'
import type { RelayProviders } from '../fleet/relay-providers.ts'
import type { Job } from '../worker/jobs.ts'
import { restartWorkflow } from '../worker/workflow-restart-jobs.ts'

export interface RelaySessionJobDeps {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly relaySessions: RelaySessionWorkflows
  readonly providers: RelayProviders
}

/** The most sessions of one kind in one run. */
const sessionsMax = 500
/** The most concurrent calls to Temporal. */
const concurrentCallsMax = 16
/** No delivery begins later than this in a run. The next run takes the rest, the longest due first. */
const deliveryMillisMax = 20_000

export const relaySessionJobs = (deps: RelaySessionJobDeps): readonly Job[] => [
  {
    name: 'deliver_commands',
    everySeconds: 2,
    runSecondsMax: 120,
    run: (signal) => deliverCommands(deps, signal),
  },
  {
    name: 'watch_health',
    everySeconds: Math.max(0.25, Math.min(5, deps.config.relay.healthTimeoutSeconds / 4)),
    runSecondsMax: 60,
    run: () => watchHealth(deps),
  },
]

/** Delivers the commands whose delivery by the API failed. Each failure increases the command's backoff. */
async function deliverCommands(deps: RelaySessionJobDeps, signal?: AbortSignal): Promise<void> {
  const { sql, log, relaySessions } = deps
  const until = Date.now() + deliveryMillisMax
  const sessions = await listUndeliveredCommands(sql, sessionsMax)
  await pLimit(concurrentCallsMax).map(sessions, async (session) => {
    if (signal?.aborted || Date.now() > until) return
    try {
      if (!(await relaySessions.deliver(session))) await restartWorkflow(session.id, deps)
      await markCommandDelivered(sql, session.id, session.commandSeq)
    } catch (error) {
      log.warn({ err: error, session_id: session.id }, 'a command could not be delivered and is retried')
      await postponeDelivery(sql, session.id, session.commandSeq)
    }
  })
}

/** Signals workflows whose relay stopped reporting, reports again, is idle for too long, or lost its instance. */
async function watchHealth(deps: RelaySessionJobDeps): Promise<void> {
  const { config, sql, log, relaySessions } = deps
  const { healthTimeoutSeconds, provisionTimeoutSeconds, maxSessionSeconds } = config.relay
  const limit = pLimit(concurrentCallsMax)
  const signalAll = async (sessionIds: readonly string[], signal: (sessionId: string) => Promise<boolean>) =>
    limit.map(await claimSignals(sql, sessionIds), async (id) => {
      if (!(await signal(id))) await restartWorkflow(id, deps)
    })

  const suspects: SuspectSession[] = []
  const quietSessions = await listQuietSessions(sql, healthTimeoutSeconds / 2)
  for (const silence of silenceByRegion(quietSessions, healthTimeoutSeconds)) {
    const { region, active, quiet, silent, unheard } = silence
    const isOutage = isRegionalOutage(silence)
    if (isOutage && silent.length > 0)
      log.error({ region, active, quiet }, 'most relays of a region stopped reporting at the same time')
    const lost = isOutage ? [] : silent
    await signalAll(
      lost.map(({ id }) => id),
      relaySessions.healthLost,
    )
    // Silence ends none of the others, but the list of their provider does.
    suspects.push(...unheard.filter((session) => !lost.includes(session)))
  }
  const missed = await listMissedReports(sql, sessionsMax)
  await signalAll(missed.ready, relaySessions.ready)
  await signalAll(missed.restored, relaySessions.healthRestored)
  const idleSessions = await listIdleSessions(sql, maxSessionSeconds, idleSecondsMin(maxSessionSeconds))
  await signalAll(idleSessions, relaySessions.idle)

  const assignedSecondsMax = Math.min(assignedReportSecondsMax, healthTimeoutSeconds)
  const unreported = await listUnreportedInstances(sql, assignedSecondsMax, sessionsMax)
  // A warm instance was ready, so silence is enough to replace it. Nothing of its session is lost.
  const dead = unreported.filter((instance) => instance.isWarm && isOverdue(instance, assignedSecondsMax))
  suspects.push(
    ...unreported.filter((instance) => !dead.includes(instance) && isUnheard(instance, healthTimeoutSeconds)),
  )
  const replacements = await listUnreportedReplacements(sql, assignedSecondsMax, sessionsMax)
  const failed = replacements.filter((instance) =>
    isOverdue(instance, instance.isWarm ? assignedSecondsMax : provisionTimeoutSeconds),
  )
  const gone = [...dead, ...failed, ...(await findGoneInstances(suspects, deps))]
  await limit.map(gone, ({ id, instanceId }) => relaySessions.instanceGone(id, instanceId ?? ''))
}

type SuspectSession = BoundSession & { readonly region: string }

/** The least time between the two listings that prove an instance gone, in seconds. */
const listingsApartSeconds = (healthTimeoutSeconds: number): number => Math.min(10, healthTimeoutSeconds)

/** Silence does not prove that an instance is gone, but the provider's list does. */
async function findGoneInstances(
  suspects: readonly SuspectSession[],
  { config, sql, log, providers }: RelaySessionJobDeps,
): Promise<BoundSession[]> {
  const gone: BoundSession[] = []
  for (const region of new Set(suspects.map((session) => session.region))) {
    const sessions = suspects.filter((session) => session.region === region)
    try {
      const listed = await providers.get(region)?.list()
      if (!listed) continue
      const instanceIds = new Set(listed.map(({ instanceId }) => instanceId))
      const apartSeconds = listingsApartSeconds(config.relay.healthTimeoutSeconds)
      gone.push(...(await findMissingInstances(sql, sessions, instanceIds, apartSeconds)))
    } catch (error) {
      log.warn({ err: error, region }, 'the provider could not list the instances of silent relays')
    }
  }
  for (const { id, instanceId } of gone)
    log.warn({ session_id: id, instance_id: instanceId }, 'the instance of a silent relay is gone')
  return gone
}
