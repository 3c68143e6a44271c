/** Withdrawals from contracts: the tasks that wait for a refund, and those that are done. */
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { Instant } from '../time-text.tsx'
import { BillingTabs } from './billing-tabs.tsx'
import { Choice, FilterForm, Pager, readFilter } from './filter-form.tsx'
import { IdentifierLink, UserLink } from './identifier.tsx'
import type { OperatorWithdrawal, WithdrawalPage } from './operator-replies.ts'
import { listProblem } from './refused-page.tsx'
import { type Column, ScrollingTable } from './scrolling-table.tsx'
import { WithdrawalStatus } from './state-badges.tsx'

export const withdrawalsPath = '/operator/billing/withdrawals'

const states = { open: 'open: to be refunded', refunded: 'refunded' } as const
type State = keyof typeof states

export const list: PageHandler = async ({ query, operatorApi }) => {
  const state: State = query.get('state') === 'refunded' ? 'refunded' : 'open'
  const filter = { ...readFilter(query, []), state }
  const found = await operatorApi.GET('/api/v1/admin/billing/withdrawals', { params: { query: filter } })
  return {
    name: 'operator-withdrawals',
    title: 'Withdrawals',
    console: 'billing',
    status: found.response.status,
    page: <WithdrawalsPage filter={filter} found={found.data ?? {}} problem={listProblem(found)} />,
  }
}

interface WithdrawalsPageProps {
  readonly filter: { readonly state: State; readonly cursor?: string }
  readonly found: Partial<WithdrawalPage>
  readonly problem: Problem | undefined
}

const WithdrawalsPage = ({ filter, found, problem }: WithdrawalsPageProps) => (
  <>
    <div class="page-head">
      <h1>Withdrawals</h1>
      <p class="lead">Contracts that customers have withdrawn from. Refund each within 14 days of its receipt.</p>
    </div>
    <BillingTabs current="withdrawals" />
    <ProblemMessage problem={problem} />
    <FilterForm action={withdrawalsPath}>
      <Choice name="state" label="State" value={filter.state} options={states} />
    </FilterForm>
    {problem ? null : (
      <ScrollingTable
        label="Withdrawals"
        columns={columns}
        empty="None."
        rows={found.withdrawals ?? []}
        keyOf={({ id }) => id}
        dataOf={({ id }) => ({ 'data-withdrawal': id })}
      />
    )}
    <Pager path={withdrawalsPath} filter={filter} nextCursor={found.next_cursor} />
  </>
)

const columns: readonly Column<OperatorWithdrawal>[] = [
  { heading: 'Withdrawal', cell: ({ id }) => <IdentifierLink href={`${withdrawalsPath}/${id}`} value={id} /> },
  { heading: 'Status', cell: (withdrawal) => <WithdrawalStatus of={withdrawal} /> },
  { heading: 'Account', cell: (withdrawal) => <UserLink of={withdrawal} /> },
  { heading: 'Provider', cell: ({ provider }) => provider },
  { heading: 'Item', cell: ({ kind, quantity }) => (kind === 'plan' ? 'plan' : `add-on × ${quantity}`) },
  { heading: 'Bought', cell: ({ purchased_at: at }) => <Instant at={at} /> },
  { heading: 'Received', cell: ({ received_at: at }) => <Instant at={at} /> },
  { heading: 'Error', class: 'sentence', cell: ({ refund_error: error }) => error ?? '–' },
]
