/** The rounds that keep relay sessions true: commands that did not arrive, relays that fell silent. */
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

export interface RelaySessionJobNeeds {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly actors: RelaySessionActors
  readonly providers: RelayProviders
}

const roundMax = 500
/** Calls to Temporal under way at once, so that a storm queues instead of failing. */
const callsMax = 16
/** Deliveries begin no later than this in a round: what is left waits for the next one, the longest due first. */
const deliverMillisMax = 20_000

export const relaySessionJobs = (needs: RelaySessionJobNeeds): readonly Job[] => [
  {
    name: 'deliver_commands',
    everySeconds: 2,
    roundSecondsMax: 120,
    run: (signal) => deliverCommands(needs, signal),
  },
  {
    name: 'watch_health',
    everySeconds: Math.max(0.25, Math.min(5, needs.config.relay.healthTimeoutSeconds / 4)),
    roundSecondsMax: 60,
    run: () => watchHealth(needs),
  },
]

/** Sends accepted commands again that their actors are not known to have. One that fails is put off, more each time. */
async function deliverCommands(needs: RelaySessionJobNeeds, signal?: AbortSignal): Promise<void> {
  const { sql, log, actors } = needs
  const limit = pLimit(callsMax)
  const until = Date.now() + deliverMillisMax
  const sessions = await undeliveredCommands(sql, roundMax)
  await Promise.all(
    sessions.map((session) =>
      limit(async () => {
        if (signal?.aborted || Date.now() > until) return
        try {
          if (!(await actors.deliver(session))) await restartWorkflow(session.id, needs)
          await markCommandDelivered(sql, session.id, session.commandSeq)
        } catch (error) {
          log.warn({ err: error, session_id: session.id }, 'a command could not be delivered yet')
          await postponeDelivery(sql, session.id, session.commandSeq)
        }
      }),
    ),
  )
}

/** Signals what the absence, the return or the overlooking of reports means for a session. */
async function watchHealth(needs: RelaySessionJobNeeds): Promise<void> {
  const { config, sql, log, actors } = needs
  const limit = pLimit(callsMax)
  const signalAll = async (sessionIds: readonly string[], signal: (sessionId: string) => Promise<boolean>) =>
    Promise.all(
      (await claimSignals(sql, sessionIds)).map((id) =>
        limit(async () => {
          if (!(await signal(id))) await restartWorkflow(id, needs)
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
        'most relays of a region fell silent at once',
      )
      suspects.push(...region.silent.map((session) => ({ ...session, region: region.region })))
    } else
      await signalAll(
        region.silent.map(({ id }) => id),
        actors.healthLost,
      )
  }
  const overlooked = await overlookedReports(sql, roundMax)
  await signalAll(overlooked.ready, actors.ready)
  await signalAll(overlooked.restored, actors.healthRestored)
  await signalAll(await idleSessions(sql, maxSessionSeconds), actors.idle)

  suspects.push(...(await unreportedInstances(sql, healthTimeoutSeconds, roundMax)))
  const gone = await goneInstances(suspects, needs)
  await Promise.all(gone.map(({ id, instanceId }) => limit(() => actors.instanceGone(id, instanceId ?? ''))))
}

/**
 * When most of a region falls silent at once it is the region or the way to it, and stopping relays would make it worse.
 * Judged by those that are about to be silent, or the first few to be so would be given up before the others tell.
 */
const isRegionalOutage = ({ active, quiet }: SilentRegion): boolean => active >= 5 && quiet > active / 2

/** Listings that prove an instance gone are this far apart, in seconds. */
const missingApartSeconds = (healthTimeoutSeconds: number): number => Math.min(10, healthTimeoutSeconds)

/** Silence proves nothing, but the provider does: the suspects whose instance it no longer has. */
async function goneInstances(
  suspects: readonly (BoundSession & { readonly region: string })[],
  { config, sql, log, providers }: RelaySessionJobNeeds,
): Promise<BoundSession[]> {
  const gone: BoundSession[] = []
  for (const region of new Set(suspects.map((one) => one.region))) {
    const sessions = suspects.filter((one) => one.region === region)
    try {
      const listed = await providers.get(region)?.list()
      if (!listed) continue
      const instanceIds = new Set(listed.map(({ instanceId }) => instanceId))
      const apart = missingApartSeconds(config.relay.healthTimeoutSeconds)
      gone.push(...(await missingInstances(sql, sessions, instanceIds, apart)))
    } catch (error) {
      log.warn({ err: error, region }, 'the provider could not be asked for silent relays')
    }
  }
  for (const { id, instanceId } of gone)
    log.warn({ session_id: id, instance_id: instanceId }, 'the instance of a silent relay is gone')
  return gone
}
