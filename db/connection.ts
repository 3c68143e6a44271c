/**
 * The connection pool. SQL is written as tagged templates; a query's function says what it answers.
 * The driver is mended by `patches/` (docs/decisions/0007), or a lost connection could end the process.
 */
import postgres from 'postgres'

/** A pool, or one transaction of it: whoever asks a question need not know which. */
export type Sql = postgres.Sql | postgres.TransactionSql

export type Database = postgres.Sql

/**
 * Connects lazily and again after each loss, so that a process outlives its database's restarts.
 * @param connectionsMax connections held open at most.
 */
export const connectPostgres = (url: string, connectionsMax: number): Database =>
  postgres(url, {
    max: connectionsMax,
    connect_timeout: 5,
    idle_timeout: 60,
    max_lifetime: 60 * 30,
    backoff: (attempt) => Math.min(0.05 * 2 ** attempt, 2),
    onnotice: () => {},
    connection: { application_name: 'relay-control-plane', statement_timeout: 15_000, lock_timeout: 10_000 },
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
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '57014',
  '55P03',
  // Two transactions in each other's way: one of them may simply try again.
  '40P01',
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
