/** The row of a relay session. */
import { Facts, None } from './facts.tsx'
import { Identifier, InstanceLink, UserLink } from './identifier.tsx'
import type { OperatorSessionDetail } from './operator-replies.ts'

type Session = OperatorSessionDetail['session']

export const SessionFacts = ({ session }: { readonly session: Session }) => (
  <section class="card" aria-labelledby="facts" data-session={session.session_id} data-state={session.state}>
    <h2 id="facts">Session</h2>
    <Facts
      values={{
        Id: <Identifier value={session.session_id} />,
        Account: <UserLink of={session} />,
        State: <State session={session} />,
        Region: session.region,
        Instance: <InstanceLink id={session.instance_id} />,
        Host: session.relay_host_masked ?? <None />,
      }}
      times={{
        Created: session.created_at,
        'First active': session.active_at,
        'Grace ends': session.grace_ends_at,
        Ended: session.stopped_at,
        'Ends at the latest': session.ends_at,
      }}
    />
  </section>
)

const State = ({ session: { state, reason, detail } }: { readonly session: Session }) => (
  <>
    {state}, <code>{reason}</code>
    {detail === null ? null : (
      <>
        , <code>{detail}</code>
      </>
    )}
  </>
)
