/** What an account has done in its first hour, as the service itself saw it. */
import type { Sql } from '../connection.ts'

export interface FirstStepsRow {
  readonly hasStartedRelay: boolean
  /** Whether video ever came in. */
  readonly hasSentVideo: boolean
  /** Whether a player ever played it. */
  readonly hasPlayed: boolean
}

/**
 * The columns of {@link FirstStepsRow} in `users`. Each is known from the sessions too, which are deleted after a
 * while, and which are read only until the account's own column is set.
 */
export const firstStepsColumns = (sql: Sql) => sql`
  first_video_at is not null or exists (
    select from relay_sessions started where started.user_id = users.id) as has_started_relay,
  first_video_at is not null or exists (
    select from relay_sessions s join relay_health h on h.session_id = s.id
    where s.user_id = users.id and (h.bytes_received > 0 or h.peak_bitrate_kbps > 0)) as has_sent_video,
  first_player_at is not null or exists (
    select from relay_sessions s join relay_health h on h.session_id = s.id
    where s.user_id = users.id and h.player_code = 'playing') as has_played`
