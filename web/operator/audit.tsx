/** The audit of all accounts: who did what, when and why. */

import type { Reply } from '../../client/reply.ts'
import { unchecked } from '../api-client.ts'
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { Instant } from '../time-text.tsx'
import { Choice, type Filter, FilterForm, Pager, pathWith, readFilter, TextFilter } from './filter-form.tsx'
import { UserLink } from './identifier.tsx'
import { listProblem } from './refused-page.tsx'
import { type Column, ScrollingTable } from './scrolling-table.tsx'

type Page = Reply<'get', '/admin/audit'>
type Entry = Page['entries'][number]

const path = '/operator/audit'

export const show: PageHandler = async ({ query, operatorApi }) => {
  const filter = readFilter(query, ['action', 'initiator', 'user_id'])
  const found = await operatorApi.GET('/api/v1/admin/audit', {
    params: { query: { ...filter, initiator: unchecked(filter.initiator) } },
  })
  return {
    name: 'operator-audit',
    title: 'Audit',
    console: 'audit',
    status: found.response.status,
    page: <AuditPage filter={filter} found={found.data ?? {}} problem={listProblem(found)} />,
  }
}

interface AuditPageProps {
  readonly filter: Filter
  readonly found: Partial<Page>
  readonly problem: Problem | undefined
}

const initiators = { '': 'all', user: 'user', operator: 'operator', system: 'system' }

const AuditPage = ({ filter, found, problem }: AuditPageProps) => (
  <>
    <div class="page-head">
      <h1>Audit</h1>
      <p class="lead">Security-relevant actions of users, operators and the system, kept for 400 days.</p>
    </div>
    <ProblemMessage problem={problem} />
    <FilterForm action={path}>
      <TextFilter name="action" label="Action" value={filter.action ?? ''} />
      <Choice name="initiator" label="Initiator" value={filter.initiator ?? ''} options={initiators} />
      <TextFilter name="user_id" label="Account id" value={filter.user_id ?? ''} />
    </FilterForm>
    <ScrollingTable
      label="Audit entries"
      columns={columns}
      empty="No entries."
      rows={found.entries ?? []}
      keyOf={({ id }) => id}
      dataOf={(entry) => ({ 'data-action': entry.action, 'data-initiator': entry.actor })}
    />
    <Pager path={path} filter={filter} nextCursor={found.next_cursor} />
  </>
)

const Details = ({ detail }: Pick<Entry, 'detail'>) => {
  const { reason, ...others } = detail
  return (
    <>
      {reason === undefined ? null : <p data-detail="reason">{String(reason)}</p>}
      {Object.entries(others).map(([name, value]) => (
        <span key={name} class="detail muted" data-detail={name}>{`${name}: ${value}`}</span>
      ))}
    </>
  )
}

const columns: readonly Column<Entry>[] = [
  { heading: 'Time', cell: ({ at }) => <Instant at={at} /> },
  { heading: 'Initiator', cell: ({ actor }) => actor },
  { heading: 'Action', cell: ({ action }) => <a href={pathWith(path, { action })}>{action}</a> },
  { heading: 'Account', cell: (entry) => (entry.user_id === null ? '–' : <UserLink of={entry} />) },
  { heading: 'Address', cell: ({ ip }) => ip ?? '–' },
  { heading: 'Details', class: 'details', cell: ({ detail }) => <Details detail={detail} /> },
]
