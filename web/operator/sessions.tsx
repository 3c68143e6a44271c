/** All relay sessions, by state, region and account. */
import { unchecked } from '../api-client.ts'
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { Choice, type Filter, FilterForm, Pager, readFilter, TextFilter } from './filter-form.tsx'
import type { OperatorSession, Region, SessionPage } from './operator-replies.ts'
import { listProblem } from './refused-page.tsx'
import { SessionTable } from './session-table.tsx'

const path = '/operator/sessions'
const filterNames = ['state', 'region', 'user_id'] as const

export const list: PageHandler = async ({ query, operatorApi }) => {
  const filter = readFilter(query, filterNames)
  const [found, regions] = await Promise.all([
    operatorApi.GET('/api/v1/admin/sessions', {
      params: { query: { ...filter, state: unchecked<OperatorSession['state']>(filter.state) } },
    }),
    operatorApi.GET('/api/v1/admin/regions'),
  ])
  return {
    name: 'operator-sessions',
    title: 'Relays',
    console: 'relays',
    status: found.response.status,
    page: (
      <SessionsPage
        filter={filter}
        found={found.data ?? {}}
        regions={regions.data?.regions ?? []}
        problem={listProblem(found)}
      />
    ),
  }
}

interface SessionsPageProps {
  readonly filter: Filter
  readonly found: Partial<SessionPage>
  readonly regions: readonly Region[]
  readonly problem: Problem | undefined
}

const states = { '': 'all', provisioning: 'provisioning', active: 'active', grace: 'grace', stopped: 'stopped' }

const SessionsPage = ({ filter, found, regions, problem }: SessionsPageProps) => (
  <>
    <div class="page-head">
      <h1>Relays</h1>
      <p class="lead">The newest first. A session is one run of a relay.</p>
    </div>
    <ProblemMessage problem={problem} />
    <FilterForm action={path}>
      <Choice name="state" label="State" value={filter.state ?? ''} options={states} />
      <Choice
        name="region"
        label="Region"
        value={filter.region ?? ''}
        options={regionOptions(regions, filter.region)}
      />
      <TextFilter name="user_id" label="Account id" value={filter.user_id ?? ''} />
    </FilterForm>
    <div class="stack" data-refreshes="sessions">
      {problem ? null : (
        <SessionTable sessions={found.sessions ?? []} label="Relay sessions" empty="No session matches this filter." />
      )}
      <Pager path={path} filter={filter} nextCursor={found.next_cursor} />
    </div>
  </>
)

/** The configured regions, and the chosen one: sessions of a region that was removed stay. */
export const regionOptions = (regions: readonly Region[], chosen = ''): Readonly<Record<string, string>> => ({
  '': 'all',
  ...(chosen === '' ? {} : { [chosen]: chosen }),
  ...Object.fromEntries(regions.map(({ region, display_name: name }) => [region, `${name} (${region})`])),
})
