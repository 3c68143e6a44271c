/**
 * Health reports of relays, and the sessions whose reports are missing. The rules of silence are in
 * `domain/relay/health.ts`.
 */

import type { ActiveObservation, Reception, ReportObservation } from '../../domain/relay/health.ts'
import { type IngestSummary, recentSlots, slotSeconds } from '../../domain/relay/ingest.ts'
import { bytesReceivedMax, secondsPublishingMax } from '../../domain/relay/ingest-totals.ts'
import type { RelayCommand, RelayReason, RelayState } from '../../domain/relay/session.ts'
import { type Fragment, first, hasRow, type Sql } from '../connection.ts'
import { currentEpoch } from '../epochs.ts'
import { joinPath, type ReceptionRow, receptionColumns, toReception } from '../presence.ts'
import { isRetired } from '../retired-instances.ts'
import type { BoundSession } from './missing-instances.ts'
import { type HealthReport, toRecords } from './report-records.ts'
import { type StoredStreamHistory, streamHistoryOf } from './stream-events.ts'

export interface ReportedSession {
  state: RelayState
  reason: RelayReason
  command: RelayCommand
  /** The instance that is bound to the session; null before one is. */
  boundInstanceId: string | null
  /**
   * Whether the report comes from an instance of another session: another one is bound to this session, or while none
   * is, its row in `instances` belongs to another session or to none, or is retired. An instance without a row is
   * accepted with a master secret only.
   */
  isOtherInstance: boolean
  /** Whether another instance has taken over from this one. */
  isReplaced: boolean
  /** Whether this one is to take over, with this report. */
  isReplacement: boolean
  /** When what its relay admits by changed last, in microseconds since 1970; 0 when it has not. */
  admissionRevision: number
  /** The id of the present epoch of the database. */
  epoch: string | null
  /** The last stream event of the session; null without one. */
  streamHistory: StoredStreamHistory | null
}

/**
 * Stores a batch of reports. Reports of an instance of another session are not stored, and of those for a session
 * that has stopped only the totals of the first minute are. A test compares the ingest columns with those that single
 * reports would leave.
 * @param ageSecondsMax the longest time between two summaries that counts as time with a stream.
 * @returns the session of each report, in their order; undefined for an unknown session.
 */
