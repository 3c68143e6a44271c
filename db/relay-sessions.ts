/** Relay sessions: reading them, and taking commands into their inbox. Moves are in `relay-moves.ts`. */
import { first, type Sql } from './connection.ts'
import type { StoredSessionTokens, StoredStreamToken } from './sealed-tokens.ts'

export type RelayState = 'provisioning' | 'active' | 'grace' | 'stopped'
export type RelayReason =
  | 'relay_ready'
  | 'provision_failed'
  | 'provision_timeout'
  | 'health_lost'
  | 'health_restored'
  | 'start_requested'
  | 'stop_requested'
  | 'force_disconnected'
  | 'grace_elapsed'
export type RelayCommand = 'run' | 'stop' | 'stop_now' | 'disconnect'
export type RelayActor = 'user' | 'operator' | 'relay' | 'timer' | 'system'

export interface RelaySessionRow extends StoredSessionTokens {
  userId: string
  connectionId: string
  region: string
  state: RelayState
  reason: RelayReason
  version: number
  command: RelayCommand
  commandSeq: number
  commandActor: RelayActor
  commandDeliveredSeq: number
  instanceId: string | null
  relayHost: string | null
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
  id, user_id, connection_id, region, state, reason, version, command, command_seq, command_actor, command_delivered_seq,
  instance_id, relay_host, srtla_port, publish_port, play_port, stats_port,
  pair_token, pair_token_sealed, relay_ws_token, relay_ws_token_sealed,
  created_at, active_at, grace_started_at, grace_ends_at, stopped_at`

export const relaySessionById = async (sql: Sql, id: string): Promise<RelaySessionRow | undefined> =>
  first(await sql<RelaySessionRow[]>`select ${relaySessionColumns(sql)} from relay_sessions where id = ${id}`)

/** All live sessions of a user, oldest first. */
export const liveRelaySessions = async (sql: Sql, userId: string): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    select ${relaySessionColumns(sql)} from relay_sessions
    where user_id = ${userId} and state <> 'stopped' order by created_at, id`

/** Those of the named sessions that are live. */
export const liveAmong = async (sql: Sql, ids: readonly string[]): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    select ${relaySessionColumns(sql)} from relay_sessions where id = any(${ids}::uuid[]) and state <> 'stopped'`

export interface LiveRelaysAnswer {
  streamToken: StoredStreamToken
  sessions: RelaySessionRow[]
}

/** Of an account that is gone. */
export const noLiveRelays: LiveRelaysAnswer = {
  streamToken: { streamToken: null, streamTokenSealed: null },
  sessions: [],
}

/**
 * For each user, in their order: the stream token and all live sessions, oldest first, those that were ordered to disconnect
 * last: their connections may have others already. One round trip for all.
 */
export async function liveRelaysOf(sql: Sql, userIds: readonly string[]): Promise<LiveRelaysAnswer[]> {
  const rows = await sql<(RelaySessionRow & StoredStreamToken & { ownerId: string })[]>`
    select u.id as owner_id, u.stream_token, u.stream_token_sealed, s.*
    from users u left join lateral (
      select ${relaySessionColumns(sql)} from relay_sessions where user_id = u.id and state <> 'stopped'
    ) s on true
    where u.id = any(${[...new Set(userIds)]}::uuid[]) order by s.command = 'disconnect', s.created_at, s.id`
  const answers = new Map<string, LiveRelaysAnswer>()
  for (const row of rows) {
    const { streamToken: stream_token, streamTokenSealed: stream_token_sealed } = row
    const answer = answers.get(row.ownerId) ?? {
      streamToken: { streamToken: stream_token, streamTokenSealed: stream_token_sealed },
      sessions: [],
    }
    if (row.id !== null) answer.sessions.push(row)
    answers.set(row.ownerId, answer)
  }
  return userIds.map((userId) => answers.get(userId) ?? noLiveRelays)
}

/** A user's session by its id, or the newest one of a connection; stopped ones too. */
export const ownedRelaySession = async (
  sql: Sql,
  userId: string,
  by: { sessionId: string } | { connectionId: string },
): Promise<RelaySessionRow | undefined> =>
  first(
    'sessionId' in by
      ? await sql<RelaySessionRow[]>`
          select ${relaySessionColumns(sql)} from relay_sessions where user_id = ${userId} and id = ${by.sessionId}`
      : await sql<RelaySessionRow[]>`
          select ${relaySessionColumns(sql)} from relay_sessions where user_id = ${userId} and connection_id = ${by.connectionId}
          order by state = 'stopped', created_at desc limit 1`,
  )

export interface RelaySessionFilter {
  readonly state?: RelayState | undefined
  readonly region?: string | undefined
  readonly userId?: string | undefined
  /** The last session of the page before, by its id. */
  readonly after?: string | undefined
}

/** Sessions for operators, newest first, one page. */
export const listRelaySessions = async (
  sql: Sql,
  filter: RelaySessionFilter,
  limit: number,
): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    select ${relaySessionColumns(sql)} from relay_sessions
    where true
      ${filter.state ? sql`and state = ${filter.state}` : sql``}
      ${filter.region ? sql`and region = ${filter.region}` : sql``}
      ${filter.userId ? sql`and user_id = ${filter.userId}` : sql``}
      ${filter.after ? sql`and (created_at, id) < (select created_at, id from relay_sessions where id = ${filter.after})` : sql``}
    order by created_at desc, id desc limit ${limit}`

/** The api sends a command on at once; when that fails, a job tries again after this many seconds. */
export const deliverAfterSeconds = 3

/**
 * Puts a command into a live session's inbox and answers the row with its new number; nothing when the session is stopped.
 * A disconnect stands: nothing that comes after it brings the session back. A second stop does not wait for the grace.
 */
export const recordCommand = async (
  sql: Sql,
  sessionId: string,
  command: RelayCommand,
  actor: RelayActor,
): Promise<RelaySessionRow | undefined> =>
  first(
    await sql<RelaySessionRow[]>`
      update relay_sessions set
        command = case
          when command = 'disconnect' then command
          when command in ('stop', 'stop_now') and ${command} = 'stop' then 'stop_now'
          else ${command} end,
        command_actor = case when command = 'disconnect' then command_actor else ${actor} end,
        -- The clock's own time: the transaction may have begun before a move that it waited for.
        command_seq = command_seq + 1, commanded_at = clock_timestamp(),
        deliver_at = clock_timestamp() + make_interval(secs => ${deliverAfterSeconds}), delivery_attempts = 0
      where id = ${sessionId} and state <> 'stopped'
      returning ${relaySessionColumns(sql)}`,
  )

/**
 * Orders all of a user's relays off, as a downgrade does. Answers the rows that now have a command to deliver. Every
 * statement that locks several sessions locks them in the order of their ids, or two of them could deadlock.
 */
export const disconnectAll = async (sql: Sql, userId: string, actor: RelayActor): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    with live as (
      select id as live_id from relay_sessions
      where user_id = ${userId} and state <> 'stopped' and command <> 'disconnect' order by id for no key update
    )
    update relay_sessions set command = 'disconnect', command_actor = ${actor}, command_seq = command_seq + 1,
      commanded_at = clock_timestamp(), deliver_at = clock_timestamp() + make_interval(secs => ${deliverAfterSeconds}),
      delivery_attempts = 0
    from live where id = live_id
    returning ${relaySessionColumns(sql)}`

/** Keeps that the actor has the session's command of this number and all before it. */
export const markCommandDelivered = async (sql: Sql, sessionId: string, seq: number): Promise<void> => {
  await sql`update relay_sessions set command_delivered_seq = greatest(command_delivered_seq, ${seq}) where id = ${sessionId}`
}

export interface DeliveredCommand {
  readonly id: string
  readonly seq: number
}

/** The same for several sessions in one write. Answers nothing for each. */
export async function markCommandsDelivered(sql: Sql, delivered: readonly DeliveredCommand[]): Promise<undefined[]> {
  await sql`
    with asked as (
      select s.id, max(d.seq) as seq
      from unnest(${delivered.map((one) => one.id)}::uuid[], ${delivered.map((one) => one.seq)}::int[]) as d (id, seq)
        join relay_sessions s on s.id = d.id
      group by s.id
    ), locked as (
      select s.id, asked.seq from relay_sessions s join asked on asked.id = s.id order by s.id for no key update of s
    )
    update relay_sessions s set command_delivered_seq = greatest(command_delivered_seq, locked.seq)
    from locked where s.id = locked.id`
  return delivered.map(() => undefined)
}

/** A stopped session has nothing left to be delivered. */
const isUndelivered = (sql: Sql) => sql`command_delivered_seq < command_seq and state <> 'stopped'`

/** Live sessions with a command that their actor is not known to have, whose next try is due; the longest due first. */
export const undeliveredCommands = async (sql: Sql, limit: number): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    select ${relaySessionColumns(sql)} from relay_sessions
    where ${isUndelivered(sql)} and deliver_at <= now()
    order by deliver_at limit ${limit}`

const deliveryBackoffSecondsMax = 600

/** Puts the next try off, longer after each failed one: commands that can be delivered do not wait behind it. */
export const postponeDelivery = async (sql: Sql, sessionId: string, seq: number): Promise<void> => {
  await sql`
    update relay_sessions set delivery_attempts = delivery_attempts + 1,
      deliver_at = now() + make_interval(secs => least(${deliveryBackoffSecondsMax},
        ${deliverAfterSeconds} * power(2, least(delivery_attempts, 20))))
    where id = ${sessionId} and command_seq = ${seq}`
}

/** How many commands wait to be delivered, and the age of the oldest, in seconds. */
export async function oldestUndelivered(sql: Sql): Promise<{ commands: number; oldestSeconds: number }> {
  const row = first(
    await sql<{ commands: number; oldestSeconds: number }[]>`
      select count(*)::int as commands, coalesce(extract(epoch from now() - min(commanded_at)), 0)::float8 as oldest_seconds
      from relay_sessions where ${isUndelivered(sql)}`,
  )
  return row ?? { commands: 0, oldestSeconds: 0 }
}

/** Live sessions whose workflow was started some time ago, so that Temporal should list it. */
export const startedSessions = async (sql: Sql, afterSeconds: number): Promise<{ id: string; state: RelayState }[]> =>
  sql<{ id: string; state: RelayState }[]>`
    select id, state from relay_sessions
    where state <> 'stopped' and command_delivered_seq > 0 and created_at < now() - make_interval(secs => ${afterSeconds})
    order by created_at, id`

/** Those of the named sessions that made no move for `afterSeconds`, and those that do not exist. */
export const settledAmong = async (sql: Sql, ids: readonly string[], afterSeconds: number): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      select asked.id from unnest(${ids}::uuid[]) as asked (id)
      where not exists (select from relay_transitions t
        where t.session_id = asked.id and t.at > now() - make_interval(secs => ${afterSeconds}))`
  ).map((row) => row.id)

const signalBackoffSecondsMax = 60

/**
 * Those of the sessions that may be signalled now. Each signal makes the session's next one wait longer, until it moves or
 * needs none for a while: a workflow that cannot act would otherwise fill its history with signals.
 */
export const claimSignals = async (sql: Sql, ids: readonly string[]): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      with due as (
        select id from relay_sessions where id = any(${ids}::uuid[]) and coalesce(signal_at <= now(), true)
        order by id for no key update
      ), claimed as (
        update relay_sessions s set
          signal_attempts = case when signal_at > now() - make_interval(secs => ${2 * signalBackoffSecondsMax})
            then signal_attempts + 1 else 0 end,
          signal_at = now() + make_interval(secs => least(${signalBackoffSecondsMax}, 2 * power(2, least(20,
            case when signal_at > now() - make_interval(secs => ${2 * signalBackoffSecondsMax}) then signal_attempts + 1 else 0 end))))
        from due where s.id = due.id
        returning s.id
      )
      select id from claimed
      -- A workflow without a row is signalled as it is found.
      union all select asked.id from unnest(${ids}::uuid[]) as asked (id)
      where not exists (select from relay_sessions s where s.id = asked.id)`
  ).map((row) => row.id)

