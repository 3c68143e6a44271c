/** Rows of relay sessions. Commands are in `relay-commands.ts`, transitions are written by `relay-transitions.ts`. */
import type { Fragment } from 'postgres'
import type { IngestEngine } from '../../domain/relay/ingest.ts'
import type { Initiator, RelayCommand, RelayReason, RelayState, SessionDetail } from '../../domain/relay/session.ts'
import type { PhoneCode, PlayerCode } from '../../domain/relay/signal.ts'
import { first, type Sql } from '../connection.ts'
import { emailColumn, maskEmails, type WithEmail, type WithMaskedEmail } from '../masked-emails.ts'
import type { SessionTokenField, StoredSessionTokens, StoredStreamToken } from '../sealed-tokens.ts'

export interface RelaySessionRow extends StoredSessionTokens {
  userId: string
  connectionId: string
  region: string
  state: RelayState
  reason: RelayReason
  /** What the reason leaves open. */
  detail: SessionDetail | null
  version: number
  command: RelayCommand
  commandSeq: number
  commandInitiator: Initiator
  commandDeliveredSeq: number
  instanceId: string | null
  /** The number of the instance in the session: 1 for the first one. */
  binding: number
  /** Whether a replacement may be in another region. */
  mayMove: boolean
  relayHost: string | null
  /** The name that leads to {@link relayHost}; null where there is none, or it does not yet. */
  relayName: string | null
  /** Null where the instance has no IPv6 address beside {@link relayHost}. */
  relayHostV6: string | null
  srtlaPort: number | null
  publishPort: number | null
  playPort: number | null
  statsPort: number | null
  createdAt: Date
  activeAt: Date | null
  graceStartedAt: Date | null
  graceEndsAt: Date | null
  stoppedAt: Date | null
}

/** The columns of {@link RelaySessionRow}. */
export const relaySessionColumns = (sql: Sql) => sql`
  id, user_id, connection_id, region, state, reason, detail, version, command, command_seq, command_initiator, command_delivered_seq,
  instance_id, binding, may_move, relay_host, relay_name, relay_host_v6, srtla_port, publish_port, play_port, stats_port,
  pair_token_sealed, relay_ws_token_sealed,
  created_at, active_at, grace_started_at, grace_ends_at, stopped_at`

/** What the bound instance reported about its stream; all null before the first summary. */
export interface IngestRow {
  isPublishing: boolean | null
  bitrateKbps: number | null
  links: number | null
  usualLinks: number | null
  players: number | null
  stalledPlayers: number | null
  rttMs: number | null
  lossPct: number | null
  repeatPct: number | null
  phoneCode: PhoneCode | null
  phoneSince: Date | null
  playerCode: PlayerCode | null
  playerSince: Date | null
  engine: IngestEngine | null
  publishingSince: Date | null
  ingestAt: Date | null
  ingestAgeSeconds: number | null
  /** Whether the report of the relay ended, or is late, and none has come since; null before the first. */
  isSuspect: boolean | null
}

/**
 * The columns of {@link IngestRow}, of `relay_health h`. @param instanceId the instance of the session, whose report
 * counts.
 */
export const ingestColumns = (sql: Sql, instanceId: Fragment) => sql`
  case when h.instance_id = ${instanceId} then h.is_publishing end as is_publishing, h.bitrate_kbps, h.links,
  h.usual_links, h.players, h.stalled_players, h.rtt_ms, h.loss_pct, h.repeat_pct, h.phone_code, h.phone_since,
  h.player_code, h.player_since, case when h.instance_id = ${instanceId} then h.engine end as engine, h.publishing_since,
  h.ingest_at, extract(epoch from now() - h.ingest_at)::float8 as ingest_age_seconds,
  h.suspect_since > h.last_report_at as is_suspect`

/** What else decides about the signal path of a session. */
export interface PathRow {
  /** Since the session was started. */
  ageSeconds: number
  /** Since the way from the region's relays was seen open; null where no worker has looked at it. */
  pathSilentSeconds: number | null
}

