/** Runs the rules of retention on the database of an API. */
import { deleteExpiredData } from '../../activities/worker/retention-jobs.ts'
import type { TestApi } from './api.ts'

/** Dependencies of the job, without metrics. */
export const retentionDeps = ({ sql, services: { config } }: TestApi) => ({
  sql,
  config,
  metrics: { countExpiredRows: () => undefined },
})

/** @param batchRowsMax rows, and sessions, that one statement deletes. */
export const deleteExpiredRows = (api: TestApi, batchRowsMax = 10_000): Promise<void> =>
  deleteExpiredData(retentionDeps(api), { rowsMax: batchRowsMax, sessionsMax: batchRowsMax })
