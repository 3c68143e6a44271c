/**
 * Finds out whether a pooler stands in front of Postgres, and when it gives a connection of the server to another
 * client.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseDatabaseUrl } from '../platform/config/database-url.ts'
import { connectPostgres, type Sql } from './connection.ts'

/** `transactions` also for a pooler that shares connections after each statement. */
export type Pooling = 'none' | 'sessions' | 'transactions'

/** Statements of one client would meet the settings, locks and prepared statements of others. */
export const undeclaredPooling = {
  fault: 'DATABASE_URL leads to a pooler that shares its connections between transactions, and does not say so',
  fix: 'Add pgbouncer=true to it, or use session mode of the pooler or the server itself (docs/operating.md).',
} as const

const attempts = 10
/** A pooler that gives a connection to one client at a time lets another one wait when it has no more. */
const waitMillisMax = 1000

/**
 * A pooler answers with a process id of its own at the start of a connection. If it shares connections, a second client
 * gets the one that the first client used last, unless a third client was faster.
 */
export async function findPooling(url: string): Promise<Pooling> {
  const sql = connectPostgres(url, 2)
  try {
    const first = await sql.reserve()
    if ((await readProcess(first)).isOfConnection) return 'none'
    const second = await sql.reserve()
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const { pid } = await readProcess(first)
      const waited = sleep(waitMillisMax, undefined, { ref: false })
      const other = await Promise.race([readProcess(second), waited])
      if (other === undefined) return 'sessions'
      if (other.pid === pid) return 'transactions'
    }
    return 'sessions'
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** Throws for a pooler with the pooling `transactions` and a URL that does not say so. */
export async function refuseUndeclaredPooling(url: string): Promise<void> {
  if (parseDatabaseUrl(url).target?.isTransactionPooled) return
  if ((await findPooling(url)) === 'transactions')
    throw new Error(`${undeclaredPooling.fault}. ${undeclaredPooling.fix}`)
}

async function readProcess(connection: Sql) {
  const rows = await connection.unsafe<{ pid: number }[]>('select pg_backend_pid() as pid')
  const pid = rows[0]?.pid
  return { pid, isOfConnection: (rows as { readonly state?: { readonly pid: number } }).state?.pid === pid }
}
