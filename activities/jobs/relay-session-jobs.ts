/** The jobs that send undelivered commands again, and that watch the health reports of relays. */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import { type BoundSession, missingInstances } from '../../db/instances.ts'
import {
  idleSessions,
  overlookedReports,
  type SilentRegion,
  silentSessions,
  unreportedInstances,
} from '../../db/relay-health.ts'
import { claimSignals, markCommandDelivered, postponeDelivery, undeliveredCommands } from '../../db/relay-sessions.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelaySessionActors } from '../../workflows/relay-session-client.ts'
import type { RelayProviders } from '../relay-providers.ts'
import type { Job } from './jobs.ts'
import { restartWorkflow } from './workflow-restart-jobs.ts'

export interface RelaySessionJobDeps {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly actors: RelaySessionActors
  readonly providers: RelayProviders
}

const sessionsMax = 500
/** Concurrent calls to Temporal: many sessions queue instead of failing. */
const callsMax = 16
/** No delivery starts later than this in a run. The next run takes the rest, those first that are due longest. */
const deliverMillisMax = 20_000

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

/** Sends undelivered commands to their workflows. A failure postpones the next attempt, each time for longer. */
async function deliverCommands(deps: RelaySessionJobDeps, signal?: AbortSignal): Promise<void> {
  const { sql, log, actors } = deps
  const limit = pLimit(callsMax)
  const until = Date.now() + deliverMillisMax
  const sessions = await undeliveredCommands(sql, sessionsMax)
  await Promise.all(
    sessions.map((session) =>
      limit(async () => {
        if (signal?.aborted || Date.now() > until) return
        try {
          if (!(await actors.deliver(session))) await restartWorkflow(session.id, deps)
          await markCommandDelivered(sql, session.id, session.commandSeq)
        } catch (error) {
          log.warn({ err: error, session_id: session.id }, 'a command could not be delivered; it is retried')
          await postponeDelivery(sql, session.id, session.commandSeq)
        }
      }),
    ),
  )
}

/** Signals lost health, reports that the workflow missed, idle sessions, and instances that are gone. */
async function watchHealth(deps: RelaySessionJobDeps): Promise<void> {
  const { config, sql, log, actors } = deps
  const limit = pLimit(callsMax)
  const signalAll = async (sessionIds: readonly string[], signal: (sessionId: string) => Promise<boolean>) =>
    Promise.all(
      (await claimSignals(sql, sessionIds)).map((id) =>
        limit(async () => {
          if (!(await signal(id))) await restartWorkflow(id, deps)
        }),
      ),
    )
  const { healthTimeoutSeconds, maxSessionSeconds } = config.relay

  const suspects: (BoundSession & { region: string })[] = []
  for (const region of await silentSessions(sql, healthTimeoutSeconds)) {
    if (region.silent.length === 0) continue
    if (isRegionalOutage(region)) {
      log.error(
        { region: region.region, active: region.active, quiet: region.quiet },
        'most relays of a region stopped reporting at the same time',
      )
      suspects.push(...region.silent.map((session) => ({ ...session, region: region.region })))
    } else
      await signalAll(
        region.silent.map(({ id }) => id),
        actors.healthLost,
      )
  }
  const overlooked = await overlookedReports(sql, sessionsMax)
  await signalAll(overlooked.ready, actors.ready)
  await signalAll(overlooked.restored, actors.healthRestored)
  await signalAll(await idleSessions(sql, maxSessionSeconds), actors.idle)

  suspects.push(...(await unreportedInstances(sql, healthTimeoutSeconds, sessionsMax)))
  const gone = await goneInstances(suspects, deps)
  await Promise.all(gone.map(({ id, instanceId }) => limit(() => actors.instanceGone(id, instanceId ?? ''))))
}

/**
 * When most relays of a region stop reporting at the same time, the region or the network is the cause, and stopping relays
 * would make it worse. Counts the quiet ones, which have missed half the timeout: waiting for all to be silent would stop the
 * first few.
 */
const isRegionalOutage = ({ active, quiet }: SilentRegion): boolean => active >= 5 && quiet > active / 2

/** An instance is gone when two listings that are this far apart lack it. */
const secondsBetweenListings = (healthTimeoutSeconds: number): number => Math.min(10, healthTimeoutSeconds)

/** The suspects whose instance the provider no longer has. Silence alone does not prove that. */
async function goneInstances(
  suspects: readonly (BoundSession & { readonly region: string })[],
  { config, sql, log, providers }: RelaySessionJobDeps,
): Promise<BoundSession[]> {
  const gone: BoundSession[] = []
  for (const region of new Set(suspects.map((one) => one.region))) {
    const sessions = suspects.filter((one) => one.region === region)
    try {
      const listed = await providers.get(region)?.list()
      if (!listed) continue
      const instanceIds = new Set(listed.map(({ instanceId }) => instanceId))
      const apart = secondsBetweenListings(config.relay.healthTimeoutSeconds)
      gone.push(...(await missingInstances(sql, sessions, instanceIds, apart)))
    } catch (error) {
      log.warn({ err: error, region }, 'the instances of silent relays could not be listed')
    }
  }
  for (const { id, instanceId } of gone)
    log.warn({ session_id: id, instance_id: instanceId }, 'the instance of a silent relay is gone')
  return gone
}
