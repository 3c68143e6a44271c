/** Figures of all live relay sessions, for the metrics. */
import type { RelayState } from '../domain/relay-session.ts'
import type { Sql } from './connection.ts'

/** How far behind its deadline a session counts as stuck. Outages of the service extend deadlines by less. */
const lateSecondsMin = 120

export interface StuckSessions {
  readonly region: string
  readonly state: RelayState
  readonly sessions: number
}

/** Sessions whose workflow should have ended their state. An active session has no deadline here. */
export const countStuckSessions = async (sql: Sql, provisionTimeoutSeconds: number): Promise<StuckSessions[]> =>
  sql<StuckSessions[]>`
    select region, state, count(*)::int as sessions from relay_sessions
    where state in ('provisioning', 'grace') and case state
      when 'provisioning' then created_at + make_interval(secs => ${provisionTimeoutSeconds})
      else grace_ends_at end < now() - make_interval(secs => ${lateSecondsMin})
    group by region, state`

export interface RegionIngest {
  readonly region: string
  readonly streams: number
  readonly bitrateKbps: number
  readonly links: number
  readonly players: number
  /** Null without a stream whose encoder states it, as is the loss. */
  readonly meanRttMs: number | null
  readonly meanLossPct: number | null
}

/** What the live sessions that have reported recently receive and serve, by region. */
export const sumIngestByRegion = async (sql: Sql, reportSecondsMax: number): Promise<RegionIngest[]> =>
  sql<RegionIngest[]>`
    select s.region, count(*) filter (where h.is_publishing)::int as streams,
      coalesce(sum(h.bitrate_kbps) filter (where h.is_publishing), 0)::float8 as bitrate_kbps,
      coalesce(sum(h.links) filter (where h.is_publishing), 0)::int as links,
      coalesce(sum(h.players), 0)::int as players,
      avg(h.rtt_ms) filter (where h.is_publishing)::float8 as mean_rtt_ms,
      avg(h.loss_pct) filter (where h.is_publishing)::float8 as mean_loss_pct
    from relay_sessions s join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
    where s.state <> 'stopped' and h.last_report_at > now() - make_interval(secs => ${reportSecondsMax})
    group by s.region`
