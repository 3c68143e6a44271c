/** `svc audit`: the audit trail. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { defineList } from './lists.ts'
import { accountOption, choiceOption } from './options.ts'
import { formatTime } from './output.ts'

export function addAuditCommand(program: Command): void {
  defineList(program.command('audit'), {
    description: 'list audit entries, newest first',
    examples: ['--user streamer@example.com', '--initiator operator --action plan_granted --json'],
    path: '/admin/audit',
    key: 'entries',
    filters: {
      user_id: accountOption('only entries of this account'),
      action: new Option('--action <action>', 'only entries with this action').argParser(parseAction),
      initiator: choiceOption('--initiator <initiator>', 'only entries that this initiator caused', [
        'user',
        'operator',
        'system',
      ]),
    },
    columns: [
      { header: 'AT', value: ({ at }) => formatTime(at) },
      { header: 'INITIATOR', value: ({ actor }) => actor },
      { header: 'ACTION', value: ({ action }) => action },
      { header: 'ACCOUNT', value: ({ user_id }) => user_id },
      { header: 'EMAIL', value: ({ masked_email }) => masked_email },
      { header: 'IP', value: ({ ip }) => ip },
      { header: 'CLIENT', value: ({ client }) => client },
      { header: 'DETAIL', value: ({ detail }) => formatDetail(detail) },
    ],
  })
}

function parseAction(text: string): string {
  if (/^[a-z_]{1,64}$/.test(text)) return text
  throw new InvalidArgumentError('It is not an action, such as plan_granted.')
}

const formatDetail = (detail: object): string =>
  Object.entries(detail)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
