/** `svc incidents`: what the status page says about the past, and what operators add to it. */
import { Argument, type Command, Option } from 'commander'
import type { Reply } from '../../client/reply.ts'
import { incidentParts } from '../../domain/operations/incidents.ts'
import { byId, defined, defineRequest } from './commands.ts'
import { type ChangeOptions, choiceOption, exampleId, parseId, parseTime, reasonOption } from './options.ts'
import { type Column, type Field, formatTime, printFields, printTable } from './output.ts'

type Incident = Reply<'get', '/admin/incidents'>['incidents'][number]

const columns: readonly Column<Incident>[] = [
  { header: 'INCIDENT', value: ({ id }) => id },
  { header: 'REGION', value: ({ region }) => region },
  { header: 'PART', value: ({ part }) => part },
  { header: 'KIND', value: ({ kind }) => kind },
  { header: 'BEGAN', value: ({ began_at }) => formatTime(began_at) },
  { header: 'ENDED', value: ({ ended_at }) => formatTime(ended_at) },
  { header: 'NOTE', value: ({ note }) => note },
]

const textOption = new Option('--text <text>', 'what users read on the status page').makeOptionMandatory()

interface AddOptions extends ChangeOptions {
  readonly text: string
  readonly part: Incident['part']
  readonly region?: string
  readonly since?: string
}

export function addIncidentsCommands(program: Command): void {
  const incidents = program.command('incidents').description('incidents on the status page')
  const subject = { argument: new Argument('<incident>', 'id of the incident').argParser(parseId), example: exampleId }
  const print = ({ incident }: { readonly incident: Incident }) => printFields(incidentFields(incident))
  defineRequest(incidents.command('list'), {
    description: 'list the incidents of the last 90 days, newest first',
    request: (api) => api.GET('/api/v1/admin/incidents'),
    print: (reply) => printTable(columns, reply.incidents),
  })
  defineRequest(incidents.command('note'), {
    description: 'write what users read about an incident; it replaces the former note and is public at once',
    examples: [`${exampleId} --text "Our provider replaces a switch. More at 15:00 UTC."`],
    subject,
    options: [textOption, reasonOption],
    request: (api, id, { text, reason }: Pick<AddOptions, 'text' | 'reason'>) =>
      api.POST('/api/v1/admin/incidents/{id}/note', { ...byId(id), body: { note: text, ...defined({ reason }) } }),
    print,
  })
  defineRequest(incidents.command('add'), {
    description: 'add an incident that the service cannot measure; it is public at once',
    examples: [
      '--part site --text "The site is down."',
      '--region eu-central --part relays --text "Loss on all links."',
    ],
    options: [
      choiceOption('--part <part>', 'the part of the service', incidentParts).makeOptionMandatory(),
      textOption,
      new Option('--region <region>', 'id of the region; without it the whole service'),
      new Option('--since <time>', 'when it began; now by default').argParser(parseTime),
      reasonOption,
    ],
    request: (api, _, { part, text, region, since, reason }: AddOptions) =>
      api.POST('/api/v1/admin/incidents', {
        body: { part, note: text, ...defined({ region, began_at: since, reason }) },
      }),
    print,
  })
  defineRequest(incidents.command('end'), {
    description: 'end an incident that was added; measured ones end by themselves',
    subject,
    options: [reasonOption],
    request: (api, id, { reason }: ChangeOptions) =>
      api.POST('/api/v1/admin/incidents/{id}/end', { ...byId(id), body: defined({ reason }) }),
    print,
  })
}

const incidentFields = (incident: Incident): Field[] => [
  ['incident', incident.id],
  ['region', incident.region],
  ['part', incident.part],
  ['kind', incident.kind],
  ['title', incident.title],
  ['explanation', incident.explanation],
  ['note', incident.note],
  ['began', formatTime(incident.began_at)],
  ['ended', formatTime(incident.ended_at)],
]
