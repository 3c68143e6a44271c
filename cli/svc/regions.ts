/** `svc regions`: regions with their instances. */
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { confirm } from './confirmation.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import {
  addDestructiveOptions,
  addRequiredReasonOption,
  type ConfirmableOptions,
  type GlobalOptions,
} from './options.ts'
import { type Column, formatTime, printJson, printRemark, printTable } from './output.ts'

type Region = Reply<'get', '/admin/regions'>['regions'][number]

const region = ['<region>', 'id of the region'] as const

export function addRegionsCommands(program: Command): void {
  const regions = program.command('regions').description('regions with their instances')
  addExamples(regions.command('list'), ['', '--json'])
    .description('list regions')
    .action((_, command: Command) => listRegions(command.optsWithGlobals()))
  addExamples(addDestructiveOptions(regions.command('drain').argument(...region)), [
    'eu-central --reason "maintenance of the provider"',
  ])
    .description('refuse new sessions in a region; its live sessions run on')
    .action((id: string, _, command: Command) => changeRegion(id, 'drain', command.optsWithGlobals()))
  addExamples(addRequiredReasonOption(regions.command('resume').argument(...region)), [
    'eu-central --reason "the maintenance is over"',
  ])
    .description('allow new sessions again')
    .action((id: string, _, command: Command) => changeRegion(id, 'resume', command.optsWithGlobals()))
}

const columns: readonly Column<Region>[] = [
  { header: 'REGION', value: ({ region: name }) => name },
  { header: 'NAME', value: ({ display_name }) => display_name },
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'CAPACITY', value: ({ capacity }) => capacity },
  { header: 'SESSIONS', value: ({ sessions }) => sessions },
  { header: 'BOUND', value: ({ instances }) => instances.bound },
  { header: 'WARM', value: ({ instances, warm }) => `${instances.warm_ready}/${warm}` },
  { header: 'LEFTOVER', value: ({ instances }) => instances.leftover },
  { header: 'DRAINED SINCE', value: ({ drained_at }) => formatTime(drained_at) },
]

async function listRegions(options: GlobalOptions): Promise<void> {
  const api = await connect(options)
  const reply = expectSuccess(await api.GET('/api/v1/admin/regions'))
  if (options.json) return printJson(reply)
  printTable(columns, reply.regions)
}

interface RegionChangeOptions extends ConfirmableOptions {
  readonly reason: string
}

async function changeRegion(id: string, change: 'drain' | 'resume', options: RegionChangeOptions): Promise<void> {
  const api = await connect(options)
  if (change === 'drain') await confirm(`Refuse new sessions in ${id}?`, options)
  const body = { reason: options.reason }
  const params = { path: { region: id } }
  const reply = expectSuccess(await api.POST(`/api/v1/admin/regions/{region}/${change}`, { params, body }))
  if (options.json) return printJson(reply)
  printTable(columns, [reply.region])
  if (change === 'drain')
    printRemark(`Its live sessions run on. To end the drain: svc regions resume ${id} --reason TEXT`)
}
