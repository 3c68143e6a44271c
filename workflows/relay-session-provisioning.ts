/**
 * Provisioning: creates the session's instance in the background, and another one that replaces it when it is lost.
 * Each result comes back as an event of the session.
 */
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  sleep,
} from '@temporalio/workflow'
import type { CreationFailure } from '../activities/fleet/instances.ts'
import type { RelaySessionActivities } from '../activities/relay/sessions.ts'
import {
  isAwaitingReplacement,
  type ProvisioningDetail,
  type RelaySessionEvent,
  type RelaySessionState,
} from '../domain/relay/session.ts'

/**
 * Only the provider's own failures are counted, below. Everything else, such as an outage of Postgres or of the worker,
 * is retried by Temporal until the provisioning deadline cancels the activity.
 */
const options = {
  startToCloseTimeout: '2m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '5s' },
} as const
const { createInstance } = proxyActivities<RelaySessionActivities>({
  ...options,
  summary: 'create or adopt the relay instance',
})
const { createReplacement } = proxyActivities<RelaySessionActivities>({
  ...options,
  summary: 'create or adopt the instance that replaces the lost one',
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
  /** Waits before the next attempt. */
  readonly pause: (millis: number, summary: string) => Promise<unknown>
  /** Called when no attempt follows. */
  readonly onFailed: (detail?: ProvisioningDetail | null) => Promise<void>
}

type Result =
  | { readonly type: 'created' }
  /** The state of the session decides on the next attempt. */
  | { readonly type: 'not_created' }
  /** The attempt does not count as a failure. */
  | { readonly type: 'wait'; readonly millisMin: number }
  | { readonly type: 'failed'; readonly isFinal: boolean; readonly detail: ProvisioningDetail | null }

/** Work in the background, in a scope that ends it. */
export interface BackgroundWork {
  /** Begins the work unless it runs or is not needed. To be called after each event. */
  continue(): void
  /** Resolves when the work has ended. None begins after it. */
  cancel(): Promise<void>
}

/** The creation of the session's first instance. It begins again when the instance is lost before its first report. */
export function createProvisioning(provisioning: Omit<Provisioning, 'pause'>): BackgroundWork {
  const scope = new CancellationScope()
  const pause = (millis: number, summary: string) => sleep(millis, { summary })
  const createOnce = createAttempts({ ...provisioning, pause }, attemptInstance)
  let running: Promise<void> | undefined
  const work: BackgroundWork = {
    continue: () => {
      // In a cancelled scope it would end at once, and begin again without end.
      if (!provisioning.isNeeded() || running !== undefined || scope.consideredCancelled) return
      running = scope.run(createOnce).then(() => {
        running = undefined
        work.continue()
      })
    },
    cancel: async () => {
      scope.cancel()
      await running
    },
  }
  return work
}

interface ReplacingWork extends BackgroundWork {
  isRunning(): boolean
  /** Ends a pause, and tries again where it had been given up. */
  hurry(): void
}

interface Replacing {
  readonly session: () => RelaySessionState
  readonly handle: (event: RelaySessionEvent) => Promise<void>
}

/**
 * The creation of an instance that replaces a lost one, in each grace for lost health. The grace goes on when it fails,
 * since the lost instance may still come back.
 */
export function createReplacing({ session, handle }: Replacing): ReplacingWork {
  let scope: CancellationScope | undefined
  let pausing: CancellationScope | undefined
  let running: Promise<void> | undefined
  /** The version of the session in whose grace no attempt follows. */
  let failedIn: number | undefined
  let isCancelled = false
  const isNeeded = () =>
    isAwaitingReplacement(session()) && !session().replacementId && failedIn !== session().version && !isCancelled
  const pause = async (millis: number, summary: string) => {
    const present = new CancellationScope()
    pausing = present
    await present
      .run(() => sleep(millis, { summary }))
      .catch((error: unknown) => {
        if (!isCancellation(error) || scope?.consideredCancelled) throw error
      })
  }
  const work = {
    continue: () => {
      // What still runs belongs to a grace that has ended, or to one whose instance was created by another run.
      if (!isNeeded()) scope?.cancel()
      if (!isNeeded() || running !== undefined) return
      const { sessionId, version } = session()
      const createOnce = createAttempts(
        {
          sessionId,
          isNeeded: () => isNeeded() && session().version === version,
          lostInstanceId: () => session().lostInstanceId ?? null,
          handle,
          pause,
          onFailed: async () => {
            failedIn = version
          },
        },
        attemptReplacement,
      )
      scope = new CancellationScope()
      running = scope.run(createOnce).then(() => {
        running = undefined
        work.continue()
      })
    },
    isRunning: () => running !== undefined,
    hurry: () => {
      failedIn = undefined
      pausing?.cancel()
    },
    cancel: async () => {
      isCancelled = true
      scope?.cancel()
      await running
    },
  }
  return work
}

type Attempt = (provisioning: Provisioning) => Promise<Result>

/** @returns a function that makes attempts until one succeeds or none may follow. */
function createAttempts(provisioning: Provisioning, attempt: Attempt): () => Promise<void> {
  const { isNeeded, onFailed, pause } = provisioning
  let failures = 0

  const createUntilDone = async (): Promise<void> => {
    let waits = 0
    while (isNeeded()) {
      const result = await attemptOnce(provisioning, attempt)
      if (result.type === 'not_created') continue
      if (result.type === 'wait') {
        const millis = Math.max(result.millisMin, Math.min(waitMillisMax, pauseMillisMin * 2 ** Math.min(waits, 10)))
        waits += 1
        await pause(millis, 'the provider limits calls or has no room')
        continue
      }
      // A creation is counted as well: when the instance is lost, it counts as a failure at the next call.
      failures += 1
      if (result.type === 'created') return
      if (result.isFinal || failures >= attemptsMax) return onFailed(result.detail)
      const millis = Math.min(pauseMillisMax, pauseMillisMin * 2 ** (failures - 1))
      await pause(millis, 'backoff before the next attempt')
    }
  }

  return async () => {
    try {
      if (failures >= attemptsMax) await onFailed()
      else await createUntilDone()
    } catch (error) {
      if (!isCancellation(error)) throw error
    }
  }
}

async function attemptOnce(provisioning: Provisioning, attempt: Attempt): Promise<Result> {
  try {
    return await attempt(provisioning)
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error
    return resultOf(error.cause)
  }
}

async function attemptInstance({ sessionId, lostInstanceId, handle }: Provisioning): Promise<Result> {
  const outcome = await createInstance({ sessionId, replaces: lostInstanceId() })
  if (outcome.type !== 'created') return answerNotCreated(outcome, handle)
  await handle({ type: 'bound', instanceId: outcome.instanceId })
  if (outcome.hasReported) await handle({ type: 'ready' })
  return { type: 'created' }
}

async function attemptReplacement({ sessionId, lostInstanceId, handle }: Provisioning): Promise<Result> {
  const outcome = await createReplacement({ sessionId, lostInstanceId: lostInstanceId() })
  if (outcome.type !== 'created') return answerNotCreated(outcome, handle)
  await handle({ type: 'replacement_created', instanceId: outcome.instanceId })
  return { type: 'created' }
}

type NotCreated = Exclude<Awaited<ReturnType<RelaySessionActivities['createInstance']>>, { type: 'created' }>

async function answerNotCreated(outcome: NotCreated, handle: Provisioning['handle']): Promise<Result> {
  switch (outcome.type) {
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
}

function resultOf(cause: unknown): Result {
  if (!(cause instanceof ApplicationFailure)) return { type: 'failed', isFinal: false, detail: null }
  const { detail = null, retryAfterSeconds = null } = (cause.details?.[0] ?? {}) as Partial<CreationFailure>
  if (cause.type === 'provider_throttled') return { type: 'wait', millisMin: (retryAfterSeconds ?? 0) * 1000 }
  return { type: 'failed', isFinal: cause.type === 'provider_refused', detail }
}
