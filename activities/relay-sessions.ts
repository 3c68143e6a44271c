/** What a relay session's actor does to the world: writes a move, creates an instance, destroys what is left. */
import { Context } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import type { Database } from '../db/connection.ts'
import { forgetInstances } from '../db/instances.ts'
import { type MovedRow, type MoveOutcome, moveSession } from '../db/relay-moves.ts'
import { bindInstance, type RelayActor, type RelayCommand, relaySessionById } from '../db/relay-sessions.ts'
import { openStreamToken } from '../db/sealed-tokens.ts'
import { storedStreamToken } from '../db/users.ts'
import type { Config } from '../platform/config/config.ts'
import type { Sealing } from '../platform/sealing.ts'
import { type RelayProvider, RelayProviderError } from '../providers/relay/provider.ts'
import type { ClockSkew } from './worker/clock-skew.ts'
import type { CountedMoveRequest, WorkerMetrics } from './worker/metrics.ts'

/** The hidden soft cap on a relay's throughput (specification, "Limits"). */
const capMbps = 48
const heartbeatMillis = 1000

export type CreateOutcome =
  | {
      readonly type: 'created'
      readonly instanceId: string /** Whether it has reported health already. */
      readonly reported: boolean
    }
  | { readonly type: 'newer_command'; readonly command: { seq: number; command: RelayCommand; actor: RelayActor } }

export type { MovedRow }

/** As the workflow asks for it. */
export interface RelayMoveRequest extends Omit<CountedMoveRequest, 'healthIntervalSeconds'> {
  /** When the workflow asked, by Temporal's clock in milliseconds. */
  readonly at: number
}

export interface RelaySessionActivities {
  /** One transaction; repeating it answers the row as the first try left it. */
  moveSession(request: RelayMoveRequest): Promise<MoveOutcome>
  /** Creates the session's instance, or adopts it, and binds it. Creates nothing for a session that is to end. */
  createInstance(request: { sessionId: string }): Promise<CreateOutcome>
  /** Resolves when the provider has nothing left of the session. */
  destroyInstances(request: { sessionId: string }): Promise<void>
}

interface Needs {
  readonly config: Config
  readonly sql: Database
  readonly sealing: Sealing
  readonly providers: ReadonlyMap<string, RelayProvider>
  readonly metrics: WorkerMetrics
  readonly clockSkew: ClockSkew
}

export function createRelaySessionActivities(needs: Needs): RelaySessionActivities {
  const { config, sql, sealing, providers, metrics, clockSkew } = needs
  const providerOf = (region: string): RelayProvider => {
    const provider = providers.get(region)
    if (provider) return provider
    throw new RelayProviderError(`region ${region} is not in SVC_REGIONS: put it back until its relays are gone`)
  }

  return {
    moveSession: async (asked) => {
      clockSkew.observe('temporal', asked.at, Date.now())
      const request = { ...asked, healthIntervalSeconds: config.relay.healthIntervalSeconds }
      const outcome = await moveSession(sql, request)
      if (outcome.type === 'row' && outcome.moved) metrics.countMoves(request, Date.now())
      return outcome
    },

    createInstance: async ({ sessionId }) => {
      const session = await relaySessionById(sql, sessionId)
      if (!session || session.state === 'stopped') {
        return {
          type: 'newer_command',
          command: { seq: Number.MAX_SAFE_INTEGER, command: 'disconnect', actor: 'system' },
        }
      }
      if (session.command !== 'run') {
        return {
          type: 'newer_command',
          command: { seq: session.commandSeq, command: session.command, actor: session.commandActor },
        }
      }
      const [relayAuthSecret = ''] = config.relayAuthSecrets
      const streamToken = openStreamToken(sealing, session.userId, await storedStreamToken(sql, session.userId))
      const spec = { sessionId, region: session.region, streamToken, apiUrl: config.apiUrl, relayAuthSecret, capMbps }
      const instance = await heartbeating((signal) =>
        providerOf(session.region).create(
          { ...spec, healthIntervalSeconds: config.relay.healthIntervalSeconds },
          signal,
        ),
      ).catch(failCreate)
      const reported = await bindInstance(sql, sessionId, { instanceId: instance.instanceId, ...instance.endpoint })
      return { type: 'created', instanceId: instance.instanceId, reported }
    },

    destroyInstances: async ({ sessionId }) => {
      const session = await relaySessionById(sql, sessionId)
      const places = session ? [providerOf(session.region)] : [...providers.values()]
      await heartbeating(async () => {
        for (const provider of places) {
          for (const instance of await provider.list({ sessionId })) await provider.destroy(instance.instanceId)
          if ((await provider.list({ sessionId })).length > 0)
            throw new RelayProviderError('the instance still exists after its destruction')
        }
      })
      await forgetInstances(sql, sessionId)
    },
  }
}

/**
 * The workflow counts the provider's failures and gives up after some. All other errors, such as Postgres being away, are
 * retried without being counted.
 */
function failCreate(error: unknown): never {
  if (!(error instanceof RelayProviderError)) throw error
  throw ApplicationFailure.nonRetryable(error.message, error.permanent ? 'provider_refused' : 'provider_failed')
}

/** Runs a provider call that can be cancelled, and tells Temporal all the while that this worker is still at it. */
async function heartbeating<Value>(call: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
  const { cancellationSignal, cancelled, heartbeat } = Context.current()
  const beating = setInterval(() => heartbeat(), heartbeatMillis)
  try {
    // A provider that does not heed the signal is not waited for: what it still makes carries the session's tag.
    return await Promise.race([call(cancellationSignal), cancelled])
  } finally {
    clearInterval(beating)
  }
}
