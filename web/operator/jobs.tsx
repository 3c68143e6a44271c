/** The background jobs: the last run of each and its result. */
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import type { PageHandler } from '../page.ts'
import { formatDuration, TimeAgo } from '../time-text.tsx'
import { type Column, ScrollingTable } from './scrolling-table.tsx'

type Job = Reply<'get', '/admin/jobs'>['jobs'][number]

export const show: PageHandler = async ({ operatorApi }) => {
  const { jobs } = expectSuccess(await operatorApi.GET('/api/v1/admin/jobs'))
  return { name: 'operator-jobs', title: 'Jobs', console: 'jobs', page: <JobsPage jobs={jobs} /> }
}

const JobsPage = ({ jobs }: { readonly jobs: readonly Job[] }) => (
  <>
    <div class="page-head">
      <h1>Jobs</h1>
      <p class="lead">Work in the background that any worker does, one at a time.</p>
    </div>
    <div data-refreshes="jobs">
      <ScrollingTable
        label="Jobs"
        columns={columns}
        empty="No worker has run yet."
        rows={jobs}
        keyOf={({ name }) => name}
        dataOf={(job) => ({ 'data-job': job.name, 'data-result': resultOf(job) })}
      />
    </div>
  </>
)

const resultOf = (job: Job): 'never' | 'failed' | 'succeeded' =>
  job.last_error !== null ? 'failed' : job.last_success_at === null ? 'never' : 'succeeded'

const Result = ({ job }: { readonly job: Job }) => {
  const result = resultOf(job)
  if (result === 'never') return <span class="badge">Not run</span>
  if (result === 'succeeded') return <span class="badge good">Succeeded</span>
  return (
    <>
      <span class="badge bad">Failed</span> <span>{job.last_error}</span>
    </>
  )
}

function nextRunText(job: Job): string {
  if (job.leased_by !== null) return 'running'
  const seconds = (Date.parse(job.due_at) - Date.now()) / 1000
  if (seconds <= 0) return seconds > -1 ? 'now' : `due for ${formatDuration(-seconds)}`
  return `in ${formatDuration(seconds)}`
}

function durationText({ last_duration_seconds: seconds }: Job): string {
  if (seconds === null) return '–'
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : formatDuration(seconds)
}

const columns: readonly Column<Job>[] = [
  { heading: 'Job', cell: ({ name }) => <code>{name}</code> },
  { heading: 'Result', cell: (job) => <Result job={job} /> },
  { heading: 'Last run', cell: (job) => (job.last_started_at ? <TimeAgo at={job.last_started_at} /> : 'never') },
  { heading: 'Duration', class: 'number', cell: durationText },
  { heading: 'Runs', class: 'number', cell: ({ runs }) => runs },
  { heading: 'Failed', class: 'number', cell: ({ failures }) => failures },
  { heading: 'Next run', cell: nextRunText },
]
