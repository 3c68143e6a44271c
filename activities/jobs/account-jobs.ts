/** The round that forgets what accounts and requests leave behind. */
import type { Database } from '../../db/connection.ts'
import { forgetEndedWindows } from '../../db/rate-limits.ts'
import { forgetOldKeys } from '../../db/relay-starts.ts'
import { deleteBillingBodies, forgetSome, retentionRules } from '../../db/retention.ts'
import { forgetDeadWorkers } from '../../db/workers.ts'
import type { Job } from './jobs.ts'

/** Rows that one statement forgets at most, so that it holds nobody up. */
const batchRows = 10_000
/** Batches of one rule in one round: what is left waits for the next, and the round keeps within its lease. */
const batchesMax = 20

export const accountJobs = (sql: Database): readonly Job[] => [
  { name: 'forget_expired', everySeconds: 600, roundSecondsMax: 300, run: () => forgetExpired(sql, batchRows) },
]

/** @param rows that one statement forgets at most. */
export async function forgetExpired(sql: Database, rows: number): Promise<void> {
  await forgetEndedWindows(sql)
  await forgetOldKeys(sql)
  await forgetDeadWorkers(sql)
  for (const rule of retentionRules) await inBatches(rows, () => forgetSome(sql, rule, rows))
  await inBatches(rows, () => deleteBillingBodies(sql, rows))
}

/** Repeats what takes `rows` rows at most until it takes fewer. */
async function inBatches(rows: number, take: () => Promise<number>): Promise<void> {
  let batches = 1
  while ((await take()) === rows && batches < batchesMax) batches += 1
}
