/** The rounds that keep relay sessions true: commands that did not arrive, relays that fell silent, instances nobody owns. */
import pLimit from 'p-limit'
import type { Database } from '../db/connection.ts'
import { noteInstanceGone, orphansAmong } from '../db/instances.ts'
import {
  idleSessions,
  overdueSessions,
  overlookedReports,
  type SilentRegion,
  silentSessions,
} from '../db/relay-health.ts'
import { liveAmong, markCommandDelivered, undeliveredCommands } from '../db/relay-sessions.ts'
import type { Config } from '../platform/config.ts'
import type { Logger } from '../platform/log.ts'
import type { RelaySessionActors } from '../workflows/relay-session-client.ts'
import type { Job } from './jobs.ts'
import type { RelayProviders } from './relay-providers.ts'

export interface RelaySessionJobNeeds {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly actors: RelaySessionActors
  readonly providers: RelayProviders
}

/** An instance is destroyed as nobody's only when two rounds at least this far apart saw it so, in seconds. */
const orphanApartSeconds = 60
const roundMax = 500
/** Calls to Temporal under way at once, so that a storm queues instead of failing. */
const callsMax = 16

export const relaySessionJobs = (needs: RelaySessionJobNeeds): readonly Job[] => [
  { name: 'deliver_commands', everySeconds: 2, leaseSeconds: 120, run: () => deliverCommands(needs) },
  {
    name: 'watch_health',
    everySeconds: Math.max(0.25, Math.min(5, needs.config.relay.healthTimeoutSeconds / 4)),
    leaseSeconds: 60,
    run: () => watchHealth(needs),
  },
  { name: 'revive_actors', everySeconds: 30, leaseSeconds: 120, run: () => reviveActors(needs) },
  { name: 'sweep_orphans', everySeconds: 60, leaseSeconds: 300, run: () => sweepOrphans(needs) },
]

/** Sends accepted commands again that their actors are not known to have. */
async function deliverCommands(needs: RelaySessionJobNeeds): Promise<void> {
  const { sql, log, actors } = needs
  const limit = pLimit(callsMax)
  const sessions = await undeliveredCommands(sql, 3, roundMax)
  await Promise.all(
    sessions.map((session) =>
      limit(async () => {
        try {
          if (!(await actors.deliver(session))) await revive(session.id, needs)
          await markCommandDelivered(sql, session.id, session.command_seq)
        } catch (error) {
          log.warn({ err: error, session_id: session.id }, 'a command could not be delivered yet')
        }
      }),
    ),
  )
}

/** Gives live sessions a new actor when theirs was terminated or failed: a relay on the air is not left to itself. */
async function reviveActors(needs: RelaySessionJobNeeds): Promise<void> {
  for (const { id } of await liveAmong(needs.sql, await needs.actors.brokenOff())) await revive(id, needs)
}

async function revive(sessionId: string, { sql, log, actors }: RelaySessionJobNeeds): Promise<void> {
  for (const session of await liveAmong(sql, [sessionId])) {
    log.warn({ session_id: sessionId }, 'a live session has no actor any more, another one goes on')
    await actors.revive(session)
    await actors.deliver(session)
  }
}

/** Tells actors what the absence, the return or the overlooking of reports means for them. */
async function watchHealth(needs: RelaySessionJobNeeds): Promise<void> {
  const { config, sql, log, actors } = needs
  const limit = pLimit(callsMax)
  const tell = (sessionIds: readonly string[], signal: (sessionId: string) => Promise<boolean>) =>
    Promise.all(
      sessionIds.map((id) =>
        limit(async () => {
          if (!(await signal(id))) await revive(id, needs)
        }),
      ),
    )
  const { healthTimeoutSeconds, maxSessionSeconds } = config.relay

  for (const region of await silentSessions(sql, healthTimeoutSeconds)) {
    if (region.silent.length === 0) continue
    if (isRegionalOutage(region)) {
      log.error(
        { region: region.region, active: region.active, quiet: region.quiet },
        'most relays of a region fell silent at once',
      )
    } else await tell(region.silent, actors.healthLost)
  }
  const overlooked = await overlookedReports(sql, roundMax)
  await tell(overlooked.ready, actors.ready)
  await tell(overlooked.restored, actors.healthRestored)
  await tell(await idleSessions(sql, maxSessionSeconds), actors.idle)
  // Their actors should have ended them: a signal that changes nothing finds out whether there is one.
  await tell(await overdueSessions(sql, roundMax), actors.idle)
}

/**
 * When most of a region falls silent at once it is the region or the way to it, and stopping relays would make it worse.
 * Judged by those that are about to be silent, or the first few to be so would be given up before the others tell.
 */
const isRegionalOutage = ({ active, quiet }: SilentRegion): boolean => active >= 5 && quiet > active / 2

/** Destroys instances that no live session owns. A listing that fails condemns nothing. */
async function sweepOrphans({ config, sql, log, providers }: RelaySessionJobNeeds): Promise<void> {
  for (const { region } of config.regions) {
    const provider = providers.get(region)
    if (!provider) continue
    const seen = (await provider.list()).filter((instance) => instance.region === region)
    for (const instanceId of await orphansAmong(sql, region, seen, orphanApartSeconds)) {
      log.warn({ region, instance_id: instanceId }, 'destroying an instance that no session owns')
      await provider.destroy(instanceId)
      await noteInstanceGone(sql, instanceId)
    }
  }
}
