/** The billing inbox, by status, provider and account. */
import { unchecked } from '../api-client.ts'
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { BillingTabs } from './billing-tabs.tsx'
import { EventTable } from './event-table.tsx'
import { Choice, type Filter, FilterForm, Pager, readFilter, TextFilter } from './filter-form.tsx'
import type { EventPage } from './operator-replies.ts'
import { listProblem } from './refused-page.tsx'

const path = '/operator/billing'
const filterNames = ['status', 'provider', 'user_id'] as const

export const list: PageHandler = async ({ query, operatorApi }) => {
  const filter = readFilter(query, filterNames)
  const found = await operatorApi.GET('/api/v1/admin/billing/events', {
    params: { query: { ...filter, status: unchecked(filter.status), provider: unchecked(filter.provider) } },
  })
  const problem = listProblem(found)
  return {
    name: 'operator-billing',
    title: 'Billing events',
    console: 'billing',
    status: found.response.status,
    page: <EventsPage filter={filter} found={found.data ?? {}} problem={problem} />,
  }
}

interface EventsPageProps {
  readonly filter: Filter
  readonly found: Partial<EventPage>
  readonly problem: Problem | undefined
}

const statuses = {
  '': 'all',
  parked: 'parked: cannot be used yet',
  dead: 'dead: parked for too long',
  unresolved: 'unresolved: a request to the provider is due',
  pending: 'pending: not applied yet',
  applied: 'applied',
  ignored: 'ignored',
  dismissed: 'dismissed by an operator',
}

const providers = {
  '': 'all',
  sandbox: 'sandbox',
  lemonsqueezy: 'lemonsqueezy',
  stripe: 'stripe',
  operator: 'operator',
}

const EventsPage = ({ filter, found, problem }: EventsPageProps) => (
  <>
    <div class="page-head">
      <h1>Billing events</h1>
      <p class="lead">What the billing providers reported, and the grants of operators. The newest first.</p>
    </div>
    <BillingTabs current="events" />
    <ProblemMessage problem={problem} />
    <FilterForm action={path}>
      <Choice name="status" label="Status" value={filter.status ?? ''} options={statuses} />
      <Choice name="provider" label="Provider" value={filter.provider ?? ''} options={providers} />
      <TextFilter name="user_id" label="Account id" value={filter.user_id ?? ''} />
    </FilterForm>
    {problem ? null : (
      <EventTable events={found.events ?? []} label="Billing events" empty="No event matches this filter." />
    )}
    <Pager path={path} filter={filter} nextCursor={found.next_cursor} />
  </>
)
