/** The workers, as they report themselves: they have no listener that could be asked. */
import { first, type Sql } from './connection.ts'

/** A worker is taken for gone when it has not beaten for this long, in seconds. */
export const aliveSeconds = 15

/** How far the worker's clock is ahead of the others, in seconds; null where it was not measured. */
export interface WorkerSkews {
  readonly postgres: number | null
  readonly temporal: number | null
}

/** Says that the worker is alive, with its counters as prom-client exports them. */
export const beat = async (
  sql: Sql,
  id: string,
  metrics: readonly object[],
  skews: WorkerSkews = { postgres: null, temporal: null },
): Promise<void> => {
  await sql`
    insert into workers (id, metrics, postgres_skew_seconds, temporal_skew_seconds)
    values (${id}, ${sql.json(metrics as never)}, ${skews.postgres}, ${skews.temporal})
    on conflict (id) do update set beat_at = now(), metrics = excluded.metrics,
      postgres_skew_seconds = excluded.postgres_skew_seconds, temporal_skew_seconds = excluded.temporal_skew_seconds`
}

/** The greatest skew among the workers that are alive, whichever way, in seconds; null where none was measured. */
export const greatestSkews = async (sql: Sql): Promise<WorkerSkews> =>
  first(
    await sql<WorkerSkews[]>`
      select max(abs(postgres_skew_seconds)) as postgres, max(abs(temporal_skew_seconds)) as temporal
      from workers where beat_at > now() - make_interval(secs => ${aliveSeconds})`,
  ) ?? { postgres: null, temporal: null }

/** A worker that ends in order is not waited for; its counters stay. */
export const endBeat = async (sql: Sql, id: string): Promise<void> => {
  await sql`update workers set beat_at = '-infinity' where id = ${id}`
}

export const countAliveWorkers = async (sql: Sql): Promise<number> =>
  first(
    await sql<{ alive: number }[]>`
      select count(*)::int as alive from workers where beat_at > now() - make_interval(secs => ${aliveSeconds})`,
  )?.alive ?? 0

/** The counters of all workers, dead ones too: what they counted did happen. */
export const workerMetrics = async (sql: Sql): Promise<object[][]> =>
  (await sql<{ metrics: object[] }[]>`select metrics from workers order by started_at`).map((row) => row.metrics)

/** Forgets workers that ended a day ago. Their counters go with them, which Prometheus takes for a restart. */
export const forgetDeadWorkers = async (sql: Sql): Promise<number> =>
  (await sql`delete from workers where started_at < now() - interval '1 day' and beat_at < now() - interval '1 day'`)
    .count