/** The columns of {@link PathRow}. */
export const pathColumns = (sql: Sql, session: Fragment) => sql`
  extract(epoch from now() - ${session}.created_at)::float8 as age_seconds,
  (select extract(epoch from now() - seen_at)::float8 from report_paths p where p.region = ${session}.region)
    as path_silent_seconds`

/** The play key of the session's connection; null for a session that a former version started. */
export interface PlayerKeyColumns {
  playKeyId: string | null
  playKeySealed: string | null
}

/** The columns of {@link PlayerKeyColumns}, to be joined to `relay_sessions`. */
export const playerKey = (sql: Sql) => sql`
  select k.id as play_key_id, k.key_sealed as play_key_sealed from play_keys k
  where k.kind = 'connection' and k.user_id = relay_sessions.user_id and k.connection_id = relay_sessions.connection_id`

/** A session with everything that clients see of it. */
export type ShownSessionRow = RelaySessionRow & IngestRow & PathRow & PlayerKeyColumns

/** For a session that has just been created. */
export const withoutIngest = (row: RelaySessionRow & Partial<PlayerKeyColumns>): ShownSessionRow => ({
  playKeyId: null,
  playKeySealed: null,
  ...row,
  isPublishing: null,
  bitrateKbps: null,
  links: null,
  usualLinks: null,
  players: null,
  stalledPlayers: null,
  rttMs: null,
  lossPct: null,
  repeatPct: null,
  phoneCode: null,
  phoneSince: null,
  playerCode: null,
  playerSince: null,
  engine: null,
  publishingSince: null,
  ingestAt: null,
  ingestAgeSeconds: null,
  isSuspect: null,
  ageSeconds: 0,
  pathSilentSeconds: null,
})

/** A session with everything that operators see of it. */
export type OperatorSessionRow = ShownSessionRow & WithMaskedEmail

/** The columns of {@link ShownSessionRow} and others, up to its conditions. */
const selectShownAnd = (sql: Sql, others: Fragment) => sql`
  select ${relaySessionColumns(sql)}, ${pathColumns(sql, sql`relay_sessions`)}, ingest.*, player.* ${others}
  from relay_sessions left join lateral (
    ${playerKey(sql)}
  ) player on true left join lateral (
    select ${ingestColumns(sql, sql`relay_sessions.instance_id`)}
    from relay_health h where h.session_id = relay_sessions.id and h.instance_id = relay_sessions.instance_id
  ) ingest on true`

/** The columns of {@link ShownSessionRow}, up to its conditions. */
export const selectShown = (sql: Sql) => selectShownAnd(sql, sql``)

/** The columns of {@link OperatorSessionRow} before {@link maskEmails}, up to its conditions. */
const selectForOperators = (sql: Sql) => selectShownAnd(sql, sql`, ${emailColumn(sql, sql`relay_sessions.user_id`)}`)

export const findRelaySession = async (sql: Sql, id: string): Promise<ShownSessionRow | undefined> =>
  first(sql<ShownSessionRow[]>`${selectShown(sql)} where id = ${id}`)

export const findOperatorSessionRow = async (sql: Sql, id: string): Promise<OperatorSessionRow | undefined> =>
  maskEmails(await sql<WithEmail<OperatorSessionRow>[]>`${selectForOperators(sql)} where id = ${id}`)[0]

/**
 * The session with one of these hashes of a token, and its owner's stream token. A stopped session has no token, so
 * this is a live one.
 */
export async function findSessionByToken(
  sql: Sql,
  field: SessionTokenField,
  tokenHashes: readonly Buffer[],
): Promise<(RelaySessionRow & StoredStreamToken) | undefined> {
  const column = sql(`${field}_hash`)
  // As hexadecimal text: the driver would send an array of buffers as a single value.
  const hashes = tokenHashes.map((hash) => hash.toString('hex'))
  return await first(sql<(RelaySessionRow & StoredStreamToken)[]>`
    select s.*, u.stream_token_sealed from (
      select ${relaySessionColumns(sql)} from relay_sessions
      where ${column} = any (array(select decode(hash, 'hex') from unnest(${hashes}::text[]) hash))
    ) s join users u on u.id = s.user_id`)
}

