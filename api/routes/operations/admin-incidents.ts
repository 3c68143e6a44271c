/** Incidents for operators, who add notes, and what the service cannot measure. */
import { z } from 'zod'
import { hasIncident, listIncidents } from '../../../db/operations/incidents.ts'
import { addIncident, endIncident, noteIncident } from '../../../db/transactions/report-incident.ts'
import { incidentParts } from '../../../domain/operations/incidents.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, storableText, timestamp } from '../../http/schemas.ts'
import { IncidentView, presentIncident } from '../../views/public-incidents.ts'
import { route } from '../route.ts'
import { Reason, ReasonOnly } from '../schemas.ts'
import { incidentExample } from './incidents.ts'

const Note = storableText(1000).describe('Public, and shown as it is.')
const oneIncident = { answers: { 200: z.object({ incident: IncidentView }) } } as const
const examples: OperationExamples = {
  replies: { 200: { incident: { summary: 'The incident', value: { incident: incidentExample } } } },
}
const byId = { params: z.object({ id }), ...oneIncident } as const

export const listForOperators = route.operator({
  id: 'listIncidentsForOperators',
  summary: 'List incidents',
  description: 'The incidents that `GET /incidents` shows, newest first, at most 500.',
  answers: { 200: z.object({ incidents: z.array(IncidentView) }) },
  refuses: [],
  handle: async (_, { sql, config }) =>
    ok({ incidents: (await listIncidents(sql)).map((row) => presentIncident(row, config.regions)) }),
})

export const add = route.operator({
  ...oneIncident,
  id: 'addIncident',
  summary: 'Add an incident',
  description:
    'Adds what the service cannot measure. It is public at once, and stays open until an operator ends it. Refused with `not_found` for an unknown region, and with `invalid_transition` while one of the same part and region that was added is open.',
  body: z.object({
    region: storableText(64).optional().describe('Without it the incident is one of the whole service.'),
    part: z.enum(incidentParts),
    note: Note,
    began_at: timestamp.optional().describe('Now by default, and at the latest.'),
    reason: Reason,
  }),
  refuses: ['not_found', 'invalid_transition'],
  examples,
  handle: async ({ body, ip }, { sql, config }) => {
    const { region = null, part, note, began_at: beganAt, reason } = body
    if (region !== null && !config.regions.some((known) => known.region === region))
      throw new Refusal('not_found', { message: 'No region has this id.' })
    const row = await addIncident(sql, { region, part, note, beganAt }, { ip, reason })
    if (!row)
      throw new Refusal('invalid_transition', {
        message: 'An incident of this part and region is open already. Change its note, or end it first.',
      })
    return ok({ incident: presentIncident(row, config.regions) })
  },
})

export const note = route.operator({
  ...byId,
  id: 'noteIncident',
  summary: 'Write the note of an incident',
  description: 'Replaces what the operator says about an incident. It is public at once. Safe to repeat.',
  body: z.object({ note: Note, reason: Reason }),
  refuses: ['not_found'],
  examples,
  handle: async ({ params, body, ip }, { sql, config }) => {
    const row = await noteIncident(sql, params.id, body.note, { ip, reason: body.reason })
    if (!row) throw new Refusal('not_found')
    return ok({ incident: presentIncident(row, config.regions) })
  },
})

export const end = route.operator({
  ...byId,
  id: 'endIncident',
  summary: 'End an incident that was added',
  description:
    'Refused with `invalid_transition` for an incident that has ended, and for a measured one, which ends when its part has been fine for five minutes.',
  body: ReasonOnly,
  refuses: ['not_found', 'invalid_transition'],
  examples,
  handle: async ({ params, body, ip }, { sql, config }) => {
    const row = await endIncident(sql, params.id, { ip, reason: body.reason })
    if (row) return ok({ incident: presentIncident(row, config.regions) })
    if (!(await hasIncident(sql, params.id))) throw new Refusal('not_found')
    throw new Refusal('invalid_transition', { message: 'Only an open incident that an operator added can be ended.' })
  },
})
