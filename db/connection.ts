/**
 * The connection pool. SQL is written as tagged templates. The driver is patched (`patches/`, docs/decisions/0007):
 * without the patch a lost connection could end the process.
 */
import postgres from 'postgres'
import { parseDatabaseUrl } from '../platform/config/database-url.ts'
import { driverTarget } from './driver-target.ts'

/** A pool, or one of its transactions. */
export type Sql = postgres.Sql | postgres.TransactionSql

/** A part of a statement. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

export type Database = postgres.Sql

/** Runs statements that only read on one snapshot of the database. */
export const readSnapshot = <Result>(sql: Database, read: (tx: Sql) => Promise<Result>): Promise<Result> =>
  sql.begin('isolation level repeatable read read only', read) as Promise<Result>

export interface QueryLimits {
  /** Enforced by the server, which then reports an error and keeps the connection. */
  readonly statementMillisMax: number
  readonly lockMillisMax: number
  /**
   * Enforced by the server, which rolls back a transaction that waits this long for its client, and ends the
   * connection. Otherwise the locks of a stopped process or a vanished host could last for hours. Zero for transactions
   * that call other services.
   */
  readonly idleTransactionMillisMax: number
  /**
   * Enforced by the client, for a server that does not answer at all: the connection is destroyed and its queries fail
   * as an outage, as do queries that wait for a connection while none receives data (docs/decisions/0020). Null for no
   * limit.
   */
  readonly answerMillisMax: number | null
}

/** For requests: while the server hangs each gets 503 within 5 s. */
export const requestLimits: QueryLimits = {
  statementMillisMax: 3_250,
  lockMillisMax: 3_000,
  idleTransactionMillisMax: 5_000,
  answerMillisMax: 3_750,
}

/** For activities and jobs, whose statements may take longer than a client waits. */
export const workerLimits: QueryLimits = {
  statementMillisMax: 15_000,
  lockMillisMax: 10_000,
  idleTransactionMillisMax: 0,
  answerMillisMax: 20_000,
}

/** For command-line programs, migrations and tests, without a limit of the client. */
export const commandLimits: QueryLimits = {
  statementMillisMax: 15_000,
  lockMillisMax: 10_000,
  idleTransactionMillisMax: 0,
  answerMillisMax: null,
}

/**
 * Connects lazily, and again after a lost connection: a process survives restarts of its database. Throws for a URL
 * that `parseDatabaseUrl` refuses, or whose certificates cannot be read.
 */
export const connectPostgres = (url: string, connectionsMax: number, limits = commandLimits): Database => {
  const { target, problems } = parseDatabaseUrl(url)
  if (!target) throw new Error(`The URL of the database ${problems.join('; ')}`)
  const settings = settingsOf(limits)
  return postgres({
    ...driverTarget(target),
    max: connectionsMax,
    connect_timeout: 5,
    idle_timeout: 60,
    max_lifetime: 60 * 30,
    query_timeout: limits.answerMillisMax === null ? null : limits.answerMillisMax / 1000,
    backoff: (attempt) => Math.min(0.05 * 2 ** attempt, 2),
    onnotice: () => {},
    // Columns are snake_case in SQL and camelCase in rows (docs/decisions/0023).
    transform: { column: { from: postgres.toCamel } },
    // A pooler would refuse the settings at the start of a connection. One that shares its connections keeps them for
    // transactions of other clients, so there they are set in each transaction (docs/decisions/0064).
    ...(target.isTransactionPooled
      ? { begin_query: settings.map((setting) => `set local ${setting}`).join('; ') }
      : { connect_query: settings.map((setting) => `set ${setting}`).join('; ') }),
  })
}

const settingsOf = ({
  statementMillisMax,
  lockMillisMax,
  idleTransactionMillisMax,
}: QueryLimits): readonly string[] => [
  `statement_timeout = ${statementMillisMax}`,
  `lock_timeout = ${lockMillisMax}`,
  `idle_in_transaction_session_timeout = ${idleTransactionMillisMax}`,
]

