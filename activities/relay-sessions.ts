/** The activities of a relay session workflow: write transitions, create the instance, destroy the instances. */
import { Context } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import type { Database } from '../db/connection.ts'
import { markInstancesGone } from '../db/instances.ts'
import { bindInstance, findRelaySession } from '../db/relay-sessions.ts'
import {
  type AcceptedCommand,
  type StoredSessionState,
  type TransitionsOutcome,
  writeTransitions,
} from '../db/relay-transitions.ts'
import { openStreamToken } from '../db/sealed-tokens.ts'
import { getStoredStreamToken } from '../db/users.ts'
import type { Config } from '../platform/config/config.ts'
import type { Sealing } from '../platform/sealing.ts'
import { type RelayProvider, RelayProviderError } from '../providers/relay/provider.ts'
import type { ClockSkew } from './worker/clock-skew.ts'
import type { CountedTransitionsRequest, WorkerMetrics } from './worker/metrics.ts'

/** The hidden soft cap on a relay's throughput (specification, "Limits"). */
const capMbps = 48
const heartbeatMillis = 1000

export type CreateOutcome =
  | {
      readonly type: 'created'
      readonly instanceId: string
      /** Whether the instance has sent a health report already. */
      readonly hasReported: boolean
    }
  /** Nothing is created: the session has a command to end. */
  | { readonly type: 'newer_command'; readonly command: AcceptedCommand }
  /** Nothing is created: the session is stopped, or was deleted with its account. */
  | { readonly type: 'not_wanted' }

export type { StoredSessionState }

export interface WriteTransitionsRequest extends Omit<CountedTransitionsRequest, 'healthIntervalSeconds'> {
  /** When the workflow made the request, by Temporal's clock in milliseconds. */
  readonly at: number
}

export interface RelaySessionActivities {
  /** See {@link writeTransitions}; also counts the transitions. */
  writeTransitions(request: WriteTransitionsRequest): Promise<TransitionsOutcome>
  /** Creates or adopts the session's instance and binds it. Safe to repeat. */
  createInstance(request: { sessionId: string }): Promise<CreateOutcome>
  /** Resolves when the provider lists no instance of the session. Safe to repeat. */
  destroyInstances(request: { sessionId: string }): Promise<void>
}

interface Deps {
  readonly config: Config
  readonly sql: Database
  readonly sealing: Sealing
  readonly providers: ReadonlyMap<string, RelayProvider>
  readonly metrics: WorkerMetrics
  readonly clockSkew: ClockSkew
}

export function createRelaySessionActivities(deps: Deps): RelaySessionActivities {
  const { config, sql, sealing, providers, metrics, clockSkew } = deps
  const providerOf = (region: string): RelayProvider => {
    const provider = providers.get(region)
    if (provider) return provider
    throw new RelayProviderError(`region ${region} is not in SVC_REGIONS: put it back until its relays are gone`)
  }

  return {
    writeTransitions: async (requested) => {
      clockSkew.observe('temporal', requested.at, Date.now())
      const request = { ...requested, healthIntervalSeconds: config.relay.healthIntervalSeconds }
      const outcome = await writeTransitions(sql, request)
      if (outcome.type === 'stored' && outcome.isWritten) metrics.countTransitions(request, Date.now())
      return outcome
    },

    createInstance: async ({ sessionId }) => {
      const session = await findRelaySession(sql, sessionId)
      if (!session || session.state === 'stopped') return { type: 'not_wanted' }
      const { userId, region, command, commandSeq: seq, commandInitiator: initiator } = session
      if (command !== 'run') return { type: 'newer_command', command: { seq, command, initiator } }
      const [relayAuthSecret = ''] = config.relayAuthSecrets
      const { healthIntervalSeconds, engine, srtPassphrase, sls } = config.relay
      const streamToken = openStreamToken(sealing, userId, await getStoredStreamToken(sql, userId))
      const spec = {
        sessionId,
        region,
        streamToken,
        apiUrl: config.apiUrl,
        relayAuthSecret,
        capMbps,
        healthIntervalSeconds,
        engine,
        srtPassphrase,
        sls,
      }
      const instance = await withHeartbeat((signal) => providerOf(region).create(spec, signal)).catch(failCreation)
      const { instanceId, endpoint } = instance
      return {
        type: 'created',
        instanceId,
        hasReported: await bindInstance(sql, sessionId, { instanceId, ...endpoint }),
      }
    },

    destroyInstances: async ({ sessionId }) => {
      const session = await findRelaySession(sql, sessionId)
      const candidates = session ? [providerOf(session.region)] : [...providers.values()]
      await withHeartbeat(async () => {
        for (const provider of candidates) {
          for (const instance of await provider.list({ sessionId })) await provider.destroy(instance.instanceId)
          if ((await provider.list({ sessionId })).length > 0)
            throw new RelayProviderError('the instance still exists after its destruction')
        }
      })
      await markInstancesGone(sql, sessionId)
    },
  }
}

/**
 * The workflow counts the provider's failures and gives up after a number of them. All other errors, such as an outage of
 * Postgres, are retried by Temporal without being counted.
 */
function failCreation(error: unknown): never {
  if (!(error instanceof RelayProviderError)) throw error
  throw ApplicationFailure.nonRetryable(error.message, error.permanent ? 'provider_refused' : 'provider_failed')
}

/** Runs a provider call that can be cancelled, and sends heartbeats to Temporal until it ends. */
async function withHeartbeat<Value>(call: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
  const { cancellationSignal, cancelled, heartbeat } = Context.current()
  const timer = setInterval(() => heartbeat(), heartbeatMillis)
  try {
    // A provider call that ignores its signal is abandoned. An instance that it still creates has the session's tag and is destroyed.
    return await Promise.race([call(cancellationSignal), cancelled])
  } finally {
    clearInterval(timer)
  }
}
