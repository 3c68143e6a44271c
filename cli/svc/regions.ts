/** `svc regions`: regions with their instances. */
import { Argument, type Command } from 'commander'
import type { ApiClient } from '../../client/client.ts'
import type { Reply } from '../../client/reply.ts'
import { defineRequest } from './commands.ts'
import { type ReasonOptions, requiredReasonOption } from './options.ts'
import { type Column, formatTime, printRemark, printTable } from './output.ts'

const columns: readonly Column<Reply<'get', '/admin/regions'>['regions'][number]>[] = [
  { header: 'REGION', value: ({ region }) => region },
  { header: 'NAME', value: ({ display_name }) => display_name },
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'CAPACITY', value: ({ capacity }) => capacity },
  { header: 'SESSIONS', value: ({ sessions }) => sessions },
  { header: 'BOUND', value: ({ instances }) => instances.bound },
  { header: 'WARM', value: ({ instances, warm }) => `${instances.warm_ready}/${warm}` },
  { header: 'LEFTOVER', value: ({ instances }) => instances.leftover },
  { header: 'DRAINED SINCE', value: ({ drained_at }) => formatTime(drained_at) },
]

export function addRegionsCommands(program: Command): void {
  const regions = program.command('regions').description('regions with their instances')
  const subject = { argument: new Argument('<region>', 'id of the region'), example: 'eu-central' }
  const changeBy =
    (change: 'drain' | 'resume') =>
    (api: ApiClient, region: string, { reason }: ReasonOptions) =>
      api.POST(`/api/v1/admin/regions/{region}/${change}`, { params: { path: { region } }, body: { reason } })
  defineRequest(regions.command('list'), {
    description: 'list regions',
    request: (api) => api.GET('/api/v1/admin/regions'),
    print: (reply) => printTable(columns, reply.regions),
  })
  defineRequest(regions.command('drain'), {
    description: 'refuse new sessions in a region; its live sessions run on',
    examples: ['eu-central --reason "maintenance of the provider"'],
    subject,
    question: (id) => `Refuse new sessions in ${id}?`,
    request: changeBy('drain'),
    print: ({ region }, id) => {
      printTable(columns, [region])
      printRemark(`Its live sessions run on. To end the drain: svc regions resume ${id} --reason TEXT`)
    },
  })
  defineRequest(regions.command('resume'), {
    description: 'allow new sessions again',
    examples: ['eu-central --reason "the maintenance is over"'],
    subject,
    options: [requiredReasonOption],
    request: changeBy('resume'),
    print: ({ region }) => printTable(columns, [region]),
  })
}
