/** The activities of a relay session workflow: write transitions, create the instance, destroy the instances. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../db/connection.ts'
import {
  bindInstance,
  findInstance,
  listInstancesOfSession,
  markInstanceGone,
  markInstancesGone,
} from '../../db/fleet/instances.ts'
import { findKeptPorts, recordPorts } from '../../db/fleet/kept-ports.ts'
import { findRegionUse } from '../../db/fleet/regions.ts'
import { keepAddress, type RelayAddress } from '../../db/fleet/relay-addresses.ts'
import { listNamedInstances } from '../../db/fleet/relay-names.ts'
import { getStoredStreamToken } from '../../db/identity/users.ts'
import { hasReported } from '../../db/relay/health.ts'
import { findRelaySession, type RelaySessionRow } from '../../db/relay/sessions.ts'
import { hashRelayStreamToken } from '../../db/sealed-tokens.ts'
import { type GiveUpOutcome, giveUpInstance } from '../../db/transactions/give-up-instance.ts'
import { type ReserveOutcome, reserveInstance } from '../../db/transactions/reserve-instance.ts'
import { type ReserveReplacementOutcome, reserveReplacement } from '../../db/transactions/reserve-replacement.ts'
import {
  type StoredSessionState,
  type TransitionsOutcome,
  writeTransitions,
} from '../../db/transactions/write-transitions.ts'
import { orderByRoom } from '../../domain/fleet/regions.ts'
import { portNames, type RelayPorts } from '../../domain/relay/ports.ts'
import { isInGraceFor } from '../../domain/relay/session.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import { type RelayInstance, RelayProviderError } from '../../providers/relay/provider.ts'
import {
  destroyProven,
  failCreation,
  launchInstance,
  placementOf,
  providerOf,
  withHeartbeat,
} from '../fleet/instances.ts'
import type { RelayProviders } from '../fleet/relay-providers.ts'
import { createNotify } from '../notifications/notifier.ts'
import type { ClockSkew } from '../worker/clock-skew.ts'
import type { CountedTransitionsRequest, WorkerMetrics } from '../worker/metrics.ts'

/** Much longer than a warm relay needs to report with its session. Messages to the workflow wait meanwhile. */
const firstReportMillisMax = 400
const firstReportPollMillis = 4
const unnamedMillisMax = 10_000
const unnamedPollMillis = 250

export type CreateOutcome =
  | {
      readonly type: 'created'
      readonly instanceId: string
      /** Whether the instance has sent a health report already. */
      readonly hasReported: boolean
    }
  /** Nothing is created: the region is full, the session has a command to end, or is stopped. */
  | Extract<ReserveOutcome, { type: 'no_room' | 'newer_command' | 'not_wanted' }>

export type CreateReplacementOutcome =
  | { readonly type: 'created'; readonly instanceId: string }
  | Extract<ReserveReplacementOutcome, { type: 'no_room' | 'newer_command' | 'not_wanted' }>

export type { StoredSessionState }

export interface WriteTransitionsRequest
  extends Omit<CountedTransitionsRequest, 'healthIntervalSeconds' | 'trialSeconds'> {
  /** When the workflow made the request, by Temporal's clock in milliseconds. */
  readonly at: number
}

export interface RelaySessionActivities {
  /** See {@link writeTransitions}; also counts the transitions, and waits for an expected report. */
  writeTransitions(request: WriteTransitionsRequest): Promise<TransitionsOutcome>
  /**
   * Finds, creates or adopts the session's instance and binds it. Safe to repeat.
   * @param request.replaces the instance that the session had and lost.
   */
  createInstance(request: { sessionId: string; replaces?: string | null }): Promise<CreateOutcome>
  /**
   * Finds, creates or adopts the instance that is to take over from a lost one. It is bound by its first report. Safe
   * to repeat.
   * @param request.lostInstanceId an earlier replacement that did not report.
   */
  createReplacement(request: { sessionId: string; lostInstanceId?: string | null }): Promise<CreateReplacementOutcome>
  /** Resolves when the provider shows no instance of the session. Safe to repeat. */
  destroyInstances(request: { sessionId: string }): Promise<void>
}

