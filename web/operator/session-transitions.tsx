/** The transitions of a relay session on a time line. */
import { Instant } from '../time-text.tsx'
import type { OperatorSessionDetail } from './operator-replies.ts'

type Transition = OperatorSessionDetail['transitions'][number]

const looks: Readonly<Record<Transition['to'], string>> = {
  provisioning: '',
  active: 'good',
  grace: 'warn',
  stopped: '',
}

interface SessionTransitionsProps {
  readonly session: OperatorSessionDetail['session']
  readonly transitions: readonly Transition[]
}

export const SessionTransitions = ({ session, transitions }: SessionTransitionsProps) => (
  <section class="card" aria-labelledby="transitions">
    <h2 id="transitions">Transitions</h2>
    <ol class="timeline">
      <li>
        <p>
          <strong>provisioning</strong>
        </p>
        <p class="muted">
          by user, <Instant at={session.created_at} />
        </p>
      </li>
      {transitions.map((transition) => (
        <li
          key={`${transition.at} ${transition.to}`}
          class={looks[transition.to]}
          data-transition={`${transition.from} ${transition.to}`}
        >
          <p>
            <strong>{transition.to}</strong> <code>{transition.reason}</code>
          </p>
          <p class="muted">
            {`by ${transition.initiator}, `}
            <Instant at={transition.at} />
          </p>
          {transition.public_reason ? <p data-public-reason>Public reason: {transition.public_reason}</p> : null}
        </li>
      ))}
    </ol>
  </section>
)
