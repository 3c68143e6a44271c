/** `svc overview`: the health of the service and the last hour. */
import type { Command } from 'commander'
import type { Reply } from '../../client/reply.ts'
import { defineRequest } from './commands.ts'
import { formatDuration, formatTime, printFields, printHeading, printTable } from './output.ts'

type Overview = Reply<'get', '/admin/overview'>
type Minute = Overview['minutes'][number]

export function addOverviewCommand(program: Command): void {
  defineRequest(program.command('overview'), {
    description: 'show the health of the service and the last hour',
    request: (api) => api.GET('/api/v1/admin/overview'),
    print: printOverview,
  })
}

function printOverview(overview: Overview): void {
  const { sessions, provisioning, commands, billing_events: events, jobs, outbox, orphans } = overview
  const sum = (name: Exclude<keyof Minute, 'at'>) => overview.minutes.reduce((total, minute) => total + minute[name], 0)
  printFields([
    ['as of', formatTime(overview.as_of)],
    ['sessions', `${sessions.provisioning} provisioning, ${sessions.active} active, ${sessions.grace} in grace`],
    ['last hour', `${sum('started')} started, ${sum('stopped')} stopped, ${sum('provisioning_failed')} failed`],
    [
      'start to active',
      `p50 ${formatSeconds(provisioning.p50_seconds)}, p95 ${formatSeconds(provisioning.p95_seconds)}`,
    ],
    ['failed sign-ins', sum('sign_ins_failed')],
    ['workers', overview.workers.alive],
    ['undelivered commands', withAge(commands.undelivered, commands.oldest_seconds)],
    ['billing events', `${events.pending} pending, ${events.parked} parked, ${events.dead} dead`],
    ['overdue jobs', jobs.overdue.join(', ')],
    ['failing jobs', jobs.failing.join(', ')],
    ['messages to send', `${withAge(outbox.pending, outbox.oldest_seconds)}, ${outbox.failed} given up`],
    ['orphans', withAge(orphans.instances, orphans.oldest_seconds)],
  ])
  printHeading('Regions')
  printTable(
    [
      { header: 'REGION', value: ({ region }) => region },
      { header: 'STATUS', value: ({ status }) => status },
      { header: 'SESSIONS', value: (region) => `${region.sessions}/${region.capacity}` },
      { header: 'DRAINED SINCE', value: ({ drained_at }) => formatTime(drained_at) },
    ],
    overview.regions,
  )
}

const formatSeconds = (seconds: number | null): string => (seconds === null ? '-' : `${seconds.toFixed(1)} s`)

const withAge = (count: number, oldestSeconds: number): string =>
  count === 0 ? '0' : `${count}, the oldest for ${formatDuration(oldestSeconds)}`
