/** `svc jobs`: background jobs of the workers. */
import type { Command } from 'commander'
import { defineList } from './lists.ts'
import { formatTime } from './output.ts'

export function addJobsCommands(program: Command): void {
  const jobs = program.command('jobs').description('background jobs of the workers')
  defineList(jobs.command('list'), {
    description: 'list background jobs with their last run',
    path: '/admin/jobs',
    key: 'jobs',
    columns: [
      { header: 'JOB', value: ({ name }) => name },
      { header: 'RUNS', value: ({ runs }) => runs },
      { header: 'FAILURES', value: ({ failures }) => failures },
      { header: 'LAST SUCCESS', value: ({ last_success_at }) => formatTime(last_success_at) },
      { header: 'SECONDS', value: ({ last_duration_seconds }) => last_duration_seconds?.toFixed(2) },
      { header: 'DUE', value: ({ due_at }) => formatTime(due_at) },
      { header: 'LAST ERROR', value: ({ last_error }) => last_error },
    ],
  })
}
