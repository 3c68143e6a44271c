/** `svc instances` and `svc orphans`: the machines that run relays. */
import { type Command, Option } from 'commander'
import type { Reply } from '../../client/reply.ts'
import { defineList } from './lists.ts'
import { choiceOption } from './options.ts'
import { type Column, formatTime } from './output.ts'

const columns: readonly Column<Reply<'get', '/admin/instances'>['instances'][number]>[] = [
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
const list = { path: '/admin/instances', key: 'instances', columns } as const
const region = new Option('--region <region>', 'only instances in this region')

export function addInstancesCommands(program: Command): void {
  const instances = program.command('instances').description('the machines that run relays')
  defineList(instances.command('list'), {
    ...list,
    description: 'list instances',
    examples: ['--gone false', '--region eu-central --all'],
    filters: {
      instance_id: new Option('--instance <id>', 'only this instance'),
      region,
      gone: choiceOption('--gone <gone>', 'only instances that are gone, or only existing ones', ['true', 'false']),
    },
  })
  defineList(program.command('orphans'), {
    ...list,
    description: 'list existing instances that were observed without an owner',
    examples: ['', '--region eu-central'],
    filters: { region },
    parameters: { orphans: 'true' },
  })
}
