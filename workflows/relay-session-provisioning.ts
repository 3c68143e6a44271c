/** Provisioning: creates the session's instance in the background. Each result comes back as an event of the session. */
import { ActivityFailure, ApplicationFailure, isCancellation, proxyActivities, sleep } from '@temporalio/workflow'
import type { RelaySessionActivities } from '../activities/relay-sessions.ts'
import type { RelaySessionEvent } from '../domain/relay-session.ts'

/**
 * Only the provider's own failures are counted, below. Everything else, such as an outage of Postgres or of the worker, is
 * retried by Temporal until the provisioning deadline cancels the activity.
 */
const { createInstance } = proxyActivities<RelaySessionActivities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '5s' },
  summary: 'create or adopt the relay instance',
})

const attemptsMax = 5
const backoffMillis = [500, 1000, 2000, 4000]

interface Provisioning {
  readonly sessionId: string
  /** Whether the session still needs an instance. */
  readonly isNeeded: () => boolean
  /** Enqueues an event of the session and resolves when it is handled. */
  readonly handle: (event: RelaySessionEvent) => Promise<void>
}

type Result = 'created' | 'not_created' | 'failed' | 'refused'

/** @returns a function that creates the instance. It is called again when the instance is lost before its first report. */
export function createProvisioning({ sessionId, isNeeded, handle }: Provisioning): () => Promise<void> {
  let failures = 0

  const attempt = async (): Promise<Result> => {
    try {
      const outcome = await createInstance({ sessionId })
      switch (outcome.type) {
        case 'created':
          await handle({ type: 'bound', instanceId: outcome.instanceId })
          if (outcome.hasReported) await handle({ type: 'ready' })
          return 'created'
        case 'newer_command':
          // The session may need an instance again by the time that this command has been carried out.
          await handle({ type: 'command', ...outcome.command })
          return 'not_created'
        case 'not_wanted':
          await handle({ type: 'wake' })
          return 'not_created'
      }
    } catch (error) {
      if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error
      return error.cause instanceof ApplicationFailure && error.cause.type === 'provider_refused' ? 'refused' : 'failed'
    }
  }

  const createUntilDone = async (): Promise<void> => {
    while (isNeeded()) {
      const result = await attempt()
      if (result === 'not_created') continue
      // A creation is counted as well: when the instance is lost, it counts as a failure at the next call.
      failures += 1
      if (result === 'created') return
      if (result === 'refused' || failures >= attemptsMax) return handle({ type: 'provision_failed' })
      await sleep(backoffMillis[failures - 1] ?? 4000, { summary: 'backoff before the next attempt' })
    }
  }

  return async () => {
    try {
      if (failures >= attemptsMax) await handle({ type: 'provision_failed' })
      else await createUntilDone()
    } catch (error) {
      if (!isCancellation(error)) throw error
    }
  }
}
