/** Figures of all live relay sessions, for the metrics. */
import type { Presence } from '../../domain/relay/health.ts'
import type { Sql } from '../connection.ts'
import { presenceColumns, toPresence } from '../presence.ts'

/** How far behind its deadline a session counts as stuck. Outages of the service extend deadlines by less. */
const lateSecondsMin = 120

interface LiveFigures {
  readonly region: string
  readonly provisioning: number
  readonly active: number
  readonly grace: number
  /** Sessions whose workflow should have ended their state. An active session has no deadline here. */
  readonly stuckProvisioning: number
  readonly stuckGrace: number
  /** Older than `maxSessionSeconds`. */
  readonly overlong: number
  /** Active sessions that have not reported for half of `healthTimeoutSeconds`. */
  readonly quiet: number
  readonly api: Presence
  /** What the sessions that have reported recently receive and serve. */
  readonly streams: number
  readonly bitrateKbps: number
  readonly links: number
  readonly players: number
  /** Null without a stream whose encoder states it, as is the loss. */
  readonly meanRttMs: number | null
  readonly meanLossPct: number | null
}

interface LiveFigureLimits {
  readonly provisionTimeoutSeconds: number
  readonly healthTimeoutSeconds: number
  readonly maxSessionSeconds: number
}

/**
 * The regions that have live sessions. All figures come from one scan: a statement for each of them would join the
 * sessions with their reports again, and the table of reports has a row for every session of the past, too.
 */
export async function readLiveFigures(
  sql: Sql,
  { provisionTimeoutSeconds, healthTimeoutSeconds, maxSessionSeconds }: LiveFigureLimits,
): Promise<LiveFigures[]> {
  const isLate = sql`< now() - make_interval(secs => ${lateSecondsMin})`
  const rows = await sql<(Omit<LiveFigures, 'api'> & { apiForSeconds: number; apiLastSeenSeconds: number })[]>`
    select figures.*, ${presenceColumns(sql, 'api')} from presence api, (
      select s.region,
        (count(*) filter (where s.state = 'provisioning'))::int as provisioning,
        (count(*) filter (where s.state = 'active'))::int as active,
        (count(*) filter (where s.state = 'grace'))::int as grace,
        (count(*) filter (where s.state = 'provisioning'
          and s.created_at + make_interval(secs => ${provisionTimeoutSeconds}) ${isLate}))::int as stuck_provisioning,
        (count(*) filter (where s.state = 'grace' and s.grace_ends_at ${isLate}))::int as stuck_grace,
        (count(*) filter (where s.created_at < now() - make_interval(secs => ${maxSessionSeconds})))::int as overlong,
        -- A report that is too old to be joined is older than half the timeout.
        (count(*) filter (where s.state = 'active'
          and greatest(h.last_report_at, s.active_at) < now() - make_interval(secs => ${healthTimeoutSeconds / 2})))::int as quiet,
        (count(*) filter (where h.is_publishing))::int as streams,
        coalesce(sum(h.bitrate_kbps) filter (where h.is_publishing), 0)::float8 as bitrate_kbps,
        coalesce(sum(h.links) filter (where h.is_publishing), 0)::int as links,
        coalesce(sum(h.players), 0)::int as players,
        avg(h.rtt_ms) filter (where h.is_publishing)::float8 as mean_rtt_ms,
        avg(h.loss_pct) filter (where h.is_publishing)::float8 as mean_loss_pct
      from relay_sessions s left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
        and h.last_report_at > now() - make_interval(secs => ${healthTimeoutSeconds})
      where s.state <> 'stopped'
      group by s.region
    ) figures
    where api.role = 'api'`
  return rows.map((row) => ({ ...row, api: toPresence(row, 'api') }))
}
