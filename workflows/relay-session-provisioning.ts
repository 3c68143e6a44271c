/** Provisioning: creates the session's instance in the background; each result comes back as an event of the session. */
import { ActivityFailure, ApplicationFailure, isCancellation, proxyActivities, sleep } from '@temporalio/workflow'
import type { RelaySessionActivities } from '../activities/relay-sessions.ts'
import type { Event } from './relay-session-state.ts'

/**
 * The provider's own failures are counted below. Everything else, such as Postgres or the worker being away, is an outage of
 * ours: it is retried until the provisioning deadline cancels the activity.
 */
const { createInstance } = proxyActivities<RelaySessionActivities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '5s' },
  summary: 'create the relay instance, or adopt it',
})

const createsMax = 5
const backoffMillis = [500, 1000, 2000, 4000]

interface Provisioning {
  readonly sessionId: string
  /** Whether an instance is still to be created. */
  readonly isNeeded: () => boolean
  /** Hands an event to the session, and resolves when it has been dealt with. */
  readonly settle: (event: Event) => Promise<void>
}

type Result = 'created' | 'ask_again' | 'failed' | 'refused'

/** @returns a function that creates the instance, and may be called again when the instance is gone before it reported. */
export function createProvisioning({ sessionId, isNeeded, settle }: Provisioning): () => Promise<void> {
  let failures = 0

  const create = async (): Promise<Result> => {
    try {
      const outcome = await createInstance({ sessionId })
      if (outcome.type === 'newer_command') {
        // The stop that kept it from creating may have been taken back by the time that the session acts on it.
        await settle({ type: 'command', ...outcome.command })
        return 'ask_again'
      }
      await settle({ type: 'bound', instanceId: outcome.instanceId })
      if (outcome.reported) await settle({ type: 'ready' })
      return 'created'
    } catch (error) {
      if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error
      return error.cause instanceof ApplicationFailure && error.cause.type === 'provider_refused' ? 'refused' : 'failed'
    }
  }

  const createUntilDone = async (): Promise<void> => {
    while (isNeeded()) {
      const result = await create()
      if (result === 'ask_again') continue
      // An instance that is created and then found gone has failed as well, and comes through here again.
      failures += 1
      if (result === 'created') return
      if (result === 'refused' || failures >= createsMax) return settle({ type: 'provision_failed' })
      await sleep(backoffMillis[failures - 1] ?? 4000, { summary: 'pause before the next create' })
    }
  }

  return async () => {
    try {
      if (failures >= createsMax) await settle({ type: 'provision_failed' })
      else await createUntilDone()
    } catch (error) {
      if (!isCancellation(error)) throw error
    }
  }
}
