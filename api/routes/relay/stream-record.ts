/** The stream record of a session: how its stream was, and what happened, over its whole time. */
import { z } from 'zod'
import { listRecordEvents } from '../../../db/relay/record-events.ts'
import { findSessionRange, listPoints } from '../../../db/relay/stream-record.ts'
import type { TimedPoint } from '../../../domain/relay/stream-record.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { presentRecordEvent, RecordEvent } from '../../views/record-event.ts'
import { route } from '../route.ts'

/** A time with the offset of its zone. */
const Time = z.iso
  .datetime({ offset: true })
  // With its offset it may be in a year that a reply could not state. What is no time is refused by the format.
  .refine((text) => !Number.isFinite(Date.parse(text)) || new Date(text).toISOString().length === 24, {
    error: 'must be in the years 0 to 9999 in UTC',
  })

const PointView = z
  .object({
    at: timestamp.describe('The beginning of the 10 seconds.'),
    bitrate_kbps: z.int().describe('The highest one. 0 while no stream comes in.'),
    links: z.int().describe('The fewest that carried the stream, 63 at most. 0 while no stream comes in.'),
    loss_pct: z.number().nullable().describe('The greatest one. Null while no stream comes in, or without a figure.'),
    rtt_ms: z
      .int()
      .nullable()
      .describe('The longest one, 16,382 at most. Null while no stream comes in, or without a figure.'),
    players: z.int().describe('At the end of the 10 seconds, 63 at most.'),
  })
  .meta({ id: 'StreamPoint' })

const presentPoint = ({ at, bitrateKbps, links, lossTenths, rttMs, players }: TimedPoint) => ({
  at: new Date(at * 1000).toISOString(),
  bitrate_kbps: bitrateKbps,
  links,
  loss_pct: lossTenths === null ? null : lossTenths / 10,
  rtt_ms: rttMs,
  players,
})

export const show = route.userOrApp({
  id: 'getStreamRecord',
  summary: 'Show the stream record of a session',
  description:
    'How the stream of a session was, in points of 10 seconds, and what happened. Points are kept for 30 days, unless the service is set otherwise; events as long as the session. 10 seconds without a report of the relay have no point.',
  params: z.object({ id }),
  query: z.object({
    from: Time.optional().describe('The beginning of the session without it.'),
    to: Time.optional().describe('The end of the session, or the present, without it. Must be after `from`.'),
  }),
  answers: {
    200: z.object({
      session_id: id,
      from: timestamp,
      to: timestamp,
      points: z.array(PointView).describe('Oldest first.'),
      events: z.array(RecordEvent).describe('The first one first.'),
    }),
  },
  refuses: ['not_found'],
  handle: async ({ caller, params, query }, { sql }) => {
    const session = await findSessionRange(sql, caller.userId, params.id)
    if (!session) throw new Refusal('not_found')
    const from = query.from === undefined ? session.from : new Date(query.from)
    const to = query.to === undefined ? session.to : new Date(query.to)
    if (from >= to && (query.from ?? query.to) !== undefined)
      throw new Refusal('invalid_request', { message: 'query field from: must be before `to`' })
    const [points, events] = await Promise.all([
      listPoints(sql, params.id, { from, to }),
      listRecordEvents(sql, params.id, { from, to }),
    ])
    return ok({
      session_id: params.id,
      from: from.toISOString(),
      to: to.toISOString(),
      points: points.map(presentPoint),
      events: events.map(presentRecordEvent),
    })
  },
})