export async function recordReports(
  sql: Sql,
  reports: readonly HealthReport[],
  ageSecondsMax: number,
): Promise<(ReportedSession | undefined)[]> {
  /** By the process that states the total: a newer one than that of the row, an older one, or the same. */
  const byProcess = (newer: Fragment, older: Fragment, same: Fragment) => sql`case
          when excluded.instance_id <> h.instance_id or excluded.process_started_at_ms > h.process_started_at_ms
            then ${newer}
          when excluded.process_started_at_ms < h.process_started_at_ms then ${older}
          else ${same} end`
  const rows = await sql<(ReportedSession & { place: number })[]>`
    with report as (
      select r.* from json_to_recordset(${JSON.stringify(toRecords(reports))}::text::json) as r (
        place int, session_id uuid, instance_id text, has_own_secret bool, is_idle bool, is_publishing bool,
        bitrate_kbps int, links int2, players int2, stalled_players int2, usual_links int2, phone_code text, player_code text, rtt_ms real, loss_pct real, repeat_pct real, engine text, bytes_total bigint,
        publishing_ms bigint, started_at_ms bigint, peak_bitrate_kbps int, binding int, is_held bool,
        record_point bigint
      ), set_config('synchronous_commit', 'off', true)
    ), matched as (
      select r.*, s.state, s.reason, s.command, s.created_at, s.stopped_at, s.admission_revision::float8 as admission_revision, s.instance_id as bound_instance_id,
        -- A subquery in a case runs only for its branch: reports of bound sessions do not read instances.
        case when s.instance_id is not null then s.instance_id <> r.instance_id else coalesce((
          select i.session_id is distinct from s.id or i.retired_at is not null
          from instances i where i.instance_id = r.instance_id
        ), r.has_own_secret) end as is_other_instance,
        s.instance_id <> r.instance_id and r.binding < s.binding as is_replaced,
        case when s.instance_id <> r.instance_id and s.state = 'grace' and s.reason = 'health_lost' then exists (
          select from instances i where i.instance_id = r.instance_id and i.session_id = s.id
            and i.binding = s.binding + 1 and i.retired_at is null and i.gone_at is null
        ) else false end as is_replacement
      from report r join relay_sessions s on s.id = r.session_id
    ), storable as (
      select place, session_id, instance_id, is_idle, bytes_total, publishing_ms, started_at_ms, peak_bitrate_kbps, is_held,
        summary.*,
        -- Of a stopped session the time of the last report stays as it was.
        case when state = 'stopped' then created_at else now() end as reported_at
      from matched left join lateral (
        select is_publishing, bitrate_kbps, links, players, stalled_players, usual_links, phone_code, player_code, rtt_ms, loss_pct, repeat_pct, engine, record_point,
          floor(extract(epoch from now()) / ${slotSeconds}::int)::int as slot where state <> 'stopped'
      ) summary on true
      where not is_other_instance and (state <> 'stopped'
        or bound_instance_id is not null and stopped_at > now() - interval '1 minute')
    ), stored as (
      insert into relay_health as h (session_id, instance_id, last_report_at, idle_since, ingest_at, is_publishing,
        bitrate_kbps, links, players, stalled_players, usual_links, phone_code, phone_since, player_code, player_since,
        rtt_ms, loss_pct, repeat_pct, engine, publishing_since, bytes_total,
        publishing_ms, process_started_at_ms, bytes_received, seconds_publishing, peak_bitrate_kbps, recent_bitrate_kbps,
        recent_slot, is_held, record_points, record_slot)
      select distinct on (session_id) session_id, instance_id, reported_at, case when is_idle then now() end,
        case when is_publishing is not null then now() end, is_publishing, bitrate_kbps, links, players, stalled_players, usual_links,
        phone_code, case when phone_code is not null then now() end, player_code, case when player_code is not null then now() end,
        rtt_ms, loss_pct, repeat_pct, engine, case when is_publishing is not null then now() end, bytes_total,
        publishing_ms, started_at_ms, coalesce(bytes_total, 0), coalesce(publishing_ms, 0) / 1000::float8,
        peak_bitrate_kbps, case when is_publishing is not null then array[bitrate_kbps] end,
        case when is_publishing is not null then slot end, is_held,
        case when record_point is not null then array[record_point] end, case when record_point is not null then slot end
      from storable
      order by session_id, place desc
      on conflict (session_id) do update set
        is_held = excluded.is_held, instance_id = excluded.instance_id, last_report_at = greatest(h.last_report_at, excluded.last_report_at),
        -- A counter that has grown shows a stream between the reports.
        idle_since = case
          when excluded.idle_since is null then null
          when excluded.bytes_total > h.bytes_total then excluded.idle_since
          else coalesce(h.idle_since, excluded.idle_since) end,
        bytes_total = case
          when excluded.bytes_total is null then h.bytes_total
          else ${byProcess(sql`excluded.bytes_total`, sql`h.bytes_total`, sql`greatest(h.bytes_total, excluded.bytes_total)`)} end,
        publishing_ms = case
          when excluded.bytes_total is null then h.publishing_ms
          else ${byProcess(sql`excluded.publishing_ms`, sql`h.publishing_ms`, sql`greatest(h.publishing_ms, excluded.publishing_ms)`)} end,
        process_started_at_ms = case
          when excluded.bytes_total is null then h.process_started_at_ms
          when excluded.instance_id <> h.instance_id then excluded.process_started_at_ms
          else greatest(h.process_started_at_ms, excluded.process_started_at_ms) end,
        bytes_received = least(${bytesReceivedMax}::bigint, h.bytes_received + case
          when excluded.bytes_total is null then 0
          else ${byProcess(sql`excluded.bytes_total`, sql`0`, sql`greatest(0, excluded.bytes_total - coalesce(h.bytes_total, 0))`)} end),
        -- The rest is as it was when the report does not state whether a stream comes in.
        ingest_at = coalesce(excluded.ingest_at, h.ingest_at),
        is_publishing = coalesce(excluded.is_publishing, h.is_publishing),
        bitrate_kbps = coalesce(excluded.bitrate_kbps, h.bitrate_kbps),
        links = coalesce(excluded.links, h.links),
        players = coalesce(excluded.players, h.players),
        stalled_players = coalesce(excluded.stalled_players, h.stalled_players),
        usual_links = case when excluded.ingest_at is null then h.usual_links else excluded.usual_links end,
        phone_code = coalesce(excluded.phone_code, h.phone_code),
        phone_since = case when excluded.phone_code <> h.phone_code or h.phone_code is null then excluded.phone_since else h.phone_since end,
        player_code = coalesce(excluded.player_code, h.player_code),
        player_since = case when excluded.player_code <> h.player_code or h.player_code is null then excluded.player_since else h.player_since end,
        rtt_ms = case when excluded.ingest_at is null then h.rtt_ms else excluded.rtt_ms end,
        loss_pct = case when excluded.ingest_at is null then h.loss_pct else excluded.loss_pct end,
        repeat_pct = case when excluded.ingest_at is null then h.repeat_pct else excluded.repeat_pct end,
        engine = case when excluded.ingest_at is null then h.engine else excluded.engine end,
        publishing_since = case
          when excluded.is_publishing <> h.is_publishing or h.is_publishing is null then excluded.publishing_since
          else h.publishing_since end,
        peak_bitrate_kbps = greatest(h.peak_bitrate_kbps, excluded.peak_bitrate_kbps),
        seconds_publishing = least(${secondsPublishingMax}::float8, h.seconds_publishing + case
          when excluded.publishing_ms is null and h.is_publishing and excluded.is_publishing
            then least(greatest(0, extract(epoch from excluded.ingest_at - h.ingest_at)), ${ageSecondsMax}::float8)
          when excluded.publishing_ms is null then 0
          else ${byProcess(sql`excluded.publishing_ms / 1000::float8`, sql`0`, sql`greatest(0, excluded.publishing_ms - coalesce(h.publishing_ms, h.seconds_publishing * 1000)) / 1000`)} end),
        recent_bitrate_kbps = case
          when excluded.recent_slot is null then h.recent_bitrate_kbps
          when h.recent_slot is null or excluded.recent_slot - h.recent_slot >= ${recentSlots}::int
            then excluded.recent_bitrate_kbps
          when excluded.recent_slot <= h.recent_slot then trim_array(h.recent_bitrate_kbps, 1)
            || greatest(h.recent_bitrate_kbps[cardinality(h.recent_bitrate_kbps)], excluded.recent_bitrate_kbps[1])
          else (h.recent_bitrate_kbps || array_fill(null::int, array[excluded.recent_slot - h.recent_slot - 1])
            || excluded.recent_bitrate_kbps)
            [cardinality(h.recent_bitrate_kbps) + excluded.recent_slot - h.recent_slot - ${recentSlots}::int + 1 :]
          end,
        recent_slot = greatest(h.recent_slot, excluded.recent_slot),
        -- A trigger copies the points of the ten minutes before to stream_records when others begin.
        record_points = case
          when excluded.record_slot is null then h.record_points
          when h.record_slot is null or excluded.record_slot / ${recentSlots}::int > h.record_slot / ${recentSlots}::int
            then excluded.record_points
          when excluded.record_slot <= h.record_slot then trim_array(h.record_points, 1)
            || merge_stream_points(h.record_points[cardinality(h.record_points)], excluded.record_points[1])
          else h.record_points || array_fill(0::bigint, array[excluded.record_slot - h.record_slot - 1])
            || excluded.record_points
          end,
        record_slot = greatest(h.record_slot, excluded.record_slot)
    )
    select place, state, reason, command, bound_instance_id, is_other_instance, coalesce(is_replaced, false) as is_replaced,
      is_replacement, admission_revision, ${currentEpoch(sql)} as epoch, ${streamHistoryOf(sql, sql`matched.session_id`)} as stream_history
    from matched`
  const sessions = new Map(rows.map(({ place, ...session }) => [place, session] as const))
  return reports.map((_, index) => sessions.get(index))
}