export interface BoundInstance {
  readonly instanceId: string
  readonly host: string
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  readonly statsPort: number
}

/** Binds the instance to its session and answers whether it has reported health already. */
export async function bindInstance(sql: Sql, sessionId: string, instance: BoundInstance): Promise<boolean> {
  const row = first(
    await sql<{ reported: boolean }[]>`
      with bound as (
        update relay_sessions set
          instance_id = ${instance.instanceId}, relay_host = ${instance.host}, srtla_port = ${instance.srtlaPort},
          publish_port = ${instance.publishPort}, play_port = ${instance.playPort}, stats_port = ${instance.statsPort},
          instance_bound_at = now(), instance_missing_since = null
        where id = ${sessionId} and state <> 'stopped' returning id, region
      ), kept as (
        insert into instances (instance_id, session_id, region) select ${instance.instanceId}, id, region from bound
        on conflict (instance_id) do update set gone_at = null, unowned_since = null
      )
      select exists (
        select from relay_health where session_id = ${sessionId} and instance_id = ${instance.instanceId}
      ) as reported from bound`,
  )
  return row?.reported ?? false
}

export interface TransitionRow {
  fromState: RelayState
  toState: RelayState
  reason: RelayReason
  actor: string
  at: Date
}

export const transitionsOf = async (sql: Sql, sessionId: string): Promise<TransitionRow[]> =>
  sql<TransitionRow[]>`
    select from_state, to_state, reason, actor, at from relay_transitions where session_id = ${sessionId} order by version`

