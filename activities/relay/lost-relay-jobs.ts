/**
 * The job that finds out whether suspect relays are gone. Suspicion alone changes nothing: only the word of the
 * provider, or a relay's host that refuses the connection, is a proof. Everything else waits for the health timeout.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import {
  listGone,
  listNewRelays,
  listQuietSessions,
  listRelaysAfter,
  listSuspects,
  type ProbedRelay,
  recordGone,
  recordSuspicions,
} from '../../db/relay/health.ts'
import type { BoundSession } from '../../db/relay/missing-instances.ts'
import { claimSignals } from '../../db/relay/signals.ts'
import { heldReportSecondsMax, isLate, lateReportSeconds } from '../../domain/relay/health.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelaySessionWorkflows } from '../../workflows/relay-session-client.ts'
import type { RelayProviders } from '../fleet/relay-providers.ts'
import type { Job } from '../worker/jobs.ts'
import type { WorkerMetrics } from '../worker/metrics.ts'
import { restartWorkflow } from '../worker/workflow-restart-jobs.ts'
import { type ProbeAnswer, probeRelay } from './relay-probe.ts'

interface LostRelayJobDeps {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly relaySessions: RelaySessionWorkflows
  readonly providers: RelayProviders
  readonly metrics: Pick<WorkerMetrics, 'countGoneRelay'>
}

/** The most suspects of one run. The longest suspect ones come first. */
const suspectsMax = 200
const concurrentProbesMax = 32
const probes = 3
const probePauseMillis = 1_000
/** Relays that a worker probes for the first time in one run, so that it knows that they answer it. */
const introductionsMax = 64
/** Above the number of relays that a worker looks after. */
const knownMax = 20_000

/** Suspects in a cloud that one run asks for, since providers limit calls. An outage of a region has many suspects. */
const cloudSuspectsMax = 20
/** The time between two questions about one of them. */
const cloudPauseMillis = 5_000

/** What a worker remembers between two runs. */
interface Memory {
  /** The relays that have answered this worker, by instance: the one that answered last is last. */
  readonly answered: Map<string, ProbedRelay>
  /** When the provider was asked for a suspect last, by instance. */
  readonly askedAt: Map<string, number>
  /** The last of the sessions whose relays this worker has looked at, in the order of their ids. */
  cursor: string | null
}

export function lostRelayJobs(deps: LostRelayJobDeps): readonly Job[] {
  const { healthTimeoutSeconds } = deps.config.relay
  const memory: Memory = { answered: new Map(), askedAt: new Map(), cursor: null }
  return [
    {
      name: 'watch_relays',
      everySeconds: Math.max(0.25, Math.min(1, healthTimeoutSeconds / 20)),
      runSecondsMax: 60,
      run: () => watchRelays(deps, memory),
    },
  ]
}

async function watchRelays(deps: LostRelayJobDeps, memory: Memory): Promise<void> {
  const { sql, log, metrics } = deps
  // Signals that were lost are repeated.
  await signalGone(await listGone(sql, suspectsMax), deps)
  await suspectLateRelays(deps)
  const suspects = chooseDue(await listSuspects(sql, suspectsMax), deps, memory.askedAt)
  // All at once, since a probe mostly waits.
  const watched = suspects.map(async (relay) => {
    const proof = await findProof(relay, deps, memory.answered)
    if (proof === undefined) return
    log.warn({ session_id: relay.id, instance_id: relay.instanceId, proof }, 'a relay is gone')
    memory.answered.delete(relay.instanceId ?? '')
    metrics.countGoneRelay({ region: relay.region, proof })
    await recordGone(sql, relay)
    await signalGone([relay], deps)
  })
  await Promise.all([...watched, introduce(deps, memory)])
}

/** All of this machine, and some of those in a cloud. */
function chooseDue(
  suspects: readonly ProbedRelay[],
  { providers }: LostRelayJobDeps,
  askedAt: Map<string, number>,
): ProbedRelay[] {
  const now = Date.now()
  for (const [instanceId, at] of askedAt) if (now - at >= cloudPauseMillis) askedAt.delete(instanceId)
  const isLocal = ({ region }: ProbedRelay) => providers.get(region)?.hasSharedHost === true
  const inCloud = suspects
    .filter((relay) => !isLocal(relay) && !askedAt.has(relay.instanceId ?? ''))
    .slice(0, cloudSuspectsMax)
  for (const { instanceId } of inCloud) askedAt.set(instanceId ?? '', now)
  return [...suspects.filter(isLocal), ...inCloud]
}

