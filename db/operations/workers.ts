/** Workers record their heartbeat and their counters here, for the metrics page of the api. */
import { first, firstValue, type Sql } from '../connection.ts'

/** A worker without a heartbeat for this long counts as ended. */
export const heartbeatSecondsMax = 15

/** How far the worker's clock is ahead of the named one, in seconds; null until it was measured. */
interface WorkerSkews {
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
  (await first(sql<WorkerSkews[]>`
    select max(abs(postgres_skew_seconds)) as postgres, max(abs(temporal_skew_seconds)) as temporal
    from workers where ${isAlive(sql)}`)) ?? { postgres: null, temporal: null }

export const countAliveWorkers = async (sql: Sql): Promise<number> =>
  (await firstValue(sql<{ alive: number }[]>`select count(*)::int as alive from workers where ${isAlive(sql)}`)) ?? 0

/** The counters of all workers, with those that ended: what they counted did happen. */
export const workerMetrics = async (sql: Sql): Promise<object[][]> =>
  (await sql<{ metrics: object[] }[]>`select metrics from workers order by started_at`).map((row) => row.metrics)
