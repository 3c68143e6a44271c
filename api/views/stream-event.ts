/** A stream event in the history of a session and in the messages of `GET /relay/ws?events=1`. */
import { z } from 'zod'
import type { NumberedStreamEventRow, StreamEventRow } from '../../db/relay/stream-events.ts'
import { streamEventKinds } from '../../domain/relay/stream-events.ts'
import { timestamp } from '../http/schemas.ts'

export const StreamEventView = z
  .object({
    kind: z
      .enum(streamEventKinds)
      .describe(
        '`stream_weak`: below the limit for 3 s. `stream_lost`: no data for 2 s. `stream_recovered`: good for 2 s.',
      ),
    at: timestamp,
    bitrate_kbps: z.int().describe('Over the last second before it.'),
  })
  .meta({ id: 'StreamEvent' })

export const presentStreamEvent = ({ kind, at, bitrateKbps }: StreamEventRow): z.infer<typeof StreamEventView> => ({
  kind,
  at: at.toISOString(),
  bitrate_kbps: bitrateKbps,
})

/** @param isCurrent whether the client gets it as the present state, and not because it has just happened. */
export const streamEventMessage = (row: NumberedStreamEventRow, isCurrent: boolean): string =>
  JSON.stringify({
    type: 'stream_event',
    session_id: row.sessionId,
    ...presentStreamEvent(row),
    ...(isCurrent ? { is_current: true } : {}),
  })
