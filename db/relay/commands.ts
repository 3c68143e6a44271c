/** The inbox of commands of a relay session: its row holds the last command until its workflow has carried it out. */
import { nameOfApp } from '../../domain/identity/apps.ts'
import {
  commandAfter,
  type Initiator,
  type RelayCommand,
  type RelayReason,
  type RelayState,
  relayCommands,
} from '../../domain/relay/session.ts'
import { backoffSeconds } from '../backoff.ts'
import { type RequestSender, senderName } from '../clients.ts'
import { type Fragment, first, type Sql } from '../connection.ts'
import { fromOwned, type RelaySessionRow, relaySessionColumns, type SessionAddress } from './sessions.ts'

/** The API delivers a command at once. When that fails, a job delivers it after this many seconds. */
export const deliverAfterSeconds = 3

/** A command that the session's workflow may not have yet. */
export interface AcceptedCommand {
  readonly seq: number
  readonly command: RelayCommand
  readonly initiator: Initiator
}

/** A session that needs an instance, while its row is locked. */
export interface SessionToPlace {
  readonly state: RelayState
  readonly reason: RelayReason
  readonly instanceId: string | null
  readonly binding: number
  /** The command to end that the session has; null while it is to run. */
  readonly endingCommand: AcceptedCommand | null
}

/** Locks the row of a session. @returns undefined for a session that is stopped, or was deleted with its account. */
export async function lockSessionToPlace(tx: Sql, sessionId: string): Promise<SessionToPlace | undefined> {
  const row = await first(tx<(Omit<SessionToPlace, 'endingCommand'> & AcceptedCommand)[]>`
    select state, reason, instance_id, binding, command, command_seq as seq, command_initiator as initiator
    from relay_sessions where id = ${sessionId} for no key update`)
  if (!row || row.state === 'stopped') return undefined
  const { command, seq, initiator, ...session } = row
  return { ...session, endingCommand: command === 'run' ? null : { seq, command, initiator } }
}

/** Older commands of a session that has more are deleted. */
const storedCommandsMax = 1_000

/** What is recorded with a command beside its initiator. */
interface CommandRecord {
  /** The client of a user's command. */
  readonly sender?: RequestSender | undefined
  /** What an operator lets the owner of the session read. */
  readonly publicReason?: string | undefined
}

/**
 * Records a command for a live session.
 * @returns the row with the command's number; undefined when the session is stopped.
 */
export const recordCommand = (
  sql: Sql,
  sessionId: string,
  requested: RelayCommand,
  initiator: Initiator,
  record: CommandRecord = {},
): Promise<RelaySessionRow | undefined> => setCommand(sql, sql`id = ${sessionId}`, requested, initiator, record)

/**
 * Records a user's command for one of the user's sessions, which {@link findOwnedSession} finds by the same address.
 * @returns the row with the command's number; undefined when the session is stopped or does not exist.
 */
export const recordUserCommand = (
  sql: Sql,
  userId: string,
  by: SessionAddress,
  requested: RelayCommand,
  sender: RequestSender,
): Promise<RelaySessionRow | undefined> =>
  setCommand(sql, sql`id = (select id ${fromOwned(sql, userId, by)})`, requested, 'user', { sender })

async function setCommand(
  sql: Sql,
  isAddressed: Fragment,
  requested: RelayCommand,
  initiator: Initiator,
  { sender, publicReason }: CommandRecord,
): Promise<RelaySessionRow | undefined> {
  // The rule's result for each command that the row may have, so that one statement reads and writes the row.
  const next = Object.fromEntries(relayCommands.map((current) => [current, commandAfter(current, requested)]))
  return await first(sql<RelaySessionRow[]>`
    with commanded as (update relay_sessions set
      command = ${sql.json(next)}::jsonb ->> command,
      command_initiator = case when command = 'disconnect' then command_initiator else ${initiator} end,
      -- now() may be earlier than a transition that this statement waited for.
      command_seq = command_seq + 1, commanded_at = clock_timestamp(),
      deliver_at = clock_timestamp() + make_interval(secs => ${deliverAfterSeconds}), delivery_attempts = 0
    where ${isAddressed} and state <> 'stopped'
    returning ${relaySessionColumns(sql)}
    ), recorded as (
      insert into relay_commands (session_id, seq, command, initiator, client, public_reason)
      select id, command_seq, ${requested}, ${initiator}, ${sender === undefined ? null : senderName(sql, sender)},
        ${publicReason ?? null} from commanded
    ), trimmed as (
      delete from relay_commands c using commanded
      where c.session_id = commanded.id and c.seq <= commanded.command_seq - ${storedCommandsMax}::int
    )
    select * from commanded`)
}

/**
 * Disconnects all relays of a user. Statements that lock several sessions lock them in the order of their ids, which
 * rules out deadlocks.
 * @returns the sessions that have a command to deliver now.
 */
