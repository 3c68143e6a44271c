/** Notifies accounts of streams that have been lost or weak for as long as they chose, and of streams that are back. */
import type { AccountNotification } from '../../domain/notifications/kinds.ts'
import { judgeNotice, rememberSent, type StreamNotice } from '../../domain/notifications/stream-notices.ts'
import type { Database, Sql } from '../connection.ts'
import { lockUser } from '../identity/users.ts'
import type { Notify } from '../notifications/settings.ts'
import {
  claimStreamNotice,
  deleteStreamNotice,
  listDueSessions,
  readNoticedSession,
  scheduleStreamNotice,
} from '../notifications/stream-notices.ts'

/** A loss that was notified is looked at again this often, in case that its end was not scheduled. */
const lookAgainMillis = 600_000

/**
 * Looks at the sessions that are due, each in a transaction of its own: what is notified is remembered with its
 * message, or neither. Safe to repeat, to run concurrently and to abort.
 * @returns the number of sessions, `rowsMax` at most.
 */
export async function notifyOfStreams(
  sql: Database,
  rowsMax: number,
  notify: Notify,
  signal?: AbortSignal,
): Promise<number> {
  const sessions = await listDueSessions(sql, rowsMax)
  for (const { sessionId, userId } of sessions) {
    if (signal?.aborted) break
    await sql.begin(async (tx) => {
      // Serialises the notifications of an account, whose number in an hour is limited, and its erasure.
      if (await lockUser(tx, userId)) await notifyOfStream(tx, sessionId, userId, notify)
    })
  }
  return sessions.length
}

async function notifyOfStream(tx: Sql, sessionId: string, userId: string, notify: Notify): Promise<void> {
  const claimed = await claimStreamNotice(tx, sessionId)
  const session = claimed && (await readNoticedSession(tx, sessionId, claimed.seenNumber))
  if (!session) return
  const { state, reason, nowMillis, delaySeconds, events } = session
  const judged = judgeNotice(claimed, {
    events,
    isEnding: state === 'stopped' || (state === 'grace' && reason === 'stop_requested'),
    delayMillis: delaySeconds * 1000,
    now: nowMillis,
  })
  const { notice, pendingUntil } = judged
  const isSent = notice !== undefined && (await notify(tx, userId, toNotification(sessionId, session, notice)))
  const memory = isSent ? rememberSent(judged.memory, notice) : judged.memory
  const lookAt = pendingUntil ?? (memory.lostAt === null ? undefined : nowMillis + lookAgainMillis)
  if (lookAt === undefined) await deleteStreamNotice(tx, sessionId)
  else await scheduleStreamNotice(tx, sessionId, memory, lookAt)
}

function toNotification(
  sessionId: string,
  { connectionId, region }: { readonly connectionId: string; readonly region: string },
  { kind, event, lostAt }: StreamNotice,
): AccountNotification {
  const at = new Date(event.at).toISOString()
  const data = { session_id: sessionId, connection_id: connectionId, region, at }
  if (kind === 'stream_lost') return { kind, timestamp: at, data }
  const bitrate = { bitrate_kbps: event.bitrateKbps }
  if (kind === 'stream_weak') return { kind, timestamp: at, data: { ...data, ...bitrate } }
  const since = lostAt ?? event.at
  const away = { lost_at: new Date(since).toISOString(), away_seconds: Math.round((event.at - since) / 100) / 10 }
  return { kind, timestamp: at, data: { ...data, ...bitrate, ...away } }
}