/** A user's live sessions, oldest first. */
export const listLiveSessions = async (sql: Sql, userId: string): Promise<ShownSessionRow[]> =>
  sql<ShownSessionRow[]>`
    ${selectShown(sql)}
    where user_id = ${userId} and state <> 'stopped' order by created_at, id`

interface WatchedSessions {
  readonly sessionIds: readonly string[]
  readonly userIds: readonly string[]
}

/** These sessions in any state, and the live sessions of these users, oldest first. */
export const listWatchedSessions = async (
  sql: Sql,
  { sessionIds, userIds }: WatchedSessions,
): Promise<ShownSessionRow[]> =>
  sql<ShownSessionRow[]>`
    ${selectShown(sql)}
    where id in (
      select unnest(${sessionIds}::uuid[])
      union select id from relay_sessions where user_id = any(${userIds}::uuid[]) and state <> 'stopped'
    ) order by created_at, id`

/** The live ones of these sessions. */
export const findLiveSessions = async (sql: Sql, ids: readonly string[]): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    select ${relaySessionColumns(sql)} from relay_sessions where id = any(${ids}::uuid[]) and state <> 'stopped'`

export interface LiveRelays {
  readonly streamToken: StoredStreamToken
  /**
   * By age. Those with the command `disconnect` come last, because their connection may have a newer session.
   */
  readonly sessions: readonly ShownSessionRow[]
}

/**
 * How a user addresses a session: by its id, or as the newest one of a connection. A live session comes before stopped
 * ones.
 */
export type SessionAddress = { readonly sessionId: string } | { readonly connectionId: string }

/** The part of a statement that selects the user's session, from `from` on. */
export const fromOwned = (sql: Sql, userId: string, by: SessionAddress) =>
  'sessionId' in by
    ? sql`from relay_sessions where user_id = ${userId} and id = ${by.sessionId}`
    : sql`
        from relay_sessions where user_id = ${userId} and connection_id = ${by.connectionId}
        order by state = 'stopped', created_at desc limit 1`

export const findOwnedSession = async (
  sql: Sql,
  userId: string,
  by: SessionAddress,
): Promise<ShownSessionRow | undefined> =>
  first(sql<ShownSessionRow[]>`${selectShown(sql)} where id = (select id ${fromOwned(sql, userId, by)})`)

interface RelaySessionFilter {
  readonly state?: RelayState | undefined
  readonly region?: string | undefined
  readonly userId?: string | undefined
  /** The id of the last session of the previous page. */
  readonly after?: string | undefined
}

/** One page of sessions, newest first. */
export const listRelaySessions = async (
  sql: Sql,
  filter: RelaySessionFilter,
  limit: number,
): Promise<OperatorSessionRow[]> =>
  maskEmails(
    await sql<WithEmail<OperatorSessionRow>[]>`
      ${selectForOperators(sql)}
      where true
        ${filter.state ? sql`and state = ${filter.state}` : sql``}
        ${filter.region ? sql`and region = ${filter.region}` : sql``}
        ${filter.userId ? sql`and user_id = ${filter.userId}` : sql``}
        ${filter.after ? sql`and (created_at, id) < (select created_at, id from relay_sessions where id = ${filter.after})` : sql``}
      order by created_at desc, id desc limit ${limit}`,
  )

export interface TransitionRow {
  fromState: RelayState
  toState: RelayState
  reason: RelayReason
  initiator: Initiator
  /** What an operator who caused it lets the owner of the session read; null without it. */
  publicReason: string | null
  at: Date
}

export const listTransitions = async (sql: Sql, sessionId: string): Promise<TransitionRow[]> =>
  sql<TransitionRow[]>`
    select from_state, to_state, reason, initiator, public_reason, at from relay_transitions where session_id = ${sessionId} order by version`

/** Live sessions by region and state, for metrics. */
export const countLiveRelaySessions = async (
  sql: Sql,
): Promise<{ region: string; state: RelayState; sessions: number }[]> =>
  sql<{ region: string; state: RelayState; sessions: number }[]>`
    select region, state, count(*)::int as sessions from relay_sessions where state <> 'stopped' group by region, state`
