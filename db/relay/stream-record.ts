/** The stream records of sessions. `health.ts` adds the points, and triggers store the parts of ten minutes. */
import { recentSlots, slotSeconds } from '../../domain/relay/ingest.ts'
import { joinPoints, type TimedPoint, unpackPoints } from '../../domain/relay/stream-record.ts'
import { first, type Sql } from '../connection.ts'

/** A part of a session's time. */
export interface TimeRange {
  readonly from: Date
  readonly to: Date
}

/** From the beginning of a user's session until its end, or now; undefined for the session of another user. */
export const findSessionRange = async (sql: Sql, userId: string, sessionId: string): Promise<TimeRange | undefined> =>
  first(sql<TimeRange[]>`
    select created_at as "from", coalesce(stopped_at, now()) as "to" from relay_sessions
    where id = ${sessionId} and user_id = ${userId}`)

/** The points of the slots that the range covers, also of those that it covers in part, oldest first. */
export async function listPoints(sql: Sql, sessionId: string, range: TimeRange): Promise<TimedPoint[]> {
  const [from, to] = [+range.from / 1000 - slotSeconds, +range.to / 1000]
  // One statement, since a part of the present may become one of the past at any time.
  const parts = await sql<{ beganAt: number; points: Uint8Array }[]>`
    select extract(epoch from began_at)::float8 as began_at, points from stream_records
    where session_id = ${sessionId} and began_at > to_timestamp(${from - recentSlots * slotSeconds}::float8)
      and began_at < to_timestamp(${to}::float8)
    union all select (record_slot - cardinality(record_points) + 1) * ${slotSeconds}::float8, pack_stream_points(record_points)
    from relay_health where session_id = ${sessionId} and record_slot is not null
    order by began_at`
  const points = joinPoints(parts.map(({ beganAt, points: packed }) => unpackPoints(beganAt, packed)))
  return points.filter(({ at }) => at > from && at < to)
}
