/**
 * Provisioning: creates the session's instance in the background. Each result comes back as an event of the session.
 */
import { ActivityFailure, ApplicationFailure, isCancellation, proxyActivities, sleep } from '@temporalio/workflow'
import type { CreationFailure } from '../activities/fleet/instances.ts'
import type { RelaySessionActivities } from '../activities/relay/sessions.ts'
import type { ProvisioningDetail, RelaySessionEvent } from '../domain/relay/session.ts'

/**
 * Only the provider's own failures are counted, below. Everything else, such as an outage of Postgres or of the worker,
 * is retried by Temporal until the provisioning deadline cancels the activity.
 */
const { createInstance } = proxyActivities<RelaySessionActivities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '5s' },
  summary: 'create or adopt the relay instance',
})

/** Failed attempts after which provisioning ends. They take about 20 seconds with their pauses. */
const attemptsMax = 7
const pauseMillisMin = 500
const pauseMillisMax = 8_000
/** The pauses while the provider limits calls, or the region has no room. Only the provisioning deadline ends them. */
const waitMillisMax = 15_000

interface Provisioning {
  readonly sessionId: string
  /** Whether the session still needs an instance. */
  readonly isNeeded: () => boolean
  /** The instance that the session had and lost. */
  readonly lostInstanceId: () => string | null
  /** Enqueues an event of the session and resolves when it is handled. */
  readonly handle: (event: RelaySessionEvent) => Promise<void>
}

type Result =
  | { readonly type: 'created' }
  /** The state of the session decides on the next attempt. */
  | { readonly type: 'not_created' }
  /** The attempt does not count as a failure. */
  | { readonly type: 'wait'; readonly millisMin: number }
  | { readonly type: 'failed'; readonly isFinal: boolean; readonly detail: ProvisioningDetail | null }

/**
 * @returns a function that creates the instance. It is called again when the instance is lost before its first report.
 */
export function createProvisioning(provisioning: Provisioning): () => Promise<void> {
  const { isNeeded, handle } = provisioning
  let failures = 0

  const createUntilDone = async (): Promise<void> => {
    let waits = 0
    while (isNeeded()) {
      const result = await attempt(provisioning)
      if (result.type === 'not_created') continue
      if (result.type === 'wait') {
        const millis = Math.max(result.millisMin, Math.min(waitMillisMax, pauseMillisMin * 2 ** Math.min(waits, 10)))
        waits += 1
        await sleep(millis, { summary: 'the provider limits calls or has no room' })
        continue
      }
      // A creation is counted as well: when the instance is lost, it counts as a failure at the next call.
      failures += 1
      if (result.type === 'created') return
      if (result.isFinal || failures >= attemptsMax) return handle({ type: 'provision_failed', detail: result.detail })
      const millis = Math.min(pauseMillisMax, pauseMillisMin * 2 ** (failures - 1))
      await sleep(millis, { summary: 'backoff before the next attempt' })
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

async function attempt({ sessionId, lostInstanceId, handle }: Provisioning): Promise<Result> {
  try {
    const outcome = await createInstance({ sessionId, replaces: lostInstanceId() })
    switch (outcome.type) {
      case 'created':
        await handle({ type: 'bound', instanceId: outcome.instanceId })
        if (outcome.hasReported) await handle({ type: 'ready' })
        return { type: 'created' }
      case 'no_room':
        return { type: 'wait', millisMin: 0 }
      case 'newer_command':
        // The session may need an instance again by the time that this command has been carried out.
        await handle({ type: 'command', ...outcome.command })
        return { type: 'not_created' }
      case 'not_wanted':
        await handle({ type: 'wake' })
        return { type: 'not_created' }
    }
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error
    return resultOf(error.cause)
  }
}

function resultOf(cause: unknown): Result {
  if (!(cause instanceof ApplicationFailure)) return { type: 'failed', isFinal: false, detail: null }
  const { detail = null, retryAfterSeconds = null } = (cause.details?.[0] ?? {}) as Partial<CreationFailure>
  if (cause.type === 'provider_throttled') return { type: 'wait', millisMin: (retryAfterSeconds ?? 0) * 1000 }
  return { type: 'failed', isFinal: cause.type === 'provider_refused', detail }
}
