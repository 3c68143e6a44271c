/** The timers of a relay session. Their summaries are shown in the Temporal UI. */
import { CancellationScope, isCancellation, sleep } from '@temporalio/workflow'
import type { Millis } from '../domain/millis.ts'
import { latestEndAt, type RelaySessionEvent, type RelaySessionState } from '../domain/relay/session.ts'

/**
 * One timer for the current deadline, one for the end of a trial, and one for the longest duration.
 * @param enqueue appends the event of a timer that is due.
 * @returns `arm` sets the first two by the session's state.
 */
export function startTimers(initial: RelaySessionState, enqueue: (event: RelaySessionEvent) => void) {
  const deadline = createTimer(() => enqueue({ type: 'deadline' }))
  const trial = createTimer(() => enqueue({ type: 'trial_ended' }))
  const arm = ({ state, reason, deadlineAt, trialEndsAt = null }: RelaySessionState) => {
    deadline.set(deadlineAt, state === 'provisioning' ? 'provisioning deadline' : `grace after ${reason} ends`)
    trial.set(trialEndsAt, 'end of the trial')
  }

  arm(initial)
  startTimer(new CancellationScope(), latestEndAt(initial), 'longest duration', () => enqueue({ type: 'max_duration' }))
  return { arm }
}

/** A timer that is replaced by each other time that it is set to. */
function createTimer(onTime: () => void) {
  let armedFor: Millis | null = null
  let armed: CancellationScope | undefined

  const set = (at: Millis | null, summary: string): void => {
    if (at === armedFor) return
    armed?.cancel()
    armedFor = at
    if (at === null) return
    armed = new CancellationScope()
    startTimer(armed, at, summary, () => {
      armedFor = null
      onTime()
    })
  }
  return { set }
}

function startTimer(scope: CancellationScope, at: Millis, summary: string, onTime: () => void): void {
  scope
    .run(async () => {
      await sleep(Math.max(1, at - Date.now()), { summary })
      onTime()
    })
    .catch((error: unknown) => {
      if (!isCancellation(error)) throw error
    })
}
