/** The activity of an account: its audit entries, merged by time with the starts and ends of its relay sessions. */
import { type ActivityGroup, actionFilterOf, includesRelays } from '../../domain/identity/activity-groups.ts'
import type { Initiator, ProvisioningDetail, RelayReason } from '../../domain/relay/session.ts'
import type { AuditRow } from '../audit.ts'
import type { Fragment, Sql } from '../connection.ts'

interface Position {
  /** Orders entries of the same time. Unique. */
  readonly key: string
  /** Microseconds since 1970, decimal digits. */
  readonly micros: string
}

type AuditActivity = Position & AuditRow & { readonly kind: 'audit' }

/** The start or the end of a relay session. */
export interface RelayActivity extends Position {
  readonly kind: 'relay_started' | 'relay_stopped'
  readonly at: Date
  readonly sessionId: string
  readonly connectionId: string
  readonly region: string
  /** The client id of the app that started it; null at an end, and when the user did. */
  readonly startedByApp: string | null
  /** The next five are null at a start. */
  readonly reason: RelayReason | null
  readonly provisioningDetail: ProvisioningDetail | null
  readonly initiator: Initiator | null
  /** The transition to the grace in which the session ended; null when it ended in none. */
  readonly graceReason: RelayReason | null
  readonly graceInitiator: Initiator | null
}

export type ActivityRow = AuditActivity | RelayActivity

interface ActivityFilter {
  readonly userId: string
  /** All groups when undefined. */
  readonly group: ActivityGroup | undefined
  /** The last entry on the previous page. */
  readonly before: Position | undefined
}

/**
 * One page, newest first. Each part reads at most a page by its index, and only the newest of all parts are returned.
 */
export async function listActivity(sql: Sql, filter: ActivityFilter, limit: number): Promise<ActivityRow[]> {
  const [entries, starts, ends] = await Promise.all([
    listEntries(sql, filter, limit),
    includesRelays(filter.group) ? listStarts(sql, filter, limit) : [],
    includesRelays(filter.group) ? listEnds(sql, filter, limit) : [],
  ])
  return [...entries, ...starts, ...ends].sort(newestFirst).slice(0, limit)
}

function newestFirst(a: Position, b: Position): number {
  const byTime = Number(BigInt(b.micros) - BigInt(a.micros))
  return byTime === 0 ? (a.key < b.key ? 1 : -1) : byTime
}

const microsOf = (sql: Sql, at: Fragment) => sql`(extract(epoch from ${at}) * 1000000)::bigint::text`

/** The condition on time alone uses the index. */
const isBefore = (sql: Sql, { before }: ActivityFilter, at: Fragment, key: Fragment) => {
  if (!before) return sql``
  const time = sql`(timestamptz 'epoch' + ${before.micros}::bigint * interval '1 microsecond')`
  return sql`and ${at} <= ${time} and (${at} < ${time} or ${key} collate "C" < ${before.key})`
}

function listEntries(sql: Sql, filter: ActivityFilter, limit: number): Promise<AuditActivity[]> {
  const { actions, isExclusion } = actionFilterOf(filter.group)
  const isListed = sql`action = any(${actions as string[]}::text[])`
  const key = sql`'audit-' || lpad(id::text, 19, '0')`
  return sql<AuditActivity[]>`
    select 'audit' as kind, ${key} as key, ${microsOf(sql, sql`at`)} as micros,
      id, at, initiator, action, user_id, ip, client, client_kind, detail, attempts, last_at,
      attempts is not null and attempt_source is null as has_several_sources
    from audit_entries
    where user_id = ${filter.userId} and ${isExclusion ? sql`not ${isListed}` : isListed} ${isBefore(sql, filter, sql`at`, key)}
    order by at desc, id desc limit ${limit}`
}

function listStarts(sql: Sql, filter: ActivityFilter, limit: number): Promise<RelayActivity[]> {
  const key = sql`'relay-started-' || s.id::text`
  return sql<RelayActivity[]>`
    select 'relay_started' as kind, ${key} as key, ${microsOf(sql, sql`s.created_at`)} as micros, s.created_at as at,
      s.id as session_id, s.connection_id, s.region, s.started_by_app, null as reason, null as provisioning_detail, null as initiator,
      null as grace_reason, null as grace_initiator
    from relay_sessions s
    where s.user_id = ${filter.userId} ${isBefore(sql, filter, sql`s.created_at`, key)}
    order by s.created_at desc, s.id desc limit ${limit}`
}

function listEnds(sql: Sql, filter: ActivityFilter, limit: number): Promise<RelayActivity[]> {
  const key = sql`'relay-stopped-' || s.id::text`
  return sql<RelayActivity[]>`
    select 'relay_stopped' as kind, ${key} as key, ${microsOf(sql, sql`s.stopped_at`)} as micros, s.stopped_at as at,
      s.id as session_id, s.connection_id, s.region, null as started_by_app, s.reason, s.detail as provisioning_detail, latest.initiator,
      grace.reason as grace_reason, grace.initiator as grace_initiator
    from relay_sessions s
      left join relay_transitions latest on latest.session_id = s.id and latest.version = s.version
      left join relay_transitions grace
        on grace.session_id = s.id and grace.version = s.version - 1 and latest.from_state = 'grace'
    where s.user_id = ${filter.userId} and s.state = 'stopped' ${isBefore(sql, filter, sql`s.stopped_at`, key)}
    order by s.stopped_at desc, s.id desc limit ${limit}`
}