/** Live sessions by region and state, for metrics and capacity. */
export const countLiveRelaySessions = async (
  sql: Sql,
): Promise<{ region: string; state: RelayState; sessions: number }[]> =>
  sql<{ region: string; state: RelayState; sessions: number }[]>`
    select region, state, count(*)::int as sessions from relay_sessions where state <> 'stopped' group by region, state`

export interface OperatorRequest {
  readonly id: string
  readonly ip: string
}

/** Keeps on a live session that an operator asks for a transition, in the place of an earlier request. */
export const recordOperatorRequest = async (sql: Sql, sessionId: string, request: OperatorRequest): Promise<void> => {
  await sql`
    update relay_sessions set operator_request = ${sql.json({ ...request })} where id = ${sessionId} and state <> 'stopped'`
}

/**
 * Takes the request back, in turn with its transition: true when it was still there, so that it will never be made; false
 * when it was made, or another request replaced it.
 */
export const withdrawOperatorRequest = async (sql: Sql, sessionId: string, requestId: string): Promise<boolean> =>
  (
    await sql`
      update relay_sessions set operator_request = null where id = ${sessionId} and operator_request ->> 'id' = ${requestId}`
  ).count === 1

/** Whether the request's transition was made: its audit entry is written in the same transaction. */
export const isRequestMade = async (
  sql: Sql,
  { userId }: Pick<RelaySessionRow, 'userId'>,
  requestId: string,
): Promise<boolean> =>
  first(
    await sql`
      select from audit_entries
      where user_id = ${userId} and action = 'session_moved' and detail ->> 'request_id' = ${requestId}`,
  ) !== undefined
