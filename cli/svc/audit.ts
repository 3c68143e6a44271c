/** `svc audit`: the audit trail. */
import { type Command, InvalidArgumentError } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { readAccountId } from './accounts.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import { addListOptions, choiceOption, type ListOptions, parseAccount } from './options.ts'
import { type Column, formatTime } from './output.ts'
import { printList } from './pages.ts'

type Entry = Reply<'get', '/admin/audit'>['entries'][number]

const initiators = ['user', 'operator', 'system'] as const

export function addAuditCommand(program: Command): void {
  addExamples(addListOptions(program.command('audit')), [
    '--user streamer@example.com',
    '--initiator operator --action plan_granted --json',
  ])
    .option('--user <account>', 'only entries of this account: its email address or id', parseAccount)
    .option('--action <action>', 'only entries with this action', parseAction)
    .addOption(choiceOption('--initiator <initiator>', 'only entries that this initiator caused', initiators))
    .description('list audit entries, newest first')
    .action((_, command: Command) => listEntries(command.optsWithGlobals()))
}

function parseAction(text: string): string {
  if (/^[a-z_]{1,64}$/.test(text)) return text
  throw new InvalidArgumentError('It is not an action, such as plan_granted.')
}

const columns: readonly Column<Entry>[] = [
  { header: 'AT', value: ({ at }) => formatTime(at) },
  { header: 'INITIATOR', value: ({ actor }) => actor },
  { header: 'ACTION', value: ({ action }) => action },
  { header: 'ACCOUNT', value: ({ user_id }) => user_id },
  { header: 'EMAIL', value: ({ masked_email }) => masked_email },
  { header: 'IP', value: ({ ip }) => ip },
  { header: 'CLIENT', value: ({ client }) => client },
  { header: 'DETAIL', value: ({ detail }) => formatDetail(detail) },
]

const formatDetail = (detail: Entry['detail']): string =>
  Object.entries(detail)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

interface EntryFilter {
  readonly user?: string
  readonly action?: string
  readonly initiator?: (typeof initiators)[number]
}

async function listEntries(options: ListOptions & EntryFilter): Promise<void> {
  const api = await connect(options)
  const { user, action, initiator } = options
  const filter = {
    ...(user === undefined ? {} : { user_id: await readAccountId(api, user) }),
    ...(action === undefined ? {} : { action }),
    ...(initiator === undefined ? {} : { initiator }),
  }
  const readPage = async (cursor: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/audit', { params: { query: { ...filter, ...cursor } } }))
  await printList({ key: 'entries', columns, readPage }, options)
}
