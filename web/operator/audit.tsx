/** The audit of all accounts: who did what, when and why. */

import type { Reply } from '../../client/reply.ts'
import { readApiError, unchecked } from '../api-client.ts'
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { Instant } from '../time-text.tsx'
import { readFilter } from './filter-form.tsx'
import { UserLink } from './identifier.tsx'
import { type Column, ScrollingTable } from './scrolling-table.tsx'

type Page = Reply<'get', '/admin/audit'>
type Entry = Page['entries'][number]

const filterNames = ['action', 'initiator', 'user_id'] as const
type Filter = Readonly<Record<(typeof filterNames)[number], string>>

export const show: PageHandler = async ({ query, operatorApi }) => {
  const filter = readFilter(query, filterNames)
  const result = await operatorApi.GET('/api/v1/admin/audit', {
    params: { query: { ...filter, initiator: unchecked(filter.initiator) } },
  })
  const frame = { name: 'operator-audit', title: 'Audit', console: 'audit' } as const
  if (result.data) return { ...frame, page: <AuditPage filter={filter} found={result.data} /> }
  const problem = {
    code: readApiError(result).code,
    text: 'The filter is not valid. Check the action and the account id.',
  }
  const nothing = { entries: [], next_cursor: null }
  return {
    ...frame,
    status: result.response.status,
    page: <AuditPage filter={filter} found={nothing} problem={problem} />,
  }
}

interface AuditPageProps {
  readonly filter: Filter
  readonly found: Page
  readonly problem?: Problem
}

const AuditPage = ({ filter, found, problem }: AuditPageProps) => (
  <>
    <div class="page-head">
      <h1>Audit</h1>
      <p class="lead">Security-relevant actions of users, operators and the system, kept for 400 days.</p>
    </div>
    <ProblemMessage problem={problem} />
    <FilterForm filter={filter} />
    <ScrollingTable
      label="Audit entries"
      columns={columns}
      empty="No entries."
      rows={found.entries}
      keyOf={({ id }) => id}
      dataOf={(entry) => ({ 'data-action': entry.action, 'data-initiator': entry.actor })}
    />
    {found.next_cursor === null ? null : (
      <p>
        <a class="button second" rel="next" href={pathOf({ ...filter, cursor: found.next_cursor })}>
          Older entries
        </a>
      </p>
    )}
  </>
)

const pathOf = (parts: Readonly<Record<string, string>>): string => {
  const query = new URLSearchParams(Object.entries(parts).filter(([, value]) => value !== ''))
  return `/operator/audit${query.size === 0 ? '' : `?${query}`}`
}

const FilterForm = ({ filter }: { readonly filter: Filter }) => (
  <form class="card filter" method="get" action="/operator/audit">
    <div class="field">
      <label for="action">Action</label>
      <input id="action" name="action" value={filter.action} maxlength={64} autocomplete="off" spellcheck={false} />
    </div>
    <div class="field">
      <label for="initiator">Initiator</label>
      <select id="initiator" name="initiator">
        {['', 'user', 'operator', 'system'].map((initiator) => (
          <option key={initiator} value={initiator} selected={initiator === filter.initiator}>
            {initiator === '' ? 'all' : initiator}
          </option>
        ))}
      </select>
    </div>
    <div class="field">
      <label for="user_id">Account id</label>
      <input id="user_id" name="user_id" value={filter.user_id} maxlength={36} autocomplete="off" spellcheck={false} />
    </div>
    <button class="second" type="submit">
      Filter
    </button>
  </form>
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
  { heading: 'Action', cell: ({ action }) => <a href={pathOf({ action })}>{action}</a> },
  { heading: 'Account', cell: (entry) => (entry.user_id === null ? '–' : <UserLink of={entry} />) },
  { heading: 'Address', cell: ({ ip }) => ip ?? '–' },
  { heading: 'Details', class: 'details', cell: ({ detail }) => <Details detail={detail} /> },
]
