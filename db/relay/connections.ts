/**
 * Connections of accounts: the names that relays are started for. Each has a label for its whole life, and the ports
 * that its relays take again. A deleted one keeps its label, without its name, until its account is erased.
 */
import { connectionsMax } from '../../domain/relay/connections.ts'
import { type OnLoss, onLossDefault } from '../../domain/relay/on-loss.ts'
import { first, hasRow, type Sql } from '../connection.ts'

/** Whether the account has the connection, or may have another one. The caller has locked the account. */
export const mayUseConnection = async (tx: Sql, userId: string, name: string): Promise<boolean> =>
  hasRow(tx`
    select where exists (select from connections where user_id = ${userId} and name = ${name})
      or (select count(*) from connections where user_id = ${userId} and name is not null) < ${connectionsMax}`)

export const hasConnection = async (sql: Sql, userId: string, name: string): Promise<boolean> =>
  hasRow(sql`select from connections where user_id = ${userId} and name = ${name}`)

/** Stores that a relay is started for a connection. @returns the statement. */
export const useConnection = (tx: Sql, userId: string, name: string) => tx`
  insert into connections as c (user_id, name, on_loss) values (${userId}, ${name}, ${onLossDefault})
  on conflict (user_id, name) do update set last_used_at = now()`

export interface ConnectionRow {
  readonly name: string
  readonly createdAt: Date
  readonly lastUsedAt: Date
  /** The live session of the connection; null when it has none. */
  readonly sessionId: string | null
  /** What its players see while no stream arrives. */
  readonly onLoss: OnLoss
  /** The digest of its image; null when it has none. */
  readonly slate: string | null
}

const columns = (sql: Sql) => sql`c.name, c.created_at, c.last_used_at, c.on_loss, (
      select id from relay_sessions s where s.user_id = c.user_id and s.connection_id = c.name and s.state <> 'stopped'
      order by s.command = 'disconnect', s.created_at desc limit 1) as session_id,
      (select digest from slates where connection_label = c.label) as slate`

/** The connections of an account, the one that was used last first. */
export const listConnections = async (sql: Sql, userId: string): Promise<ConnectionRow[]> =>
  sql<ConnectionRow[]>`
    select ${columns(sql)} from connections c where c.user_id = ${userId} and c.name is not null
    order by c.last_used_at desc, c.name`

export const findConnection = async (sql: Sql, userId: string, name: string): Promise<ConnectionRow | undefined> =>
  first(
    sql<ConnectionRow[]>`select ${columns(sql)} from connections c where c.user_id = ${userId} and c.name = ${name}`,
  )

/** `in_use`: the connection has a live session, or begins to have one. */
export type DeleteOutcome = 'deleted' | 'in_use' | 'not_found'

/**
 * Deletes a connection with its play keys; a trigger deletes its image. Its row is locked, so that a start of the same
 * moment is either seen or makes a new one.
 */
export async function deleteConnection(tx: Sql, userId: string, name: string): Promise<DeleteOutcome> {
  const locked = await first(tx<{ label: string }[]>`
    select label from connections where user_id = ${userId} and name = ${name} for update`)
  if (!locked) return 'not_found'
  const isLive = await hasRow(tx`
    select from relay_sessions where user_id = ${userId} and connection_id = ${name} and state <> 'stopped'`)
  if (isLive) return 'in_use'
  await tx`
    update connections set name = null, srtla_port = null, publish_port = null, play_port = null, stats_port = null
    where label = ${locked.label}`
  await tx`delete from play_keys where user_id = ${userId} and connection_id = ${name}`
  return 'deleted'
}