export interface IngestSummaryRow extends Omit<IngestSummary, 'stalledPlayers' | 'usualLinks' | 'phone' | 'player'> {
  /** When the relay stated the summary. */
  ingestAt: Date
  publishingSince: Date
  bytesReceived: number
  peakBitrateKbps: number
  secondsPublishing: number
  activeSeconds: number
}

/** How long a session `s` has been active, until now or its end; 0 before. */
export const activeSeconds = (sql: Sql) =>
  sql`coalesce(extract(epoch from coalesce(s.stopped_at, now()) - s.active_at), 0)::float8 as active_seconds`

/** The last summary and the totals of a session; undefined before the first summary. */
export const findIngestSummary = async (sql: Sql, sessionId: string): Promise<IngestSummaryRow | undefined> =>
  first(sql<IngestSummaryRow[]>`
    select is_publishing, bitrate_kbps, links, players, rtt_ms, loss_pct, repeat_pct, engine, ingest_at, publishing_since,
      bytes_received::float8, peak_bitrate_kbps, seconds_publishing, ${activeSeconds(sql)}
    from relay_health h join relay_sessions s on s.id = h.session_id
    where session_id = ${sessionId} and is_publishing is not null`)

/** Whether the bound instance of a session has reported. */
export const hasReported = async (sql: Sql, sessionId: string): Promise<boolean> =>
  hasRow(sql`
    select from relay_health h join relay_sessions s on s.id = h.session_id and s.instance_id = h.instance_id
    where h.session_id = ${sessionId}`)

