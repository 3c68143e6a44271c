/** The job that deletes expired data of accounts and requests. */
import type { Database } from '../../db/connection.ts'
import { deleteBillingBodies, deleteExpired, retentionRules } from '../../db/operations/retention.ts'
import { deleteEndedWindows } from '../../db/rate-limits.ts'
import { deleteEndedRelaySessions } from '../../db/relay/session-retention.ts'
import { deleteEndedWorkers } from '../../db/transactions/delete-ended-workers.ts'
import type { RetentionConfig } from '../../platform/config/retention.ts'
import type { Job } from './jobs.ts'
import { sumWorkerMetrics, type WorkerMetrics } from './metrics.ts'

interface Deps {
  readonly sql: Database
  readonly config: { readonly retention: RetentionConfig }
  readonly metrics: Pick<WorkerMetrics, 'countExpiredRows'>
}

/** Rows that one statement deletes at most: its locks and its transaction stay short. */
const batchRowsMax = 10_000
/** A session has many rows in other tables, which are deleted with it. */
const batchSessionsMax = 500
/** Batches of one rule in one run, which so ends within its lease. The rest is left to the next run. */
const batchesMax = 20

export const retentionJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'forget_expired',
    everySeconds: 600,
    runSecondsMax: 300,
    run: (signal) => deleteExpiredData(deps, { rowsMax: batchRowsMax, sessionsMax: batchSessionsMax }, signal),
  },
]

/** What one statement deletes at most. */
interface BatchSizes {
  readonly rowsMax: number
  readonly sessionsMax: number
}

/** Safe to repeat, and to abort between two statements. */
export async function deleteExpiredData(
  { sql, config: { retention }, metrics }: Deps,
  { rowsMax, sessionsMax }: BatchSizes,
  signal?: AbortSignal,
): Promise<void> {
  const repeat = async (table: string, batchMax: number, statement: () => Promise<number>) => {
    for (let batches = 0; batches < batchesMax && !signal?.aborted; batches += 1) {
      const rows = await statement()
      metrics.countExpiredRows(table, rows)
      if (rows < batchMax) return
    }
  }
  metrics.countExpiredRows('rate_limit_windows', await deleteEndedWindows(sql))
  metrics.countExpiredRows('workers', await deleteEndedWorkers(sql, sumWorkerMetrics))
  for (const rule of retentionRules)
    await repeat(rule.table, rowsMax, () => deleteExpired(sql, rule, retention, rowsMax))
  await repeat('relay_sessions', sessionsMax, () => deleteEndedRelaySessions(sql, retention, sessionsMax))
  await repeat('billing_event_bodies', rowsMax, () => deleteBillingBodies(sql, retention, rowsMax))
}
