/** An event in the stream record of a session. `kind` says which members it has. */
import { z } from 'zod'
import type { RecordEventRow } from '../../db/relay/record-events.ts'
import { callerRoles } from '../../domain/relay/path-events.ts'
import { relayRefusals } from '../../domain/relay/refusals.ts'
import {
  initiators,
  lossCauses,
  relayCommands,
  relayReasons,
  relayStates,
  sessionDetails,
} from '../../domain/relay/session.ts'
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
  public_reason: z.string().optional().describe('What an operator who caused it says to the owner.'),
  detail: z.enum(sessionDetails).optional().describe('Only of the last transition, where there is one.'),
})

const Command = z.object({
  kind: z.literal('command'),
  at: timestamp,
  command: z
    .enum(relayCommands)
    .describe('`run`: start, or come back from a stop. `stop_now` and `disconnect`: at once.'),
  initiator: z.enum(initiators),
  client: z.string().nullable().describe('The app or plugin that gave it, by its name. A plugin chooses its own.'),
  public_reason: z.string().optional().describe('What an operator who gave it says to the owner.'),
})

const links = z.int().describe('The number of links.')

const LinksChanged = z.object({ kind: z.literal('links_changed'), at: timestamp, from: links, to: links })

const PlayerCame = z.object({
  kind: z.enum(['player_joined', 'player_left']),
  at: timestamp,
  players: z.int().describe('How many play after it.'),
})

const CallerRefused = z.object({
  kind: z.literal('caller_refused'),
  at: timestamp,
  reason: z.enum(relayRefusals),
  role: z.enum(callerRoles).describe('What the caller wanted to be.'),
  count: z
    .int()
    .describe('The callers since the last event of this reason and role, ten seconds before or longer ago.'),
})

export const RecordEvent = z
  .discriminatedUnion('kind', [StreamEventView, Replaced, Transition, Command, LinksChanged, PlayerCame, CallerRefused])
  .describe('Clients ignore an event of another kind.')
  .meta({ id: 'RecordEvent' })

export function presentRecordEvent(row: RecordEventRow): z.infer<typeof RecordEvent> {
  const at = row.at.toISOString()
  switch (row.kind) {
    case 'transition': {
      const { kind, state, reason, initiator, detail } = row
      return { kind, at, state, reason, initiator, ...publicReasonOf(row), ...(detail === null ? {} : { detail }) }
    }
    case 'command': {
      const { kind, command, initiator, client } = row
      return { kind, at, command, initiator, client, ...publicReasonOf(row) }
    }
    case 'links_changed':
    case 'player_joined':
    case 'player_left':
    case 'caller_refused':
      return { ...row, at }
    case 'relay_replaced':
      return { kind: row.kind, at, away_seconds: Math.round(row.awaySeconds * 10) / 10, cause: row.cause }
    default:
      return presentStreamEvent(row)
  }
}

const publicReasonOf = ({ publicReason }: { readonly publicReason: string | null }) =>
  publicReason === null ? {} : { public_reason: publicReason }
