/** `svc sessions`: relay sessions of all accounts. */
import { Argument, type Command, Option } from 'commander'
import { relayStates } from '../../domain/relay/session.ts'
import type { Session } from '../live-sessions.ts'
import { byId, defineCommand, defined, defineRequest } from './commands.ts'
import { defineList } from './lists.ts'
import {
  accountOption,
  type ChangeOptions,
  choiceOption,
  exampleId,
  parseId,
  parseWholeNumber,
  type ReasonOptions,
  reasonOption,
} from './options.ts'
import { type Column, type Field, formatTime, printFields, printHeading, printTable } from './output.ts'
import { describeInspection, type WatchOptions, watchSessions } from './session-watch.ts'

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

const subject = { argument: new Argument('<session>', 'id of the session').argParser(parseId), example: exampleId }
const region = new Option('--region <region>', 'only sessions in this region')
const user = accountOption('only sessions of this account')

export function addSessionsCommands(program: Command): void {
  const sessions = program.command('sessions').description('relay sessions of all accounts')
  defineList(sessions.command('list').addOption(region).addOption(user), {
    description: 'list sessions',
    examples: ['--state grace', '--user streamer@example.com --all --json'],
    path: '/admin/sessions',
    key: 'sessions',
    filters: {
      region,
      user_id: user,
      state: choiceOption('--state <state>', 'only sessions in this state', relayStates),
    },
    columns: sessionColumns,
  })
  addShowCommand(sessions)
  defineCommand<WatchOptions>(sessions.command('watch'), {
    description: 'print a line for each change of a session until Ctrl-C, or until the named session has stopped',
    examples: ['--region eu-central', exampleId],
    argument: new Argument('[session]', 'id of a session; without it, all live ones').argParser(parseId),
    options: [
      region,
      user,
      new Option('--interval <seconds>', 'time between two requests').argParser(parseWholeNumber(1, 3600)).default(2),
    ],
    run: (options, id) => watchSessions(id, options),
  })
  defineRequest(sessions.command('disconnect'), {
    description: 'end a session at once',
    examples: [`${exampleId} --reason "stuck, ticket 4711"`],
    subject,
    question: (id) => `Disconnect the session ${id}?`,
    request: (api, id, { reason }: ReasonOptions) =>
      api.POST('/api/v1/admin/sessions/{id}/disconnect', { ...byId(id), body: { reason } }),
    print: ({ session }) => printFields(sessionFields(session)),
  })
  defineRequest(sessions.command('transition'), {
    description: 'make a transition by hand; the workflow refuses one that is not legal',
    examples: [`${exampleId} --to stopped`],
    subject,
    options: [reasonOption, choiceOption('--to <state>', 'the state to change to', relayStates).makeOptionMandatory()],
    request: (api, id, { to, reason }: ChangeOptions & { readonly to: Session['state'] }) =>
      api.POST('/api/v1/admin/sessions/{id}/transition', { ...byId(id), body: { to, ...defined({ reason }) } }),
    print: ({ session }) => printFields(sessionFields(session)),
  })
}

function addShowCommand(sessions: Command): void {
  defineRequest(sessions.command('show'), {
    description: 'show a session, its transitions, and what its workflow says',
    subject,
    request: (api, id) => api.GET('/api/v1/admin/sessions/{id}', byId(id)),
    failure: describeInspection,
    print: ({ session, live, temporal_ui_url, transitions }) => {
      printFields([
        ...sessionFields(session),
        ['workflow', temporal_ui_url],
        ['workflow says', live ? `${live.state} (${live.reason})` : 'no answer'],
        ['next deadline', formatTime(live?.deadline_at)],
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
        transitions,
      )
    },
  })
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