/** Whether the URL of the pool leads to a pooler that gives each transaction a connection of its own choice. */
export const isTransactionPooled = (sql: Database): boolean => Boolean(sql.options.begin_query)

/**
 * Listens on a connection of its own until the pool ends. The driver connects again after each lost connection and each
 * failed attempt, with the pool's backoff. Rejects if the first attempt fails; later attempts follow all the same. A
 * pooler that shares connections passes no NOTIFY on, so there this listens to nothing.
 * @param onListening called whenever listening begins: what was notified before it may have been missed
 */
export async function listen(
  sql: Database,
  channel: string,
  onNotify: (payload: string) => void,
  onListening: () => void,
): Promise<void> {
  if (!isTransactionPooled(sql)) await sql.listen(channel, onNotify, onListening)
}

/** The first row of a statement; undefined when there is none. */
export const first = async <Row>(statement: PromiseLike<readonly Row[]>): Promise<Row | undefined> =>
  (await statement)[0]

/** The only column of the first row; undefined when there is no row. */
export const firstValue = async <Value>(
  statement: PromiseLike<readonly { readonly [column: string]: Value }[]>,
): Promise<Value | undefined> => Object.values((await statement)[0] ?? {})[0]

/** Whether the statement found or changed a row. */
export const hasRow = async (statement: PromiseLike<{ readonly count: number }>): Promise<boolean> =>
  (await statement).count > 0

const outageCodes = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ECONNRESET',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECTION_CONNECT_TIMEOUT',
  // The server did not answer in time, or a query waited too long for its batch (platform/batch.ts).
  'QUERY_TIMEOUT',
  // The schema changed, or a pooler forgot a prepared statement: the driver forgets its statements
  // (docs/decisions/0007).
  'STATEMENT_OUTDATED',
  '26000',
  // in_failed_sql_transaction: another statement of the transaction has failed.
  '25P02',
  // admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections, query_canceled, lock_not_available.
  '57P01',
  '57P02',
  '57P03',
  // idle_in_transaction_session_timeout.
  '25P03',
  '53300',
  '57014',
  '55P03',
  // Deadlock: the transaction may be retried.
  '40P01',
  // The disk is full, memory is exhausted, or an I/O error occurred.
  '53100',
  '53200',
  '58030',
  // serialization_failure, connection_failure and other connection exceptions.
  '40001',
  '08006',
  '08001',
  '08003',
  '08004',
])

/**
 * True when Postgres is unreachable, starting, stopping, out of connections or overloaded: the same request may succeed
 * later.
 */
export const isOutage = (error: unknown): boolean =>
  typeof error === 'object' &&
  error !== null &&
  'code' in error &&
  (outageCodes.has(String(error.code)) || isPoolerOutage(error))

/** PgBouncer has one code for all its errors. These last until its configuration or the URL is changed. */
const lastingPoolerErrors =
  /startup parameter|pooling mode|no such (database|user)|not allowed|authentication failed|auth failed|SSL required|prepared statement/i

const isPoolerOutage = (error: { readonly code?: unknown; readonly message?: unknown }): boolean =>
  error.code === '08P01' && !lastingPoolerErrors.test(String(error.message))

/**
 * True when Postgres refused a statement before it executed it, since the schema changed. The pool prepares it again at
 * its next use.
 */
export const isStatementOutdated = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === 'STATEMENT_OUTDATED'

const invalidTextCodes = new Set(['22021', '22P05', '22P02', '22003', '22007', '22008'])

/** True when a value cannot be stored in its column, such as text with a NUL. */
export const isInvalidText = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && invalidTextCodes.has(error.code)

/** True when the row would have belonged to an account that was erased meanwhile. */
export const isAccountErased = (error: unknown): boolean =>
  error instanceof postgres.PostgresError &&
  error.code === '23503' &&
  Boolean(error.constraint_name?.endsWith('_user_id_fkey'))
