/** Background jobs: the lease that makes each run on one worker at a time, and the results of their runs. */
import { hasRow, type Sql } from '../connection.ts'

export interface JobRow {
  name: string
  /** Between the starts of two runs; null until a worker of this version has started. */
  everySeconds: number | null
  runs: number
  failures: number
  durationSecondsTotal: number
  lastDurationSeconds: number | null
  lastStartedAt: Date | null
  lastSuccessAt: Date | null
  lastError: string | null
  dueAt: Date
  /** The worker whose lease has not ended, with the end of the lease; null when no worker holds one. */
  leasedBy: string | null
  leasedUntil: Date | null
}

/** Adds a row for each job that has none. */
export const insertMissingJobs = async (sql: Sql, names: readonly string[]): Promise<void> => {
  await sql`insert into jobs (name) select unnest(${names}::text[]) on conflict do nothing`
}

/** Stores how often the job runs, for the metrics. */
export const recordJobInterval = async (sql: Sql, name: string, everySeconds: number): Promise<void> => {
  await sql`update jobs set every_seconds = ${everySeconds} where name = ${name} and every_seconds is distinct from ${everySeconds}`
}

/** Renewed while the job runs. Short, so that another worker takes the job within seconds when its worker dies. */
export const leaseSeconds = 10

/** True when the job was due and unleased, and is leased to this worker now. */
export const leaseJob = async (sql: Sql, name: string, workerId: string): Promise<boolean> =>
  hasRow(sql`
    update jobs set leased_by = ${workerId}, leased_until = now() + make_interval(secs => ${leaseSeconds}), last_started_at = now()
    where name = ${name} and due_at <= now() and leased_until <= now()`)

/** False when the lease is no longer this worker's: the job was finished, or another worker has leased it. */
export const renewLease = async (sql: Sql, name: string, workerId: string): Promise<boolean> =>
  hasRow(sql`
    update jobs set leased_until = now() + make_interval(secs => ${leaseSeconds})
    where name = ${name} and leased_by = ${workerId} and leased_until > '-infinity'`)

interface JobResult {
  readonly durationSeconds: number
  /** The error's message; null after a success. */
  readonly error: string | null
  readonly nextInSeconds: number
}

/**
 * Records the result of a run and ends the lease. A job that became due again during the run stays due. A worker that
 * lost its lease changes neither the lease nor the due time.
 */
export const finishJob = async (sql: Sql, name: string, workerId: string, result: JobResult): Promise<void> => {
  await sql`
    update jobs set
      runs = runs + 1, failures = failures + ${result.error === null ? 0 : 1},
      duration_seconds_total = duration_seconds_total + ${result.durationSeconds}, last_duration_seconds = ${result.durationSeconds},
      last_success_at = case when ${result.error === null} then now() else last_success_at end,
      last_error = ${result.error},
      due_at = case when leased_by = ${workerId} and due_at <= last_started_at
        then last_started_at + make_interval(secs => ${result.nextInSeconds}) else due_at end,
      leased_until = case when leased_by = ${workerId} then '-infinity' else leased_until end
    where name = ${name}`
}

/** Makes the job due now, and also after a run that is under way, which may have read its rows already. */
export const triggerJob = async (sql: Sql, name: string): Promise<void> => {
  await sql`update jobs set due_at = now() where name = ${name} and (due_at > now() or leased_until > now())`
}

interface JobFilter {
  /** The name of the previous page's last job. */
  readonly after?: string | undefined
  readonly limit?: number
}

/** Jobs in the order of their names; all of them without a limit. */
export const listJobs = async (sql: Sql, { after, limit }: JobFilter = {}): Promise<JobRow[]> =>
  sql<JobRow[]>`
    select name, every_seconds, runs::float8 as runs, failures::float8 as failures, duration_seconds_total, last_duration_seconds,
      last_started_at, last_success_at, last_error, due_at,
      case when leased_until > now() then leased_by end as leased_by,
      case when leased_until > now() then leased_until end as leased_until
    from jobs where true ${after === undefined ? sql`` : sql`and name > ${after}`}
    order by name ${limit === undefined ? sql`` : sql`limit ${limit}`}`
