/** Accounts that pay for what they cannot use: add-ons without a plan, or more than one plan. */
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { BillingTabs } from './billing-tabs.tsx'
import { type Filter, Pager, readFilter } from './filter-form.tsx'
import { UserLink } from './identifier.tsx'
import type { BilledAccountPage } from './operator-replies.ts'
import { listProblem } from './refused-page.tsx'
import { type Column, ScrollingTable } from './scrolling-table.tsx'

const path = '/operator/billing/accounts'

export const list: PageHandler = async ({ query, operatorApi }) => {
  const billed: Billed = query.get('billed') === 'twice' ? 'twice' : 'without_plan'
  const filter = { ...readFilter(query, []), billed }
  const found = await operatorApi.GET('/api/v1/admin/billing/accounts', { params: { query: filter } })
  return {
    name: 'operator-billed-accounts',
    title: titles[billed],
    console: 'billing',
    status: found.response.status,
    page: <AccountsPage billed={billed} filter={filter} found={found.data ?? {}} problem={listProblem(found)} />,
  }
}

type Billed = 'without_plan' | 'twice'

const titles: Readonly<Record<Billed, string>> = {
  without_plan: 'Accounts billed for unused add-ons',
  twice: 'Accounts billed for more than one plan',
}

const leads: Readonly<Record<Billed, string>> = {
  without_plan: 'Their add-ons are active at the provider, but they have no plan to use them with.',
  twice: 'A second plan adds no relays. Their owners see a warning on the account page.',
}

interface AccountsPageProps {
  readonly billed: Billed
  readonly filter: Filter
  readonly found: Partial<BilledAccountPage>
  readonly problem: Problem | undefined
}

const AccountsPage = ({ billed, filter, found, problem }: AccountsPageProps) => (
  <>
    <div class="page-head">
      <h1>{titles[billed]}</h1>
      <p class="lead">{leads[billed]}</p>
    </div>
    <BillingTabs current={billed} />
    <ProblemMessage problem={problem} />
    {problem ? null : (
      <ScrollingTable
        label={titles[billed]}
        columns={columns}
        empty="None."
        rows={found.accounts ?? []}
        keyOf={(account) => account.user_id}
        dataOf={(account) => ({ 'data-account': account.user_id })}
      />
    )}
    <Pager path={path} filter={filter} nextCursor={found.next_cursor} />
  </>
)

const columns: readonly Column<BilledAccountPage['accounts'][number]>[] = [
  { heading: 'Account', cell: (account) => <UserLink of={account} /> },
  { heading: 'Add-ons without a plan', class: 'number', cell: (account) => account.addons_without_plan },
  { heading: 'Plans billed', class: 'number', cell: (account) => account.billed_plans },
]
