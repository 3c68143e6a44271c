/** `svc jobs`: background jobs of the workers. */
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import { addListOptions, type ListOptions } from './options.ts'
import { type Column, formatTime } from './output.ts'
import { printList } from './pages.ts'

type Job = Reply<'get', '/admin/jobs'>['jobs'][number]

export function addJobsCommands(program: Command): void {
  const jobs = program.command('jobs').description('background jobs of the workers')
  addExamples(addListOptions(jobs.command('list')), ['', '--json'])
    .description('list background jobs with their last run')
    .action((_, command: Command) => listJobs(command.optsWithGlobals()))
}

const columns: readonly Column<Job>[] = [
  { header: 'JOB', value: ({ name }) => name },
  { header: 'RUNS', value: ({ runs }) => runs },
  { header: 'FAILURES', value: ({ failures }) => failures },
  { header: 'LAST SUCCESS', value: ({ last_success_at }) => formatTime(last_success_at) },
  { header: 'SECONDS', value: ({ last_duration_seconds }) => last_duration_seconds?.toFixed(2) },
  { header: 'DUE', value: ({ due_at }) => formatTime(due_at) },
  { header: 'LAST ERROR', value: ({ last_error }) => last_error },
]

async function listJobs(options: ListOptions): Promise<void> {
  const api = await connect(options)
  const readPage = async (query: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/jobs', { params: { query } }))
  await printList({ key: 'jobs', columns, readPage }, options)
}