interface Deps {
  readonly config: Config
  readonly log: Logger
  readonly sql: Database
  readonly sealing: Sealing
  readonly providers: RelayProviders
  readonly metrics: WorkerMetrics
  readonly clockSkew: ClockSkew
}

/** @returns whether the bound instance has reported. */
async function awaitFirstReport(sql: Database, sessionId: string): Promise<boolean> {
  const until = Date.now() + firstReportMillisMax
  while (!(await hasReported(sql, sessionId))) {
    if (Date.now() > until) return false
    await sleep(firstReportPollMillis)
  }
  return true
}

/** The job `update_names` needs a second or two. Where it fails, the activity is repeated. */
async function awaitUnnamed(sql: Database, instanceIds: readonly string[]): Promise<void> {
  const until = Date.now() + unnamedMillisMax
  while ((await listNamedInstances(sql, instanceIds)).size > 0) {
    if (Date.now() > until) throw new RelayProviderError('a name still leads to the address of the relay')
    await sleep(unnamedPollMillis)
  }
}

/**
 * Reserves the replacement in the region of the session, or where that has no room and the session may move, in the one
 * with the most free places.
 */
async function reserveSomewhere(
  { config, sql }: Deps,
  session: RelaySessionRow,
  { lostInstanceId, mustBeNew }: { readonly lostInstanceId: string | null; readonly mustBeNew: boolean },
): Promise<ReserveReplacementOutcome> {
  const reserveIn = (region: string, isNew = false): Promise<ReserveReplacementOutcome> => {
    const placement = placementOf(config, region)
    const newInstanceId = createInstanceId(placement.provider)
    const request = { sessionId: session.id, lostInstanceId, newInstanceId, placement, mustBeNew: isNew }
    return reserveReplacement(sql, request)
  }
  const asWished = await reserveIn(session.region, mustBeNew)
  // A warm instance with another address is better than none.
  const atHome = asWished.type === 'no_room' && mustBeNew ? await reserveIn(session.region) : asWished
  if (atHome.type !== 'no_room' || !session.mayMove) return atHome
  const others = config.regions.filter(({ region }) => region !== session.region)
  const uses = await Promise.all(others.map(({ region }) => findRegionUse(sql, region)))
  for (const { region } of orderByRoom(others, uses)) {
    const elsewhere = await reserveIn(region)
    if (elsewhere.type !== 'no_room') return elsewhere
  }
  return atHome
}

/**
 * Ends the lost instance that has what the next one needs and cannot get from one that exists: the ports of their
 * host, or an address that cannot move.
 */
async function endHolder(
  { sql, providers }: Deps,
  { id, instanceId: bound, region }: RelaySessionRow,
  address: RelayAddress | undefined,
  lostInstanceId: string | null,
): Promise<GiveUpOutcome> {
  const provider = providers.get(region)
  const holdsAddress = (instanceId: string | null) => address?.canMove === false && address.instanceId === instanceId
  const holder = provider?.hasSharedHost ? bound : ([bound, lostInstanceId].find(holdsAddress) ?? null)
  const instance = holder === null ? undefined : await findInstance(sql, holder)
  if (!provider || !instance || instance.isGone) return 'given_up'
  const outcome = await giveUpInstance(sql, id, instance.instanceId)
  if (outcome !== 'given_up') return outcome
  await withHeartbeat(() => destroyProven(provider, instance)).catch(failCreation)
  await markInstanceGone(sql, instance.instanceId)
  return outcome
}

function warnOfOtherPorts({ instanceId, endpoint }: RelayInstance, wanted: RelayPorts | null, log: Logger): void {
  if (wanted !== null && portNames.some((name) => wanted[name] !== endpoint[name]))
    log.warn({ instance_id: instanceId }, 'a relay has other ports than its connection had: one of them was taken')
}

