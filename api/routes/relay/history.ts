/** The history of a user's relay sessions. It answers why a stream stopped, and contains no secrets in any state. */
import { z } from 'zod'
import {
  findSessionRecord,
  listEndedSessions,
  listLiveBitrates,
  type SessionRecordRow,
} from '../../../db/relay/history.ts'
import { listReplacements } from '../../../db/relay/replacements.ts'
import { listTransitions } from '../../../db/relay/sessions.ts'
import { findShareLink, type ShareLinkRow } from '../../../db/relay/share-links.ts'
import { listStreamEvents } from '../../../db/relay/stream-events.ts'
import { shownTotals } from '../../../domain/relay/ingest-totals.ts'
import { initiators, lossCauses, relayReasons, relayStates } from '../../../domain/relay/session.ts'
import { pageOf, present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { presentRecentBitrate, RecentBitrate } from '../../views/recent-bitrate.ts'
import { Detail, LiveFields, presentLiveFields } from '../../views/relay-session.ts'
import { presentTransition, TransitionView } from '../../views/relay-transition.ts'
import { presentStreamEvent, StreamEventView } from '../../views/stream-event.ts'
import { StreamTotals } from '../../views/stream-totals.ts'
import { route } from '../route.ts'
import { ConnectionId } from '../schemas.ts'

const pageSizeMax = 50

const SessionRecord = z
  .object({
    session_id: id,
    connection_id: z.string(),
    region: z.string(),
    state: z.enum(relayStates),
    reason: z.enum(relayReasons),
    detail: Detail,
    initiator: z.enum(initiators),
    cause: z
      .object({ reason: z.enum(relayReasons), initiator: z.enum(initiators) })
      .describe(
        'Why the session left its normal run: the transition to the grace in which it ended, or else its last one.',
      ),
    created_at: timestamp,
    active_at: timestamp.nullable(),
    stopped_at: timestamp.nullable(),
    seconds_used: z.int().describe('As the Time Bank counts them.'),
    ...StreamTotals.shape,
  })
  .meta({ id: 'RelaySessionRecord' })

function presentRecord(row: SessionRecordRow): z.infer<typeof SessionRecord> {
  const { reason } = row
  // Only its owner starts a session.
  const initiator = row.initiator ?? 'user'
  return present(SessionRecord, {
    ...row,
    ...shownTotals(row),
    sessionId: row.id,
    initiator,
    cause: { reason: row.graceReason ?? reason, initiator: row.graceInitiator ?? initiator },
  })
}

export const list = route.userOrApp({
  id: 'listRelaySessions',
  summary: 'List ended relay sessions',
  description:
    'Ended sessions, 50 a page; the one that ended last comes first. `cause` says why a session left its normal run. They contain no secrets.',
  query: z.object({
    connection_id: ConnectionId.optional(),
    cursor: id.optional(),
    limit: z.coerce.number().int().min(1).max(pageSizeMax).default(pageSizeMax).describe('Sessions per page.'),
  }),
  answers: { 200: z.object({ sessions: z.array(SessionRecord), next_cursor: id.nullable() }) },
  refuses: [],
  handle: async ({ caller, query }, { sql }) => {
    const filter = { connectionId: query.connection_id, after: query.cursor }
    const rows = await listEndedSessions(sql, caller.userId, filter, query.limit + 1)
    const page = pageOf(rows, { size: query.limit, presentRow: presentRecord, cursorOf: (row) => row.id })
    return ok({ sessions: page.items, next_cursor: page.next_cursor })
  },
})

const presentShareLink = ({ createdAt, expiresAt }: ShareLinkRow) => ({
  created_at: createdAt.toISOString(),
  expires_at: expiresAt.toISOString(),
})

export const show = route.userOrApp({
  id: 'getRelaySession',
  summary: 'Show a relay session',
  description:
    'One session in any state, with its transitions and the bitrate of the last ten minutes, of an ended session of those before its end.',
  params: z.object({ id }),
  answers: {
    200: z.object({
      session: SessionRecord.extend(LiveFields.shape),
      transitions: z.array(TransitionView),
      replacements: z
        .array(
          z.object({
            at: timestamp.describe('When the relay failed: the end of its open report, or its last report.'),
            away_seconds: z.number().describe('From then until another relay had taken over.'),
            cause: z.enum(lossCauses),
          }),
        )
        .describe('Relays of the session that failed and were replaced.'),
      stream_events: z.array(StreamEventView).describe('The last thousand, the first one first.'),
      recent_bitrate: RecentBitrate,
      share_link: z
        .object({ created_at: timestamp, expires_at: timestamp })
        .nullable()
        .describe('The link that shares the session, without its address; null without a valid one.'),
    }),
  },
  refuses: ['not_found'],
  handle: async ({ caller, params }, { sql, config }) => {
    const [row, transitions, replacements, streamEvents, shareLink] = await Promise.all([
      findSessionRecord(sql, caller.userId, params.id),
      listTransitions(sql, params.id),
      listReplacements(sql, params.id),
      listStreamEvents(sql, params.id),
      findShareLink(sql, params.id),
    ])
    if (!row) throw new Refusal('not_found')
    return ok({
      session: { ...presentRecord(row), ...presentLiveFields(row, config.relay) },
      transitions: transitions.map(presentTransition),
      replacements: replacements.map(({ failedAt, awaySeconds, cause }) => ({
        at: failedAt.toISOString(),
        away_seconds: Math.round(awaySeconds * 10) / 10,
        cause,
      })),
      stream_events: streamEvents.map(presentStreamEvent),
      recent_bitrate: presentRecentBitrate(row),
      share_link: shareLink ? presentShareLink(shareLink) : null,
    })
  },
})

export const bitrates = route.user({
  id: 'listRecentBitrates',
  summary: 'Show the bitrate of the last ten minutes of each live session',
  description: 'The highest bitrate of each 10 seconds of the last ten minutes, oldest first, for each live session.',
  answers: { 200: z.object({ sessions: z.array(z.object({ session_id: id, recent_bitrate: RecentBitrate })) }) },
  refuses: [],
  handle: async ({ caller }, { sql }) => {
    const rows = await listLiveBitrates(sql, caller.userId)
    return ok({ sessions: rows.map((row) => ({ session_id: row.id, recent_bitrate: presentRecentBitrate(row) })) })
  },
})
