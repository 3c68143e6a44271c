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
  user_id: string
  connection_id: string
  region: string
  state: RelayState
  reason: RelayReason
  version: number
  command: RelayCommand
  command_seq: number
  command_actor: RelayActor
  command_delivered_seq: number
  instance_id: string | null
  relay_host: string | null
  srtla_port: number | null
  publish_port: number | null
  play_port: number | null
  stats_port: number | null
  created_at: Date
  active_at: Date | null
  grace_started_at: Date | null
  grace_ends_at: Date | null
  stopped_at: Date | null
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
  streamToken: { stream_token: null, stream_token_sealed: null },
  sessions: [],
}

/** For each user, in their order: the stream token and all live sessions, oldest first. One round trip for all. */
export async function liveRelaysOf(sql: Sql, userIds: readonly string[]): Promise<LiveRelaysAnswer[]> {
  const rows = await sql<(RelaySessionRow & StoredStreamToken & { owner_id: string })[]>`
    select u.id as owner_id, u.stream_token, u.stream_token_sealed, s.*
    from users u left join lateral (
      select ${relaySessionColumns(sql)} from relay_sessions where user_id = u.id and state <> 'stopped'
    ) s on true
    where u.id = any(${[...new Set(userIds)]}::uuid[]) order by s.created_at, s.id`
  const answers = new Map<string, LiveRelaysAnswer>()
  for (const row of rows) {
    const { stream_token, stream_token_sealed } = row
    const answer = answers.get(row.owner_id) ?? { streamToken: { stream_token, stream_token_sealed }, sessions: [] }
    if (row.id !== null) answer.sessions.push(row)
    answers.set(row.owner_id, answer)
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
        command_seq = command_seq + 1, commanded_at = clock_timestamp()
      where id = ${sessionId} and state <> 'stopped'
      returning ${relaySessionColumns(sql)}`,
  )

/** Orders all of a user's relays off, as a downgrade does. Answers the rows that now have a command to deliver. */
export const disconnectAll = async (sql: Sql, userId: string, actor: RelayActor): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    update relay_sessions set command = 'disconnect', command_actor = ${actor}, command_seq = command_seq + 1, commanded_at = now()
    where user_id = ${userId} and state <> 'stopped' and command <> 'disconnect'
    returning ${relaySessionColumns(sql)}`

/** Notes that the actor has the session's command of this number and all before it. */
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
    update relay_sessions s set command_delivered_seq = greatest(command_delivered_seq, d.seq)
    from (select id, max(seq) as seq from unnest(${delivered.map((one) => one.id)}::uuid[], ${delivered.map((one) => one.seq)}::int[])
      as asked (id, seq) group by id) d
    where s.id = d.id`
  return delivered.map(() => undefined)
}

/** Sessions with a command that their actor is not known to have, accepted longer ago than `afterSeconds`; oldest first. */
export const undeliveredCommands = async (sql: Sql, afterSeconds: number, limit: number): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    select ${relaySessionColumns(sql)} from relay_sessions
    where command_delivered_seq < command_seq and commanded_at < now() - make_interval(secs => ${afterSeconds})
    order by commanded_at limit ${limit}`

/** How many commands wait to be delivered, and the age of the oldest, in seconds. */
export async function oldestUndelivered(sql: Sql): Promise<{ commands: number; oldestSeconds: number }> {
  const row = first(
    await sql<{ commands: number; oldestSeconds: number }[]>`
      select count(*)::int as commands, coalesce(extract(epoch from now() - min(commanded_at)), 0)::float8 as "oldestSeconds"
      from relay_sessions where command_delivered_seq < command_seq`,
  )
  return row ?? { commands: 0, oldestSeconds: 0 }
}

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
          publish_port = ${instance.publishPort}, play_port = ${instance.playPort}, stats_port = ${instance.statsPort}
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
  from_state: RelayState
  to_state: RelayState
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