interface QuietSession extends BoundSession, ActiveObservation {
  /** Whether its last report was held open. */
  readonly isHeld: boolean
}

/** Active sessions without a report for longer than `quietSeconds`. */
export async function listQuietSessions(sql: Sql, quietSeconds: number): Promise<QuietSession[]> {
  const rows = await sql<(Omit<QuietSession, keyof Reception> & ReceptionRow)[]>`
    select s.id, s.instance_id, s.region, active_in_region,
      (select extract(epoch from clock_timestamp() - last_report_at)::float8 from relay_health h
        where h.session_id = s.id and h.instance_id = s.instance_id) as last_report_seconds,
      coalesce((select is_held from relay_health h
        where h.session_id = s.id and h.instance_id = s.instance_id), false) as is_held,
      extract(epoch from clock_timestamp() - active_at)::float8 as active_seconds, ${receptionColumns(sql)}
    from presence api, relay_sessions s join (
      select region, count(*)::int as active_in_region from relay_sessions where state = 'active' group by region
    ) counted using (region) ${joinPath(sql, sql`s.region`)}
    where api.role = 'api' and s.state = 'active' and s.active_at < now() - make_interval(secs => ${quietSeconds})
      -- Of the reports, which include those of all sessions of the past, only recent ones are joined.
      and not exists (
        select from relay_health h where h.session_id = s.id and h.instance_id = s.instance_id
          and h.last_report_at >= now() - make_interval(secs => ${quietSeconds}))`
  return rows.map((row) => ({ ...row, ...toReception(row) }))
}

/** A relay that may be lost, unless it has reported within the last seconds. */
export interface Suspicion extends BoundSession {
  readonly quietSeconds: number
}

/** Records that the open report of a relay ended, or that its next one is late. The next report makes this outdated. */
export const recordSuspicions = async (sql: Sql, suspects: readonly Suspicion[]): Promise<undefined[]> => {
  await sql`
    update relay_health h set suspect_since = now()
    from unnest(${suspects.map(({ id }) => id)}::uuid[], ${suspects.map(({ instanceId }) => instanceId)}::text[],
      ${suspects.map(({ quietSeconds }) => quietSeconds)}::float8[]) as s (session_id, instance_id, quiet_seconds)
    where h.session_id = s.session_id and h.instance_id = s.instance_id
      and h.last_report_at <= now() - make_interval(secs => s.quiet_seconds)
      and (h.suspect_since is null or h.suspect_since < h.last_report_at)`
  return suspects.map(() => undefined)
}

/** Where a relay answers whether it runs. */
export interface ProbedRelay extends BoundSession {
  readonly region: string
  readonly providerId: string | null
  readonly host: string
  readonly statsPort: number
}

const probedColumns = (sql: Sql) => sql`
  s.id, s.instance_id, s.region, i.provider_id, s.relay_host as host, s.stats_port`

/** Active sessions whose relay is suspect: nothing was heard of it since. */
export const listSuspects = async (sql: Sql, limit: number): Promise<ProbedRelay[]> =>
  sql<ProbedRelay[]>`
    select ${probedColumns(sql)}
    from relay_sessions s join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
      left join instances i on i.instance_id = s.instance_id
    where s.state = 'active' and h.suspect_since > h.last_report_at and s.stats_port is not null
      and (h.gone_at is null or h.gone_at < h.last_report_at)
    order by h.suspect_since limit ${limit}`

/** The relays of sessions that have become active lately, the last one first. */
export const listNewRelays = async (sql: Sql, limit: number): Promise<ProbedRelay[]> =>
  sql<ProbedRelay[]>`
    select ${probedColumns(sql)}
    from relay_sessions s left join instances i on i.instance_id = s.instance_id
    where s.state = 'active' and s.stats_port is not null and s.instance_bound_at > now() - interval '30 seconds'
    order by s.instance_bound_at desc limit ${limit}`

/** A part of the relays of active sessions, in the order of the sessions' ids. @param after null for the first part. */
export const listRelaysAfter = async (sql: Sql, after: string | null, limit: number): Promise<ProbedRelay[]> =>
  sql<ProbedRelay[]>`
    select ${probedColumns(sql)}
    from relay_sessions s left join instances i on i.instance_id = s.instance_id
    where s.state = 'active' and s.stats_port is not null ${after === null ? sql`` : sql`and s.id > ${after}`}
    order by s.id limit ${limit}`

