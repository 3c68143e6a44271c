/** The job that deletes expired data of accounts and requests. */
import type { Database } from '../../db/connection.ts'
import { deleteEndedWindows } from '../../db/rate-limits.ts'
import { deleteExpiredKeys } from '../../db/relay-starts.ts'
import { deleteBillingBodies, deleteExpired, retentionRules } from '../../db/retention.ts'
import { deleteEndedWorkers } from '../../db/workers.ts'
import type { Job } from './jobs.ts'

/** Rows that one statement deletes at most: its locks and its transaction stay short. */
const batchRowsMax = 10_000
/** Batches of one rule in one run, which so ends within its lease. The rest is left to the next run. */
const batchesMax = 20

export const accountJobs = (sql: Database): readonly Job[] => [
  { name: 'forget_expired', everySeconds: 600, runSecondsMax: 300, run: () => deleteExpiredData(sql, batchRowsMax) },
]

/** @param rowsMax that one statement deletes. */
export async function deleteExpiredData(sql: Database, rowsMax: number): Promise<void> {
  await deleteEndedWindows(sql)
  await deleteExpiredKeys(sql)
  await deleteEndedWorkers(sql)
  for (const rule of retentionRules) await repeatWhileFull(rowsMax, () => deleteExpired(sql, rule, rowsMax))
  await repeatWhileFull(rowsMax, () => deleteBillingBodies(sql, rowsMax))
}

/** Repeats the statement until it affects fewer rows than it may. */
async function repeatWhileFull(rowsMax: number, statement: () => Promise<number>): Promise<void> {
  let batches = 1
  while ((await statement()) === rowsMax && batches < batchesMax) batches += 1
}
