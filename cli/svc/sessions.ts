/** `svc sessions`: relay sessions of all accounts. */
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { paths } from '../../client/api-types.ts'
import type { ApiClient } from '../../client/client.ts'
import { relayStates } from '../../domain/relay-session.ts'
import { readAccountId } from './accounts.ts'
import { confirm } from './confirmation.ts'
import { connect } from './connection.ts'
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
} from './options.ts'
import { type Column, formatTime, printFields, printHeading, printJson, printTable } from './output.ts'
import { printList } from './pages.ts'

type State = (typeof relayStates)[number]
type Listed = paths['/api/v1/admin/sessions']['get']['responses'][200]['content']['application/json']
export type Session = Listed['sessions'][number]
type Inspected = paths['/api/v1/admin/sessions/{id}']['get']['responses'][200]['content']['application/json']

export interface SessionFilter {
  readonly state?: State
  readonly region?: string
  readonly user?: string
}

const columns: readonly Column<Session>[] = [
  { header: 'SESSION', value: (one) => one.session_id },
  { header: 'STATE', value: (one) => one.state },
  { header: 'REASON', value: (one) => one.reason },
  { header: 'REGION', value: (one) => one.region },
  { header: 'CONNECTION', value: (one) => one.connection_id },
  { header: 'ACCOUNT', value: (one) => one.user_id },
  { header: 'CREATED', value: (one) => formatTime(one.created_at) },
  { header: 'KBIT/S', value: (one) => (one.ingest?.publishing ? one.ingest.bitrate_kbps : null) },
]

export function addSessionsCommands(program: Command): void {
  const sessions = program.command('sessions').description('relay sessions of all accounts')
  addListOptions(addFilterOptions(sessions.command('list')))
    .description('list sessions')
    .addOption(choiceOption('--state <state>', 'only sessions in this state', relayStates))
    .action((_, command: Command) => listSessions(command.optsWithGlobals()))
  sessions
    .command('show')
    .argument('<session>', 'id of the session', parseId)
    .description('show a session, its transitions, and what its workflow says')
    .action((id: string, _, command: Command) => showSession(id, command.optsWithGlobals()))
  addDestructiveOptions(sessions.command('disconnect'))
    .argument('<session>', 'id of the session', parseId)
    .description('end a session at once')
    .action((id: string, _, command: Command) => disconnectSession(id, command.optsWithGlobals()))
  addReasonOption(sessions.command('transition'))
    .argument('<session>', 'id of the session', parseId)
    .addOption(choiceOption('--to <state>', 'the state to change to', relayStates).makeOptionMandatory())
    .description('make a transition by hand; the workflow refuses one that is not legal')
    .action((id: string, _, command: Command) => transitionSession(id, command.optsWithGlobals()))
}

/** The options that `list` and `watch` share. */
export const addFilterOptions = (command: Command): Command =>
  command
    .option('--region <region>', 'only sessions in this region')
    .option('--user <account>', 'only sessions of this account: its email address or id', parseAccount)

/** The filters as parameters of the API. Rejects when the account does not exist. */
export async function readFilter(api: ApiClient, { state, region, user }: SessionFilter) {
  return {
    ...(state === undefined ? {} : { state }),
    ...(region === undefined ? {} : { region }),
    ...(user === undefined ? {} : { user_id: await readAccountId(api, user) }),
  }
}

async function listSessions(options: ListOptions & SessionFilter): Promise<void> {
  const api = await connect(options)
  const filter = await readFilter(api, options)
  const readPage = async (cursor: { cursor?: string }) =>
    expectSuccess(await api.GET('/api/v1/admin/sessions', { params: { query: { ...filter, ...cursor } } }))
  await printList({ key: 'sessions', columns, readPage }, options)
}

export const inspectSession = async (api: ApiClient, id: string): Promise<Inspected> =>
  expectSuccess(await api.GET('/api/v1/admin/sessions/{id}', { params: { path: { id } } }), `The request for ${id}`)

async function showSession(id: string, options: GlobalOptions): Promise<void> {
  const inspected = await inspectSession(await connect(options), id)
  if (options.json) return printJson(inspected)
  printSession(inspected.session)
  printFields([
    ['workflow', inspected.temporal_ui_url],
    ['workflow says', inspected.live ? `${inspected.live.state} (${inspected.live.reason})` : 'no answer'],
    ['next deadline', formatTime(inspected.live?.deadline_at)],
  ])
  printHeading('Transitions')
  printTable(
    [
      { header: 'AT', value: (one) => formatTime(one.at) },
      { header: 'FROM', value: (one) => one.from },
      { header: 'TO', value: (one) => one.to },
      { header: 'REASON', value: (one) => one.reason },
      { header: 'BY', value: (one) => one.initiator },
    ],
    inspected.transitions,
  )
}

function printSession(session: Session): void {
  printFields([
    ['session', session.session_id],
    ['state', `${session.state} (${session.reason})`],
    ['detail', session.detail],
    ['region', session.region],
    ['connection', session.connection_id],
    ['account', session.user_id],
    ['instance', session.instance_id],
    ['created', formatTime(session.created_at)],
    ['active', formatTime(session.active_at)],
    ['grace ends', formatTime(session.grace_ends_at)],
    ['stopped', formatTime(session.stopped_at)],
    ['ends at the latest', formatTime(session.ends_at)],
    ['receives', session.ingest?.publishing ? `${session.ingest.bitrate_kbps} kbit/s` : 'nothing'],
  ])
}

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
  json ? printJson(reply) : printSession(reply.session)
