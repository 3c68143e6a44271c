/**
 * The connection pool. SQL is written as tagged templates; a query's function says what it answers.
 * The driver is mended by `patches/` (docs/decisions/0007), or a lost connection could end the process.
 */
import postgres from 'postgres'

/** A pool, or one transaction of it: whoever asks a question need not know which. */
export type Sql = postgres.Sql | postgres.TransactionSql

export type Database = postgres.Sql

export interface QueryLimits {
  /** Enforced by the server, which then reports an error and keeps the connection. */
  readonly statementMillisMax: number
  readonly lockMillisMax: number
  /**
   * Enforced by the client, for a server that does not answer at all: the connection is destroyed, what waits for it fails
   * as an outage, and so does what waits for a connection while none receives anything (docs/decisions/0020). Null for no
   * limit.
   */
  readonly answerMillisMax: number | null
}

/** For requests: each is answered with 503 within 5 s while the server hangs. */
export const requestLimits: QueryLimits = { statementMillisMax: 3_250, lockMillisMax: 3_000, answerMillisMax: 3_750 }

/** For activities and jobs, whose statements may take longer than a client waits for an answer. */
export const workerLimits: QueryLimits = { statementMillisMax: 15_000, lockMillisMax: 10_000, answerMillisMax: 20_000 }

/** For commands, migrations and tests: a statement may wait as long as the server lets it. */
export const commandLimits: QueryLimits = { statementMillisMax: 15_000, lockMillisMax: 10_000, answerMillisMax: null }

/**
 * Connects lazily and again after each loss, so that a process outlives its database's restarts.
 * @param connectionsMax connections held open at most.
 */
export const connectPostgres = (url: string, connectionsMax: number, limits = commandLimits): Database =>
  postgres(url, {
    max: connectionsMax,
    connect_timeout: 5,
    idle_timeout: 60,
    max_lifetime: 60 * 30,
    query_timeout: limits.answerMillisMax === null ? null : limits.answerMillisMax / 1000,
    backoff: (attempt) => Math.min(0.05 * 2 ** attempt, 2),
    onnotice: () => {},
    // Columns are snake_case in SQL and camelCase in rows (docs/decisions/0023).
    transform: { column: { from: postgres.toCamel } },
    connection: {
      application_name: 'relay-control-plane',
      statement_timeout: limits.statementMillisMax,
      lock_timeout: limits.lockMillisMax,
    },
  })

/** The first row, or nothing. */
export const first = <Row>(rows: readonly Row[]): Row | undefined => rows[0]

const outage = new Set([
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
  // The server did not answer in time, or a query waited too long for its turn (platform/batch.ts).
  'QUERY_TIMEOUT',
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '57014',
  '55P03',
  // Two transactions in each other's way: one of them may simply try again.
  '40P01',
  // Its disk or its memory is full, or its disk fails.
  '53100',
  '53200',
  '58030',
  '40001',
  '08006',
  '08001',
  '08003',
  '08004',
])

/** True when Postgres is away, starting, stopping, out of connections or busy: the same request may succeed later. */
export const isOutage = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && outage.has(String(error.code))

const invalidText = new Set(['22021', '22P05', '22P02', '22003', '22007', '22008'])

/** True when a value was not of the kind that its column holds, such as text with a NUL. */
export const isInvalidText = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && invalidText.has(error.code)