async function signalGone(sessions: readonly BoundSession[], deps: LostRelayJobDeps): Promise<void> {
  const { sql, relaySessions } = deps
  const claimed = new Set(
    await claimSignals(
      sql,
      sessions.map(({ id }) => id),
    ),
  )
  for (const { id, instanceId } of sessions) {
    if (!claimed.has(id)) continue
    if (!(await relaySessions.relayGone(id, instanceId ?? ''))) await restartWorkflow(id, deps)
  }
}

/** Stores which relays are late with a report that they hold open. */
async function suspectLateRelays({ sql, config }: LostRelayJobDeps): Promise<void> {
  const { healthTimeoutSeconds } = config.relay
  const lateSeconds = heldReportSecondsMax(healthTimeoutSeconds) + lateReportSeconds(healthTimeoutSeconds)
  const quiet = await listQuietSessions(sql, lateSeconds)
  const late = quiet.filter((session) => session.isHeld && isLate(session, healthTimeoutSeconds))
  const suspicions = late.map(({ id, instanceId }) => ({ id, instanceId, quietSeconds: lateSeconds }))
  if (suspicions.length > 0) await recordSuspicions(sql, suspicions)
}

/** What proves that the relay is gone; undefined while nothing does. */
async function findProof(
  relay: ProbedRelay,
  { config, providers, log }: LostRelayJobDeps,
  answered: ReadonlyMap<string, ProbedRelay>,
): Promise<'provider' | 'refused' | undefined> {
  const { instanceId, region, providerId } = relay
  if (instanceId === null) return undefined
  const hasEnded = async () => {
    try {
      return await providers.get(region)?.hasEnded(instanceId, providerId)
    } catch (error) {
      log.warn({ err: error, region }, 'the provider could not say whether a suspect relay has ended')
      return false
    }
  }
  const arePrivateAllowed = isPrivateAllowed(config, region)
  for (let attempt = 1; ; attempt += 1) {
    // A process may be seen for a moment after its end.
    if (await hasEnded()) return 'provider'
    if (!answered.has(instanceId) || (await probeRelay(relay, { arePrivateAllowed })) !== 'refused') return undefined
    if (attempt === probes) break
    // A relay that its system starts again at once is not gone.
    await sleep(probePauseMillis)
  }
  return (await isReachable(relay, config, answered)) ? 'refused' : undefined
}

/** Only the local provider has relays at such addresses. */
const isPrivateAllowed = ({ regions }: Pick<Config, 'regions'>, name: string): boolean =>
  regions.find(({ region }) => region === name)?.provider === 'local'

/** Whether this worker reaches another relay now, so that a refusal is not that of its own network. */
async function isReachable(
  { instanceId }: ProbedRelay,
  config: Pick<Config, 'regions'>,
  answered: ReadonlyMap<string, ProbedRelay>,
): Promise<boolean> {
  const others = [...answered.values()].filter((other) => other.instanceId !== instanceId).slice(-3)
  const answers = await Promise.all(
    others.map((other) => probeRelay(other, { arePrivateAllowed: isPrivateAllowed(config, other.region) })),
  )
  return answers.includes('answered')
}

/** Probes relays that have not answered this worker yet: new ones at once, and the others a few in each run. */
async function introduce({ sql, config }: LostRelayJobDeps, memory: Memory): Promise<void> {
  const { answered } = memory
  const [recent, next] = await Promise.all([
    listNewRelays(sql, introductionsMax),
    listRelaysAfter(sql, memory.cursor, introductionsMax),
  ])
  memory.cursor = next.length < introductionsMax ? null : (next.at(-1)?.id ?? null)
  const byInstance = new Map([...recent, ...next].map((relay) => [relay.instanceId ?? '', relay]))
  const unknown = [...byInstance.values()].filter(({ instanceId }) => !answered.has(instanceId ?? ''))
  const limit = pLimit(concurrentProbesMax)
  await limit.map(unknown, async (relay) => {
    const answer: ProbeAnswer = await probeRelay(relay, { arePrivateAllowed: isPrivateAllowed(config, relay.region) })
    if (answer === 'answered' && relay.instanceId !== null) answered.set(relay.instanceId, relay)
  })
  for (const instanceId of answered.keys()) {
    if (answered.size <= knownMax) break
    answered.delete(instanceId)
  }
}
