/** The row of a relay session. */
import { Identifier, InstanceLink, UserLink } from './identifier.tsx'
import type { OperatorSessionDetail } from './operator-replies.ts'
import { TimeFacts } from './time-facts.tsx'

type Session = OperatorSessionDetail['session']

export const SessionFacts = ({ session }: { readonly session: Session }) => (
  <section class="card" aria-labelledby="facts" data-session={session.session_id} data-state={session.state}>
    <h2 id="facts">Session</h2>
    <dl class="facts">
      <dt>Id</dt>
      <dd>
        <Identifier value={session.session_id} />
      </dd>
      <dt>Account</dt>
      <dd>
        <UserLink of={session} />
      </dd>
      <dt>State</dt>
      <dd>
        {session.state}, <code>{session.reason}</code>
        {session.detail === null ? null : (
          <>
            , <code>{session.detail}</code>
          </>
        )}
      </dd>
      <dt>Region</dt>
      <dd>{session.region}</dd>
      <dt>Instance</dt>
      <dd>
        <InstanceLink id={session.instance_id} />
      </dd>
      <dt>Host</dt>
      <dd>{session.relay_host_masked ?? <span class="muted">none</span>}</dd>
      <TimeFacts
        times={{
          Created: session.created_at,
          'First active': session.active_at,
          'Grace ends': session.grace_ends_at,
          Ended: session.stopped_at,
          'Ends at the latest': session.ends_at,
        }}
      />
    </dl>
  </section>
)