export const disconnectAll = async (sql: Sql, userId: string, initiator: Initiator): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    with live as (
      select id as live_id from relay_sessions
      where user_id = ${userId} and state <> 'stopped' and command <> 'disconnect' order by id for no key update
    ), commanded as (update relay_sessions set command = 'disconnect', command_initiator = ${initiator}, command_seq = command_seq + 1,
      commanded_at = clock_timestamp(), deliver_at = clock_timestamp() + make_interval(secs => ${deliverAfterSeconds}),
      delivery_attempts = 0
    from live where id = live_id
    returning ${relaySessionColumns(sql)}
    ), recorded as (
      insert into relay_commands (session_id, seq, command, initiator)
      select id, command_seq, 'disconnect', ${initiator} from commanded
    )
    select * from commanded`

export interface CommandRow {
  readonly command: RelayCommand
  readonly initiator: Initiator
  /** The name of the app or plugin that gave it; null for all others. */
  readonly client: string | null
  /** What an operator lets the owner of the session read. */
  readonly publicReason: string | null
  readonly at: Date
}

/** The commands of a session, the first one first: the one that started it, and those that were recorded. */
export async function listCommands(sql: Sql, sessionId: string): Promise<CommandRow[]> {
  const rows = await sql<(CommandRow & { startedByApp: string | null })[]>`
    select 0 as seq, 'run' as command, 'user' as initiator, started_by_plugin as client, started_by_app,
      null as public_reason, created_at as at
    from relay_sessions where id = ${sessionId}
    union all
    select seq, command, initiator, client, null, public_reason, at from relay_commands where session_id = ${sessionId}
    order by seq`
  return rows.map(({ command, initiator, client, startedByApp, publicReason, at }) => ({
    command,
    initiator,
    client: startedByApp === null ? client : nameOfApp(startedByApp),
    publicReason,
    at,
  }))
}

/** Records the command `run` that an operator's transition has given. */
export const recordOperatorCommand = async (
  tx: Sql,
  sessionId: string,
  seq: number,
  publicReason: string | undefined,
): Promise<void> => {
  await tx`
    insert into relay_commands (session_id, seq, command, initiator, public_reason)
    values (${sessionId}, ${seq}, 'run', 'operator', ${publicReason ?? null})`
}

/** Records that the workflow has the command of this number and all commands before it. */
export const markCommandDelivered = async (sql: Sql, sessionId: string, seq: number): Promise<void> => {
  await sql`update relay_sessions set command_delivered_seq = greatest(command_delivered_seq, ${seq}) where id = ${sessionId}`
}

export interface DeliveredCommand {
  readonly id: string
  readonly seq: number
}

/** The same for several sessions in one statement, for use with `batch`. */
export async function markCommandsDelivered(sql: Sql, delivered: readonly DeliveredCommand[]): Promise<undefined[]> {
  await sql`
    with delivered as (
      select s.id, max(d.seq) as seq
      from unnest(${delivered.map(({ id }) => id)}::uuid[], ${delivered.map(({ seq }) => seq)}::int[]) as d (id, seq)
        join relay_sessions s on s.id = d.id
      group by s.id
    ), locked as (
      select s.id, delivered.seq from relay_sessions s join delivered on delivered.id = s.id order by s.id for no key update of s
    )
    update relay_sessions s set command_delivered_seq = greatest(command_delivered_seq, locked.seq)
    from locked where s.id = locked.id`
  return delivered.map(() => undefined)
}

const isUndelivered = (sql: Sql) => sql`command_delivered_seq < command_seq and state <> 'stopped'`

/** Live sessions with an undelivered command whose next attempt is due, the longest due first. */
export const listUndeliveredCommands = async (sql: Sql, limit: number): Promise<RelaySessionRow[]> =>
  sql<RelaySessionRow[]>`
    select ${relaySessionColumns(sql)} from relay_sessions
    where ${isUndelivered(sql)} and deliver_at <= now()
    order by deliver_at limit ${limit}`

const backoff = { firstSeconds: deliverAfterSeconds, secondsMax: 600 }

/** Schedules the next attempt with exponential backoff. */
export const postponeDelivery = async (sql: Sql, sessionId: string, seq: number): Promise<void> => {
  await sql`
    update relay_sessions set delivery_attempts = delivery_attempts + 1,
      deliver_at = now() + make_interval(secs => ${backoffSeconds(sql, sql`delivery_attempts`, backoff)})
    where id = ${sessionId} and command_seq = ${seq}`
}

/** The number of undelivered commands, and the age of the oldest one in seconds. */
export async function countUndeliveredCommands(sql: Sql): Promise<{ commands: number; oldestSeconds: number }> {
  const row = await first(sql<{ commands: number; oldestSeconds: number }[]>`
    select count(*)::int as commands, coalesce(extract(epoch from now() - min(commanded_at)), 0)::float8 as oldest_seconds
    from relay_sessions where ${isUndelivered(sql)}`)
  return row ?? { commands: 0, oldestSeconds: 0 }
}
