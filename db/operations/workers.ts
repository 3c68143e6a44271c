/** Workers record their heartbeat and their counters here, for the metrics page of the api. */
import { type Database, first, type Sql } from '../connection.ts'

/** A worker without a heartbeat for this long counts as ended. */
export const heartbeatSecondsMax = 15

/** How far the worker's clock is ahead of the named one, in seconds; null until it was measured. */
export interface WorkerSkews {
  readonly postgres: number | null
  readonly temporal: number | null
}

/** @param metrics the worker's counters, as prom-client exports them. */
export const recordHeartbeat = async (
  sql: Sql,
  id: string,
  metrics: readonly object[],
  skews: WorkerSkews = { postgres: null, temporal: null },
): Promise<void> => {
  await sql`
    insert into workers (id, metrics, postgres_skew_seconds, temporal_skew_seconds)
    values (${id}, ${sql.json(metrics as never)}, ${skews.postgres}, ${skews.temporal})
    on conflict (id) do update set heartbeat_at = now(), metrics = excluded.metrics,
      postgres_skew_seconds = excluded.postgres_skew_seconds, temporal_skew_seconds = excluded.temporal_skew_seconds`
}

/** Counts a worker that stops in order as ended at once. Its counters stay. */
export const recordWorkerEnd = async (sql: Sql, id: string): Promise<void> => {
  await sql`update workers set heartbeat_at = '-infinity' where id = ${id}`
}

const isAlive = (sql: Sql) => sql`heartbeat_at > now() - make_interval(secs => ${heartbeatSecondsMax})`

/** The greatest absolute skew among the workers that are alive, in seconds; null where none was measured. */
export const greatestSkews = async (sql: Sql): Promise<WorkerSkews> =>
  first(
    await sql<WorkerSkews[]>`
      select max(abs(postgres_skew_seconds)) as postgres, max(abs(temporal_skew_seconds)) as temporal
      from workers where ${isAlive(sql)}`,
  ) ?? { postgres: null, temporal: null }

export const countAliveWorkers = async (sql: Sql): Promise<number> =>
  first(await sql<{ alive: number }[]>`select count(*)::int as alive from workers where ${isAlive(sql)}`)?.alive ?? 0

/** The counters of all workers, with those that ended: what they counted did happen. */
export const workerMetrics = async (sql: Sql): Promise<object[][]> =>
  (await sql<{ metrics: object[] }[]>`select metrics from workers order by started_at`).map((row) => row.metrics)

/** The row with the counters of deleted workers. */
const deletedWorkersId = '00000000-0000-0000-0000-000000000000'

/**
 * Deletes workers that ended a day ago. Their counters are added to those of one permanent row: Prometheus would take a smaller
 * sum for a restart, and count what is left as an increase.
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
