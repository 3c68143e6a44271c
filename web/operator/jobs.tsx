/** The background jobs: the last run of each and its result. */
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import type { PageRoute } from '../page.ts'
import { formatDuration, TimeAgo } from '../time-text.tsx'
import { ScrollingTable } from './scrolling-table.tsx'

type Job = Reply<'get', '/admin/jobs'>['jobs'][number]

export const show: PageRoute = {
  method: 'GET',
  path: '/operator/jobs',
  caller: 'operator',
  handle: async ({ operatorApi }) => {
    const { jobs } = expectSuccess(await operatorApi.GET('/api/v1/admin/jobs'))
    return { name: 'operator-jobs', title: 'Jobs', console: 'jobs', page: <JobsPage jobs={jobs} /> }
  },
}

const headings = ['Job', 'Result', 'Last run', 'Duration', 'Runs', 'Failed', 'Next run']

const JobsPage = ({ jobs }: { readonly jobs: readonly Job[] }) => (
  <>
    <div class="page-head">
      <h1>Jobs</h1>
      <p class="lead">Work in the background that any worker does, one at a time.</p>
    </div>
    <div data-refreshes="jobs">
      <ScrollingTable label="Jobs" headings={headings} empty="No worker has run yet.">
        {jobs.map((job) => (
          <JobRow key={job.name} job={job} />
        ))}
      </ScrollingTable>
    </div>
  </>
)

const JobRow = ({ job }: { readonly job: Job }) => (
  <tr data-job={job.name} data-result={resultOf(job)}>
    <th scope="row">
      <code>{job.name}</code>
    </th>
    <td>
      <Result job={job} />
    </td>
    <td>{job.last_started_at ? <TimeAgo at={job.last_started_at} /> : 'never'}</td>
    <td class="number">
      {job.last_duration_seconds === null
        ? '–'
        : job.last_duration_seconds < 1
          ? `${Math.round(job.last_duration_seconds * 1000)} ms`
          : formatDuration(job.last_duration_seconds)}
    </td>
    <td class="number">{job.runs}</td>
    <td class="number">{job.failures}</td>
    <td>{nextRunText(job)}</td>
  </tr>
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
  return seconds <= 0 ? `due for ${formatDuration(-seconds)}` : `in ${formatDuration(seconds)}`
}
