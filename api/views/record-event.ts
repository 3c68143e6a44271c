/** An event in the stream record of a session. `kind` says which members it has. */
import { z } from 'zod'
import type { RecordEventRow } from '../../db/relay/record-events.ts'
import { initiators, lossCauses, relayReasons, relayStates, sessionDetails } from '../../domain/relay/session.ts'
import { timestamp } from '../http/schemas.ts'
import { presentStreamEvent, StreamEventView } from './stream-event.ts'

const Replaced = z.object({
  kind: z.literal('relay_replaced'),
  at: timestamp.describe('When the relay failed: the end of its open report, or its last report.'),
  away_seconds: z.number().describe('From then until another relay had taken over.'),
  cause: z.enum(lossCauses),
})

const Transition = z.object({
  kind: z.literal('transition'),
  at: timestamp,
  state: z.enum(relayStates).describe('Of the session, from then on.'),
  reason: z.enum(relayReasons),
  initiator: z.enum(initiators),
  detail: z.enum(sessionDetails).optional().describe('Only of the last transition, where there is one.'),
})

export const RecordEvent = z
  .discriminatedUnion('kind', [StreamEventView, Replaced, Transition])
  .describe('Clients ignore an event of another kind.')
  .meta({ id: 'RecordEvent' })

export function presentRecordEvent(row: RecordEventRow): z.infer<typeof RecordEvent> {
  const at = row.at.toISOString()
  switch (row.kind) {
    case 'transition': {
      const { kind, state, reason, initiator, detail } = row
      return { kind, at, state, reason, initiator, ...(detail === null ? {} : { detail }) }
    }
    case 'relay_replaced':
      return { kind: row.kind, at, away_seconds: Math.round(row.awaySeconds * 10) / 10, cause: row.cause }
    default:
      return presentStreamEvent(row)
  }
}