/** Records that a relay was proved to be gone. A report after it shows that it is not. */
export const recordGone = async (sql: Sql, { id, instanceId }: BoundSession): Promise<void> => {
  await sql`update relay_health set gone_at = now() where session_id = ${id} and instance_id = ${instanceId}`
}

/** Active sessions whose relay was proved to be gone and has not reported since. */
export const listGone = async (sql: Sql, limit: number): Promise<BoundSession[]> =>
  sql<BoundSession[]>`
    select s.id, s.instance_id from relay_sessions s
      join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
    where s.state = 'active' and h.gone_at >= h.last_report_at limit ${limit}`

/** Sessions that wait for a report although it came: the signal of the API was lost. */
export async function listMissedReports(sql: Sql, limit: number): Promise<{ ready: string[]; restored: string[] }> {
  const rows = await sql<{ id: string; state: RelayState }[]>`
    select s.id, s.state from relay_sessions s
    join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
    where s.state in ('provisioning', 'grace') and h.last_report_at < now() - interval '2 seconds'
      and (s.state = 'provisioning' or (s.reason = 'health_lost' and h.last_report_at > s.grace_started_at
        and not ${isRetired(sql, sql`s.instance_id`)}))
    limit ${limit}`
  const idsIn = (state: RelayState) => rows.filter((row) => row.state === state).map((row) => row.id)
  return { ready: idsIn('provisioning'), restored: idsIn('grace') }
}

interface UnreportedInstance extends BoundSession, ReportObservation {
  readonly region: string
  /** Since the instance was bound to its session. */
  readonly boundSeconds: number
  /** Whether it was ready before the session, and so should report at once. */
  readonly isWarm: boolean
}

/**
 * Sessions that are provisioning on an instance that was bound longer than `boundSeconds` ago and has never reported.
 */
export async function listUnreportedInstances(
  sql: Sql,
  boundSeconds: number,
  limit: number,
): Promise<UnreportedInstance[]> {
  const rows = await sql<(Omit<UnreportedInstance, keyof Reception | 'lastReportSeconds'> & ReceptionRow)[]>`
    select s.id, s.instance_id, s.region,
      extract(epoch from clock_timestamp() - s.instance_bound_at)::float8 as bound_seconds,
      coalesce(i.is_warm, false) as is_warm, ${receptionColumns(sql)}
    from relay_sessions s join presence api on api.role = 'api' left join instances i on i.instance_id = s.instance_id
      ${joinPath(sql, sql`s.region`)}
    where s.state = 'provisioning' and s.instance_id is not null
      and s.instance_bound_at < clock_timestamp() - make_interval(secs => ${boundSeconds})
      and not exists (select from relay_health h where h.session_id = s.id and h.instance_id = s.instance_id)
    limit ${limit}`
  return rows.map((row) => ({ ...row, lastReportSeconds: null, ...toReception(row) }))
}

/**
 * Instances that were to take over in a session longer than `secondsMin` ago and have not reported. `isWarm`: it was
 * ready before, and so should have reported at once.
 */
export async function listUnreportedReplacements(
  sql: Sql,
  secondsMin: number,
  limit: number,
): Promise<UnreportedInstance[]> {
  const rows = await sql<(Omit<UnreportedInstance, keyof Reception | 'lastReportSeconds'> & ReceptionRow)[]>`
    select s.id, i.instance_id, i.region, i.is_warm,
      extract(epoch from clock_timestamp() - coalesce(i.assigned_at, i.launched_at))::float8 as bound_seconds,
      ${receptionColumns(sql)}
    from relay_sessions s join instances i on i.session_id = s.id and i.binding > s.binding
      and i.retired_at is null and i.gone_at is null
      join presence api on api.role = 'api' ${joinPath(sql, sql`i.region`)}
    where s.state = 'grace' and s.reason = 'health_lost'
      and coalesce(i.assigned_at, i.launched_at) < clock_timestamp() - make_interval(secs => ${secondsMin})
    limit ${limit}`
  return rows.map((row) => ({ ...row, lastReportSeconds: null, ...toReception(row) }))
}

/** Active sessions that are older than `ageSeconds` and through which no stream has come in for `idleSeconds`. */
export const listIdleSessions = async (sql: Sql, ageSeconds: number, idleSeconds: number): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      select s.id from relay_sessions s join relay_health h on h.session_id = s.id
      where s.state = 'active' and s.created_at < now() - make_interval(secs => ${ageSeconds})
        and h.idle_since < now() - make_interval(secs => ${idleSeconds})`
  ).map((row) => row.id)
