/** The state of the Postgres server, for operators. */
import type { Sql } from '../connection.ts'

export interface ServerStatus {
  /** Such as 18.1. */
  version: string
  majorVersion: number
  connections: number
  /** Without those that are reserved for superusers. */
  connectionsMax: number
  isReadOnly: boolean
  fsync: string
  fullPageWrites: string
  synchronousCommit: string
  walLevel: string
  /** Of statements outside of transactions, such as 15s; 0 for none. */
  statementTimeout: string
}

export const readServerStatus = async (sql: Sql): Promise<ServerStatus> => {
  const [row] = await sql<ServerStatus[]>`
    select current_setting('server_version') as version,
      current_setting('server_version_num')::int / 10000 as major_version,
      (select sum(numbackends)::int from pg_stat_database) as connections,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as connections_max,
      pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as is_read_only,
      current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
      current_setting('synchronous_commit') as synchronous_commit, current_setting('wal_level') as wal_level,
      current_setting('statement_timeout') as statement_timeout`
  if (!row) throw new Error('the server reported no status')
  return row
}

interface Standby {
  name: string
  /** streaming, catchup, … */
  state: string
  /** Null when it is up to date, or when the role may not read it. */
  lagSeconds: number | null
}

export const listStandbys = async (sql: Sql): Promise<Standby[]> =>
  sql<Standby[]>`
    select coalesce(nullif(application_name, ''), 'unnamed') as name, coalesce(state, 'unknown') as state,
      extract(epoch from replay_lag)::float8 as lag_seconds
    from pg_stat_replication order by 1`

interface InactiveSlot {
  name: string
  /** Write-ahead log that the slot keeps, in bytes. */
  keptBytes: number | null
}

/** Replication slots that no standby reads. They keep write-ahead log until the disk is full. */
export const listInactiveSlots = async (sql: Sql): Promise<InactiveSlot[]> =>
  sql<InactiveSlot[]>`
    select slot_name as name,
      case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 end as kept_bytes
    from pg_replication_slots where not active order by 1`

/** The server's clock, in milliseconds since 1970. */
export const readServerClock = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ millis: number }[]>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as millis`
  if (!row) throw new Error('the server reported no time')
  return row.millis
}
