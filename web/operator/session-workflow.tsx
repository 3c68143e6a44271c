/** The workflow of a relay session, compared with its row. */
import { DateTime } from '../time-text.tsx'
import { Comparison } from './comparison.tsx'
import { Facts } from './facts.tsx'
import { Identifier } from './identifier.tsx'
import type { OperatorSessionDetail } from './operator-replies.ts'
import { WorkflowHead } from './workflow-head.tsx'

export const SessionWorkflow = ({ detail }: { readonly detail: OperatorSessionDetail }) => {
  const { session, live } = detail
  return (
    <section class="card" aria-labelledby="workflow" data-workflow={live ? 'answered' : 'silent'}>
      <WorkflowHead
        id="workflow"
        title="Workflow"
        workflowId={detail.workflow_id}
        temporalUiUrl={detail.temporal_ui_url}
      />
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
        <Facts
          values={{
            'Next deadline': live.deadline_at === null ? 'none' : <DateTime at={live.deadline_at} />,
            'Longest session ends': <DateTime at={live.longest_at} />,
            Transitions: live.version,
            'Commands carried out': live.command_seq,
          }}
        />
      )}
    </section>
  )
}

const identifier = (value: string) => <Identifier value={value} />
