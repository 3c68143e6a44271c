/** The history of a user's relay sessions: how long each ran, what it received, and why it ended. */
import type { Initiator, RelayReason, RelayState, SessionDetail } from '../../domain/relay/session.ts'
import { first, type Sql } from '../connection.ts'
import { activeSeconds } from './health.ts'
import { type IngestRow, ingestColumns, type PathRow, pathColumns } from './sessions.ts'

export interface SessionRecordRow {
  id: string
  connectionId: string
  region: string
  state: RelayState
  reason: RelayReason
  /** What the reason leaves open. */
  detail: SessionDetail | null
  /** Who caused the last transition; null before the first one. */
  initiator: Initiator | null
  /** The transition to the grace that the last transition ended; null when it ended none. */
  graceReason: RelayReason | null
  graceInitiator: Initiator | null
  createdAt: Date
  activeAt: Date | null
  stoppedAt: Date | null
  secondsUsed: number
  activeSeconds: number
  secondsPublishing: number
  bytesReceived: number
  peakBitrateKbps: number
}

/** The columns of {@link SessionRecordRow}. The use is measured like the Time Bank does, a running relay until now. */
const recordColumns = (sql: Sql) => sql`
  s.id, s.connection_id, s.region, s.state, s.reason, s.detail, s.created_at, s.active_at, s.stopped_at,
  latest.initiator, grace.reason as grace_reason, grace.initiator as grace_initiator,
  (select coalesce(floor(sum(extract(epoch from coalesce(ended_at, now()) - started_at))), 0)::int
    from usage_intervals where session_id = s.id) as seconds_used,
  ${activeSeconds(sql)}, coalesce(h.seconds_publishing, 0) as seconds_publishing,
  coalesce(h.bytes_received, 0)::float8 as bytes_received, coalesce(h.peak_bitrate_kbps, 0) as peak_bitrate_kbps`

const recordTables = (sql: Sql) => sql`
  relay_sessions s
    left join relay_transitions latest on latest.session_id = s.id and latest.version = s.version
    left join relay_transitions grace
      on grace.session_id = s.id and grace.version = s.version - 1 and latest.from_state = 'grace'
    left join relay_health h on h.session_id = s.id`

interface HistoryFilter {
  readonly connectionId?: string | undefined
  /** The id of the last session of the previous page. */
  readonly after?: string | undefined
}

/** One page of a user's ended sessions; the one that ended last comes first. */
export const listEndedSessions = async (
  sql: Sql,
  userId: string,
  { connectionId, after }: HistoryFilter,
  limit: number,
): Promise<SessionRecordRow[]> =>
  sql<SessionRecordRow[]>`
    select ${recordColumns(sql)} from ${recordTables(sql)}
    where s.user_id = ${userId} and s.state = 'stopped'
      ${connectionId === undefined ? sql`` : sql`and s.connection_id = ${connectionId}`}
      ${
        after === undefined
          ? sql``
          : sql`and (s.stopped_at, s.id) < (
              select stopped_at, id from relay_sessions where id = ${after} and user_id = ${userId})`
      }
    order by s.stopped_at desc, s.id desc limit ${limit}`

export interface RecentBitrateRow {
  recentBitrateKbps: (number | null)[] | null
  recentSlot: number | null
  /** The end of the session, or now, in seconds since 1970 by the database's clock. */
  untilSeconds: number
}

// As JSON, because the driver reads a null in an array of numbers as NaN.
const bitrateColumns = (sql: Sql) => sql`
  to_json(h.recent_bitrate_kbps) as recent_bitrate_kbps, h.recent_slot,
  extract(epoch from coalesce(s.stopped_at, now()))::float8 as until_seconds`

/** The bitrates of a user's live sessions. */
export const listLiveBitrates = async (sql: Sql, userId: string): Promise<(RecentBitrateRow & { id: string })[]> =>
  sql<(RecentBitrateRow & { id: string })[]>`
    select s.id, ${bitrateColumns(sql)}
    from relay_sessions s join relay_health h on h.session_id = s.id
    where s.user_id = ${userId} and s.state <> 'stopped' order by s.created_at, s.id`

type ShownRecordRow = SessionRecordRow & IngestRow & PathRow & RecentBitrateRow & { graceStartedAt: Date | null }

/** A user's session in any state, with its present ingest and its recent bitrates. */
export const findSessionRecord = async (
  sql: Sql,
  userId: string,
  sessionId: string,
): Promise<ShownRecordRow | undefined> =>
  first(sql<ShownRecordRow[]>`
    select ${recordColumns(sql)},
      ${ingestColumns(sql, sql`s.instance_id`)}, ${pathColumns(sql, sql`s`)}, s.grace_started_at, ${bitrateColumns(sql)}
    from ${recordTables(sql)} where s.id = ${sessionId} and s.user_id = ${userId}`)
