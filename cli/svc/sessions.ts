/** `svc sessions`: relay sessions of all accounts. */
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import { relayStates } from '../../domain/relay/session.ts'
import { confirm } from './confirmation.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import {
  addDestructiveOptions,
  addListOptions,
  addReasonOption,
  type ChangeOptions,
  choiceOption,
  type GlobalOptions,
  type ListOptions,
  parseAccount,
  parseId,
  parseWholeNumber,
} from './options.ts'
import { type Column, type Field, formatTime, printFields, printHeading, printJson, printTable } from './output.ts'
import { printList } from './pages.ts'
import { inspectSession, readFilter, type Session, type SessionFilter, type State } from './session-requests.ts'
import { watchSessions } from './session-watch.ts'

export const sessionColumns: readonly Column<Session>[] = [
  { header: 'SESSION', value: ({ session_id }) => session_id },
  { header: 'STATE', value: ({ state }) => state },
  { header: 'REASON', value: ({ reason }) => reason },
  { header: 'REGION', value: ({ region }) => region },
  { header: 'CONNECTION', value: ({ connection_id }) => connection_id },
  { header: 'ACCOUNT', value: ({ user_id }) => user_id },
  { header: 'EMAIL', value: ({ masked_email }) => masked_email },
  { header: 'CREATED', value: ({ created_at }) => formatTime(created_at) },
  { header: 'KBIT/S', value: ({ ingest }) => (ingest?.publishing ? ingest.bitrate_kbps : null) },
]

const sessionId = ['<session>', 'id of the session', parseId] as const
const exampleId = '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90'

export function addSessionsCommands(program: Command): void {
  const sessions = program.command('sessions').description('relay sessions of all accounts')
  addExamples(addListOptions(addFilterOptions(sessions.command('list'))), [
    '--state grace',
    '--user streamer@example.com --all --json',
  ])
    .addOption(choiceOption('--state <state>', 'only sessions in this state', relayStates))
    .description('list sessions')
    .action((_, command: Command) => listSessions(command.optsWithGlobals()))
  addExamples(sessions.command('show').argument(...sessionId), [exampleId])
    .description('show a session, its transitions, and what its workflow says')
    .action((id: string, _, command: Command) => showSession(id, command.optsWithGlobals()))
  addWatchCommand(sessions)
  addExamples(addDestructiveOptions(sessions.command('disconnect').argument(...sessionId)), [
    `${exampleId} --reason "stuck, ticket 4711"`,
  ])
    .description('end a session at once')
    .action((id: string, _, command: Command) => disconnectSession(id, command.optsWithGlobals()))
  addExamples(addReasonOption(sessions.command('transition').argument(...sessionId)), [`${exampleId} --to stopped`])
    .addOption(choiceOption('--to <state>', 'the state to change to', relayStates).makeOptionMandatory())
    .description('make a transition by hand; the workflow refuses one that is not legal')
    .action((id: string, _, command: Command) => transitionSession(id, command.optsWithGlobals()))
}

function addWatchCommand(sessions: Command): void {
  const watch = addFilterOptions(sessions.command('watch'))
    .argument('[session]', 'id of a session; without it, all live ones', parseId)
    .option('--interval <seconds>', 'time between two requests', parseWholeNumber(1, 3600), 2)
    .description('print a line for each change of a session until Ctrl-C, or until the named session has stopped')
    .action((id: string | undefined, _, command: Command) => watchSessions(id, command.optsWithGlobals()))
  addExamples(watch, ['--region eu-central', exampleId])
}

/** The options that `list` and `watch` share. */
export const addFilterOptions = (command: Command): Command =>
  command
    .option('--region <region>', 'only sessions in this region')
    .option('--user <account>', 'only sessions of this account: its email address or id', parseAccount)

async function listSessions(options: ListOptions & SessionFilter): Promise<void> {
  const api = await connect(options)
  const filter = await readFilter(api, options)
  const readPage = async (cursor: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/sessions', { params: { query: { ...filter, ...cursor } } }))
  await printList({ key: 'sessions', columns: sessionColumns, readPage }, options)
}

async function showSession(id: string, options: GlobalOptions): Promise<void> {
  const inspected = await inspectSession(await connect(options), id)
  if (options.json) return printJson(inspected)
  printFields([
    ...sessionFields(inspected.session),
    ['workflow', inspected.temporal_ui_url],
    ['workflow says', inspected.live ? `${inspected.live.state} (${inspected.live.reason})` : 'no answer'],
    ['next deadline', formatTime(inspected.live?.deadline_at)],
  ])
  printHeading('Transitions')
  printTable(
    [
      { header: 'AT', value: ({ at }) => formatTime(at) },
      { header: 'FROM', value: ({ from }) => from },
      { header: 'TO', value: ({ to }) => to },
      { header: 'REASON', value: ({ reason }) => reason },
      { header: 'BY', value: ({ initiator }) => initiator },
    ],
    inspected.transitions,
  )
}

const sessionFields = (session: Session): Field[] => [
  ['session', session.session_id],
  ['state', `${session.state} (${session.reason})`],
  ['detail', session.detail],
  ['region', session.region],
  ['connection', session.connection_id],
  ['account', session.user_id],
  ['email', session.masked_email],
  ['instance', session.instance_id],
  ['created', formatTime(session.created_at)],
  ['active', formatTime(session.active_at)],
  ['grace ends', formatTime(session.grace_ends_at)],
  ['stopped', formatTime(session.stopped_at)],
  ['ends at the latest', formatTime(session.ends_at)],
  ['receives', session.ingest?.publishing ? `${session.ingest.bitrate_kbps} kbit/s` : 'nothing'],
]

async function disconnectSession(id: string, options: ChangeOptions): Promise<void> {
  const api = await connect(options)
  await confirm(`Disconnect the session ${id}?`, options)
  const body = { reason: options.reason ?? '' }
  const params = { path: { id } }
  printChange(expectSuccess(await api.POST('/api/v1/admin/sessions/{id}/disconnect', { params, body })), options)
}

async function transitionSession(id: string, options: ChangeOptions & { readonly to: State }): Promise<void> {
  const api = await connect(options)
  const body = { to: options.to, ...(options.reason === undefined ? {} : { reason: options.reason }) }
  const params = { path: { id } }
  printChange(expectSuccess(await api.POST('/api/v1/admin/sessions/{id}/transition', { params, body })), options)
}

const printChange = (reply: { session: Session }, { json }: GlobalOptions): void =>
  json ? printJson(reply) : printFields(sessionFields(reply.session))
