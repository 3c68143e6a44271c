/** The workflow of a relay session, compared with its row. */
import { DateTime } from '../time-text.tsx'
import { Comparison } from './comparison.tsx'
import { Identifier } from './identifier.tsx'
import type { OperatorSessionDetail } from './operator-replies.ts'

export const SessionWorkflow = ({ detail }: { readonly detail: OperatorSessionDetail }) => {
  const { session, live } = detail
  return (
    <section class="card" aria-labelledby="workflow" data-workflow={live ? 'answered' : 'silent'}>
      <div class="row apart">
        <h2 id="workflow">Workflow</h2>
        <a class="link" href={detail.temporal_ui_url} rel="noreferrer">
          Open in Temporal
        </a>
      </div>
      <p>
        <Identifier value={detail.workflow_id} />
      </p>
      {live === null ? (
        <p class={session.state === 'stopped' ? 'muted' : 'warning'}>
          {session.state === 'stopped'
            ? 'The workflow of an ended session may no longer answer.'
            : 'The workflow did not answer in two seconds. Check the workers.'}
        </p>
      ) : (
        <Comparison
          label="Row and workflow"
          values={[
            { label: 'State', stored: session.state, live: live.state },
            { label: 'Reason', stored: session.reason, live: live.reason },
            { label: 'Instance', stored: session.instance_id, live: live.instance_id, render: identifier },
          ]}
        />
      )}
      {live === null ? null : (
        <dl class="facts">
          <dt>Next deadline</dt>
          <dd>{live.deadline_at === null ? 'none' : <DateTime at={live.deadline_at} />}</dd>
          <dt>Longest session ends</dt>
          <dd>
            <DateTime at={live.longest_at} />
          </dd>
          <dt>Transitions</dt>
          <dd>{live.version}</dd>
          <dt>Commands carried out</dt>
          <dd>{live.command_seq}</dd>
        </dl>
      )}
    </section>
  )
}

const identifier = (value: string) => <Identifier value={value} />
