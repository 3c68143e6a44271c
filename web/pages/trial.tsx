/** The free test time of an account without a plan: what remains, and what to do to use it. */
import type { Entitlement } from '../api-replies.ts'
import { formatDuration } from '../time-text.tsx'

export type Trial = NonNullable<Entitlement['trial']>

interface TrialProps {
  readonly trial: Trial
}

export const TrialTime = ({ trial }: TrialProps) => (
  <div data-trial={trial.state} data-trial-seconds={trial.remaining_seconds}>
    <TrialText trial={trial} />
  </div>
)

function TrialText({ trial: { state, remaining_seconds: left, total_seconds: total } }: TrialProps) {
  if (state === 'ended')
    return <p>Your free test time of {formatDuration(total)} is used up. Choose a plan to start relays again.</p>
  if (state === 'open')
    return (
      <p>
        <strong>{formatDuration(left)}</strong> of your {formatDuration(total)} of free test time left. It counts while
        a relay runs, one at a time. The relay ends with it, unless you choose a plan before.
      </p>
    )
  return (
    <>
      <p>
        You have {formatDuration(total)} of free test time. To use it, open the link that we mail to your address: the
        confirmation of another service is not enough.
      </p>
      <form method="post" action="/account/verification">
        <button type="submit" class="second">
          Send the link
        </button>
      </form>
    </>
  )
}
