/** `svc instances` and `svc orphans`: the machines that run relays. */
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import { addListOptions, choiceOption, type ListOptions } from './options.ts'
import { type Column, formatTime } from './output.ts'
import { printList } from './pages.ts'

type Instance = Reply<'get', '/admin/instances'>['instances'][number]

interface InstanceFilter {
  readonly instance?: string
  readonly region?: string
  readonly gone?: 'true' | 'false'
  readonly orphans?: 'true'
}

export function addInstancesCommands(program: Command): void {
  const instances = program.command('instances').description('the machines that run relays')
  addExamples(addListOptions(instances.command('list')), ['--gone false', '--region eu-central --all'])
    .option('--instance <id>', 'only this instance')
    .option('--region <region>', 'only instances in this region')
    .addOption(choiceOption('--gone <gone>', 'only instances that are gone, or only existing ones', ['true', 'false']))
    .description('list instances')
    .action((_, command: Command) => listInstances(command.optsWithGlobals()))
  addExamples(addListOptions(program.command('orphans')), ['', '--region eu-central'])
    .option('--region <region>', 'only instances in this region')
    .description('list existing instances that were observed without an owner')
    .action((_, command: Command) => listInstances({ ...command.optsWithGlobals<ListOptions>(), orphans: 'true' }))
}

const columns: readonly Column<Instance>[] = [
  { header: 'INSTANCE', value: ({ instance_id }) => instance_id },
  { header: 'REGION', value: ({ region }) => region },
  { header: 'SESSION', value: ({ session_id }) => session_id },
  { header: 'OWNED', value: ({ owned }) => owned },
  { header: 'WARM', value: ({ warm }) => warm },
  { header: 'CREATED', value: ({ created_at }) => formatTime(created_at) },
  { header: 'UNOWNED SINCE', value: ({ unowned_since }) => formatTime(unowned_since) },
  { header: 'GONE', value: ({ gone_at }) => formatTime(gone_at) },
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'PROVIDER ID', value: ({ provider_id }) => provider_id },
  { header: 'ACCOUNT', value: ({ user_id }) => user_id },
  { header: 'EMAIL', value: ({ masked_email }) => masked_email },
]

async function listInstances(options: ListOptions & InstanceFilter): Promise<void> {
  const api = await connect(options)
  const { instance, region, gone, orphans } = options
  const filter = {
    ...(instance === undefined ? {} : { instance_id: instance }),
    ...(region === undefined ? {} : { region }),
    ...(gone === undefined ? {} : { gone }),
    ...(orphans === undefined ? {} : { orphans }),
  }
  const readPage = async (cursor: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/instances', { params: { query: { ...filter, ...cursor } } }))
  await printList({ key: 'instances', columns, readPage }, options)
}
