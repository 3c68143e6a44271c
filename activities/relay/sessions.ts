/** The activities of a relay session workflow: write transitions, create the instance, destroy the instances. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../db/connection.ts'
import { bindInstance, listInstancesOfSession, markInstancesGone } from '../../db/fleet/instances.ts'
import { getStoredStreamToken } from '../../db/identity/users.ts'
import { hasReported } from '../../db/relay/health.ts'
import { findRelaySession } from '../../db/relay/sessions.ts'
import { openStreamToken } from '../../db/sealed-tokens.ts'
import { type ReserveOutcome, reserveInstance } from '../../db/transactions/reserve-instance.ts'
import {
  type StoredSessionState,
  type TransitionsOutcome,
  writeTransitions,
} from '../../db/transactions/write-transitions.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import { RelayProviderError } from '../../providers/relay/provider.ts'
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

export type CreateOutcome =
  | {
      readonly type: 'created'
      readonly instanceId: string
      /** Whether the instance has sent a health report already. */
      readonly hasReported: boolean
    }
  /** Nothing is created: the region is full, the session has a command to end, or is stopped. */
  | Extract<ReserveOutcome, { type: 'no_room' | 'newer_command' | 'not_wanted' }>

export type { StoredSessionState }

export interface WriteTransitionsRequest extends Omit<CountedTransitionsRequest, 'healthIntervalSeconds'> {
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
  /** Resolves when the provider shows no instance of the session. Safe to repeat. */
  destroyInstances(request: { sessionId: string }): Promise<void>
}

interface Deps {
  readonly config: Config
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

export function createRelaySessionActivities(deps: Deps): RelaySessionActivities {
  const { config, sql, sealing, providers, metrics, clockSkew } = deps
  const notify = createNotify({ sealing, siteUrl: config.siteUrl })

  return {
    writeTransitions: async (requested) => {
      clockSkew.observe('temporal', requested.at, Date.now())
      if (requested.cause === 'report_expected' && !(await awaitFirstReport(sql, requested.sessionId)))
        return { type: 'not_reported' }
      const request = { ...requested, healthIntervalSeconds: config.relay.healthIntervalSeconds }
      const outcome = await writeTransitions(sql, request, notify)
      if (outcome.type === 'stored' && outcome.isWritten) metrics.countTransitions(request, Date.now())
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
      const streamToken = openStreamToken(sealing, session.userId, stored)
      const launched = await launchInstance(deps, reserved.instance, {
        sessionId,
        region: session.region,
        streamToken,
      }).catch(failCreation)
      if (launched === undefined) return { type: 'not_wanted' }
      const { instanceId } = launched
      return { type: 'created', instanceId, hasReported: await bindInstance(sql, sessionId, instanceId) }
    },

    destroyInstances: async ({ sessionId }) => {
      const session = await findRelaySession(sql, sessionId)
      const stored = await listInstancesOfSession(sql, sessionId)
      const regions = session ? [session.region] : [...providers.keys()]
      await withHeartbeat(async () => {
        for (const region of regions) {
          const provider = providerOf(providers, region)
          const tagged = (await provider.list({ sessionId })).filter((instance) => instance.region === region)
          for (const { instanceId, providerId } of tagged) await provider.destroy(instanceId, providerId)
          for (const instance of stored.filter((row) => row.region === region)) await destroyProven(provider, instance)
          if ((await provider.list({ sessionId })).some((instance) => instance.region === region))
            throw new RelayProviderError('the instance still exists after its destruction')
        }
      })
      const instanceIds = stored.map(({ instanceId }) => instanceId)
      await markInstancesGone(sql, instanceIds)
    },
  }
}
