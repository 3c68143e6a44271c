/** The connections of an account as a player's list shows them: each with its newest session. */
import type { IngestEngine } from '../../domain/relay/ingest.ts'
import type { RelayState } from '../../domain/relay/session.ts'
import type { Sql } from '../connection.ts'
import type { IngestRow } from './sessions.ts'

export interface IngestConnectionRow
  extends Pick<
    IngestRow,
    'isPublishing' | 'bitrateKbps' | 'links' | 'repeatPct' | 'publishingSince' | 'ingestAt' | 'ingestAgeSeconds'
  > {
  readonly label: string
  readonly name: string
  /** The port for players that the relays of the connection keep; null where they keep none. */
  readonly keptPlayPort: number | null
  /** Of the newest session, as the other columns; null when the connection has none. */
  readonly region: string | null
  readonly state: RelayState | null
  readonly relayHost: string | null
  readonly playPort: number | null
  readonly engine: IngestEngine | null
}

/** The connection that was used last comes first. */
export const listIngestConnections = async (sql: Sql, userId: string): Promise<IngestConnectionRow[]> =>
  sql<IngestConnectionRow[]>`
    select c.label, c.name, c.play_port as kept_play_port, newest.* from connections c
    left join lateral (
      select s.region, s.state, s.relay_host, s.play_port,
        h.is_publishing, h.bitrate_kbps, h.links, h.repeat_pct, h.engine, h.publishing_since, h.ingest_at,
        extract(epoch from now() - h.ingest_at)::float8 as ingest_age_seconds
      from relay_sessions s
        left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
      where s.user_id = c.user_id and s.connection_id = c.name
      order by s.state = 'stopped', s.command = 'disconnect', s.created_at desc limit 1
    ) newest on true
    where c.user_id = ${userId} and c.name is not null
    order by c.last_used_at desc, c.name`
