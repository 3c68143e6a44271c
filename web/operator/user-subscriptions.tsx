/** The subscriptions of an account at billing providers, and its subscription workflow. */
import { DateTime, Day } from '../time-text.tsx'
import { Comparison } from './comparison.tsx'
import { Facts } from './facts.tsx'
import { Identifier } from './identifier.tsx'
import type { AccountDetail, ProviderSubscription } from './operator-replies.ts'
import { type Column, ScrollingTable } from './scrolling-table.tsx'
import { WorkflowHead } from './workflow-head.tsx'

interface SubscriptionsProps {
  readonly subscriptions: readonly ProviderSubscription[]
  readonly entitlement: AccountDetail['entitlement']
  readonly workflow: AccountDetail['subscription']
}

export const Subscriptions = ({ subscriptions, entitlement, workflow }: SubscriptionsProps) => (
  <>
    <h2>Subscriptions</h2>
    <ScrollingTable
      label="Subscriptions"
      columns={columns}
      empty="No subscription at a provider."
      rows={subscriptions}
      keyOf={({ provider, subscription_id: id }) => `${provider} ${id}`}
      dataOf={({ subscription_id: id, status }) => ({ 'data-subscription': id, 'data-status': status })}
    />
    <SubscriptionWorkflow entitlement={entitlement} workflow={workflow} />
  </>
)

const statusLooks: Readonly<Record<ProviderSubscription['status'], string>> = {
  active: 'good',
  past_due: 'bad',
  cancelled: 'warn',
  ended: 'plain',
}

const columns: readonly Column<ProviderSubscription>[] = [
  { heading: 'Subscription', cell: ({ subscription_id: id }) => <Identifier value={id} /> },
  { heading: 'Provider', cell: ({ provider }) => provider },
  { heading: 'Kind', cell: ({ kind, quantity }) => (kind === 'addon' ? `add-on × ${quantity}` : 'plan') },
  { heading: 'Status', cell: ({ status }) => <span class={`badge ${statusLooks[status]}`}>{status}</span> },
  { heading: 'Period ends', cell: ({ period_end: end }) => (end === null ? '–' : <Day at={end} />) },
  { heading: 'Customer', cell: ({ customer_id: id }) => (id === null ? '–' : <Identifier value={id} />) },
  { heading: 'Changed', cell: ({ updated_at: at }) => <DateTime at={at} /> },
]

const SubscriptionWorkflow = ({ entitlement, workflow }: Omit<SubscriptionsProps, 'subscriptions'>) => {
  const { live } = workflow
  return (
    <section class="card" aria-labelledby="subscription-workflow" data-workflow={live ? 'running' : 'none'}>
      <WorkflowHead
        id="subscription-workflow"
        title="Subscription workflow"
        workflowId={workflow.workflow_id}
        temporalUiUrl={workflow.temporal_ui_url}
      />
      {live === null ? (
        <p class={workflow.live_missing === 'no_answer' ? 'warning' : 'muted'}>
          {workflow.live_missing === 'no_answer'
            ? 'The workflow didn’t answer in two seconds. Check Temporal and the workers.'
            : 'The workflow doesn’t run. It runs only while there is something to wait for.'}
        </p>
      ) : (
        <>
          <Comparison
            label="Stored plan and workflow"
            values={[
              { label: 'Plan', stored: entitlement.plan_tier, live: live.plan_tier },
              { label: 'Status', stored: entitlement.plan_status, live: live.plan_status },
              {
                label: 'Relays',
                stored: String(entitlement.max_concurrent_conns),
                live: live.plan_tier === 'paid' ? String(1 + live.addons) : '0',
              },
              {
                label: 'Payment grace ends',
                stored: entitlement.grace_ends_at,
                live: live.grace_ends_at,
                render: time,
              },
            ]}
          />
          <Facts
            values={{
              'Plan ends': live.ends_at === null ? 'no end is known' : <DateTime at={live.ends_at} />,
              'Wakes by itself': live.wakes_at === null ? 'no' : <DateTime at={live.wakes_at} />,
            }}
          />
        </>
      )}
    </section>
  )
}

const time = (at: string) => <DateTime at={at} />
