/** Waiting for queries that locks hold up. */
import type { Database, Sql } from '../../db/connection.ts'
import { eventually } from './relays.ts'

/**
 * Resolves when another connection waits for a lock that the transaction holds.
 * @param sql a pool of the same database. The transaction itself would see the same activity until its end.
 */
export async function waitForBlockedQuery(sql: Database, tx: Sql): Promise<void> {
  const [holder] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
  await eventually(
    () => sql`select from pg_stat_activity where ${holder?.pid ?? 0} = any(pg_blocking_pids(pid))`,
    (blocked) => blocked.length > 0,
  )
}
