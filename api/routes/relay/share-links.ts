/** Share links: the bitrate and the stream events of one session, for all who have the link. */
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import { lockUser } from '../../../db/identity/users.ts'
import { findSessionRecord } from '../../../db/relay/history.ts'
import { deleteShareLink, findSharedSession, replaceShareLink } from '../../../db/relay/share-links.ts'
import { listStreamEvents } from '../../../db/relay/stream-events.ts'
import { listPoints } from '../../../db/relay/stream-record.ts'
import { invalidToken, Refusal } from '../../http/refusals.ts'
import { created, noContent, ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { createSecretToken, hashSecretToken } from '../../identity/secret-tokens.ts'
import { presentStreamEvent, StreamEventView } from '../../views/stream-event.ts'
import { route } from '../route.ts'

export const create = route.user({
  id: 'shareRelaySession',
  summary: 'Share a relay session',
  description:
    'Creates a link that shows the bitrate and the stream events of one session for 7 days, to all who have it, without names. It replaces the former link of the session, which ends at once. The address is in this reply only.',
  params: z.object({ id }),
  answers: { 201: z.object({ url: z.url(), expires_at: timestamp }) },
  refuses: ['not_found'],
  secret: true,
  handle: async ({ caller: { userId }, params, ip }, { sql, config }) => {
    const token = createSecretToken()
    const link = await sql.begin(async (tx) => {
      if (!(await lockUser(tx, userId))) throw invalidToken()
      const stored = await replaceShareLink(tx, userId, params.id, hashSecretToken(token))
      if (!stored) throw new Refusal('not_found')
      const detail = { session_id: params.id }
      await recordAuditEntry(tx, { initiator: 'user', action: 'share_link_created', userId, ip, detail })
      return stored
    })
    return created({ url: `${config.siteUrl}/shared/${token}`, expires_at: link.expiresAt.toISOString() })
  },
})

export const revoke = route.user({
  id: 'revokeSharedRelaySession',
  summary: 'End the share link of a relay session',
  description: 'Ends the link of a session at once. Safe to repeat, and without a link it does nothing.',
  params: z.object({ id }),
  answers: { 204: null },
  refuses: ['not_found'],
  handle: async ({ caller: { userId }, params, ip }, { sql }) => {
    await sql.begin(async (tx) => {
      await lockUser(tx, userId)
      if (await deleteShareLink(tx, userId, params.id)) {
        const detail = { session_id: params.id }
        await recordAuditEntry(tx, { initiator: 'user', action: 'share_link_revoked', userId, ip, detail })
      } else if (!(await findSessionRecord(tx, userId, params.id))) throw new Refusal('not_found')
    })
    return noContent()
  },
})

const SharedSession = z
  .object({
    started_at: timestamp,
    ended_at: timestamp.nullable().describe('Null while the session is live.'),
    expires_at: timestamp.describe('The end of the link.'),
    points: z
      .array(z.object({ at: timestamp, bitrate_kbps: z.int() }))
      .describe('The highest bitrate of each 10 seconds, oldest first.'),
    stream_events: z.array(StreamEventView).describe('The last thousand, the first one first.'),
  })
  .meta({ id: 'SharedRelaySession' })

export const show = route.none({
  id: 'getSharedRelaySession',
  summary: 'Show a shared relay session',
  description:
    'What a share link shows: times, bitrate and stream events, and nothing of the account, the connection or the region. 404 for an unknown, an expired and a revoked link alike.',
  params: z.object({ token: z.string().max(200) }),
  answers: { 200: SharedSession },
  refuses: ['not_found'],
  secret: true,
  handle: async ({ params }, { sql }) => {
    const session = await findSharedSession(sql, hashSecretToken(params.token))
    if (!session) throw new Refusal('not_found', { message: 'This link does not exist, or it has ended.' })
    const range = { from: session.createdAt, to: session.stoppedAt ?? new Date() }
    const [points, events] = await Promise.all([listPoints(sql, session.id, range), listStreamEvents(sql, session.id)])
    return ok({
      started_at: session.createdAt.toISOString(),
      ended_at: session.stoppedAt?.toISOString() ?? null,
      expires_at: session.expiresAt.toISOString(),
      points: points.map(({ at, bitrateKbps }) => ({
        at: new Date(at * 1000).toISOString(),
        bitrate_kbps: bitrateKbps,
      })),
      stream_events: events.map(presentStreamEvent),
    })
  },
})
