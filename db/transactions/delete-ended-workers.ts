/** Deletes workers and keeps what they counted. */
import type { Database } from '../connection.ts'

/** The row with the counters of deleted workers. */
const deletedWorkersId = '00000000-0000-0000-0000-000000000000'

/**
 * Deletes workers that ended a day ago. Their counters are added to those of one permanent row: Prometheus would take a
 * smaller sum for a restart, and count what is left as an increase.
 * @param sum adds up the counters of several workers. @returns the number of deleted workers.
 */
export const deleteEndedWorkers = (
  sql: Database,
  sum: (metrics: readonly (readonly object[])[]) => Promise<object[]>,
): Promise<number> =>
  sql.begin(async (tx) => {
    const ended = await tx<{ metrics: object[] }[]>`
      delete from workers
      where id <> ${deletedWorkersId}
        and started_at < now() - interval '1 day' and heartbeat_at < now() - interval '1 day'
      returning metrics`
    if (ended.length === 0) return 0
    const deleted = await tx<{ metrics: object[] }[]>`
      select metrics from workers where id = ${deletedWorkersId} for update`
    const metrics = await sum([...deleted, ...ended].map((row) => row.metrics))
    await tx`
      insert into workers (id, started_at, heartbeat_at, metrics)
      values (${deletedWorkersId}, '-infinity', '-infinity', ${tx.json(metrics as never)})
      on conflict (id) do update set metrics = excluded.metrics`
    return ended.length
  })