export function createRelaySessionActivities(deps: Deps): RelaySessionActivities {
  const { config, log, sql, sealing, providers, metrics, clockSkew } = deps
  const notify = createNotify({ sealing, siteUrl: config.siteUrl })

  return {
    writeTransitions: async (requested) => {
      clockSkew.observe('temporal', requested.at, Date.now())
      if (requested.cause === 'report_expected' && !(await awaitFirstReport(sql, requested.sessionId)))
        return { type: 'not_reported' }
      const { healthIntervalSeconds } = config.relay
      const request = { ...requested, healthIntervalSeconds, trialSeconds: config.timeBank.trialSeconds }
      const outcome = await writeTransitions(sql, request, notify)
      if (outcome.type !== 'stored') return outcome
      if (outcome.isWritten) metrics.countTransitions(request, Date.now())
      const { awaySeconds } = outcome
      if (awaySeconds !== undefined) metrics.countReplacement({ region: request.region, awaySeconds })
      return outcome
    },

    createInstance: async ({ sessionId, replaces = null }) => {
      const session = await findRelaySession(sql, sessionId)
      if (!session || session.state === 'stopped') return { type: 'not_wanted' }
      const placement = placementOf(config, session.region)
      const newInstanceId = createInstanceId(placement.provider)
      const reserved = await reserveInstance(sql, { sessionId, replaces, newInstanceId, placement })
      if (reserved.type === 'bound') return { ...reserved, type: 'created' }
      if (reserved.type !== 'reserved') return reserved
      const stored = await getStoredStreamToken(sql, session.userId)
      const streamTokenHash = hashRelayStreamToken(sealing, { sessionId, userId: session.userId }, stored)
      const ports = await findKeptPorts(sql, sessionId)
      const target = { sessionId, region: session.region, streamTokenHash, binding: 1, ports }
      const launched = await launchInstance(deps, reserved.instance, target).catch(failCreation)
      if (launched === undefined) return { type: 'not_wanted' }
      const { instanceId } = launched
      const hasReported = await bindInstance(sql, sessionId, instanceId)
      await recordPorts(sql, instanceId, null)
      warnOfOtherPorts(launched, ports, log)
      return { type: 'created', instanceId, hasReported }
    },

    createReplacement: async ({ sessionId, lostInstanceId = null }) => {
      const session = await findRelaySession(sql, sessionId)
      if (!session || !isInGraceFor(session, 'health_lost')) return { type: 'not_wanted' }
      const address = await keepAddress(sql, sessionId)
      const mustBeNew = address?.canMove === false
      // Its session is active in a moment, or this attempt is repeated after a pause.
      if ((await endHolder(deps, session, address, lostInstanceId)) === 'came_back') return { type: 'no_room' }
      const reserved = await reserveSomewhere(deps, session, { lostInstanceId, mustBeNew })
      if (reserved.type !== 'reserved') return reserved
      const { instance, binding, region } = reserved
      const stored = await getStoredStreamToken(sql, session.userId)
      const streamTokenHash = hashRelayStreamToken(sealing, { sessionId, userId: session.userId }, stored)
      const ports = await findKeptPorts(sql, sessionId)
      const addressId = mustBeNew && address.region === region ? address.addressId : null
      const target = { sessionId, region, streamTokenHash, binding, ports, addressId }
      const launched = await launchInstance(deps, instance, target).catch(failCreation)
      if (launched === undefined) return { type: 'not_wanted' }
      // The connection gets its ports with its first report.
      warnOfOtherPorts(launched, ports, log)
      return { type: 'created', instanceId: launched.instanceId }
    },

    destroyInstances: async ({ sessionId }) => {
      const session = await findRelaySession(sql, sessionId)
      const stored = await listInstancesOfSession(sql, sessionId)
      // A replacement may have been reserved in another region.
      const regions = session
        ? new Set([session.region, ...stored.map(({ region }) => region)])
        : new Set(providers.keys())
      const instanceIds = stored.map(({ instanceId }) => instanceId)
      await withHeartbeat(async () => {
        if (config.relayNames !== null) await awaitUnnamed(sql, instanceIds)
        for (const region of regions) {
          const provider = providerOf(providers, region)
          const tagged = (await provider.list({ sessionId })).filter((instance) => instance.region === region)
          for (const { instanceId, providerId } of tagged) await provider.destroy(instanceId, providerId)
          for (const instance of stored.filter((row) => row.region === region)) await destroyProven(provider, instance)
          if ((await provider.list({ sessionId })).some((instance) => instance.region === region))
            throw new RelayProviderError('the instance still exists after its destruction')
        }
      })
      await markInstancesGone(sql, instanceIds)
    },
  }
}
