/** Background jobs: each runs on one worker at a time, and says here how it goes. */
import type { Sql } from './connection.ts'

export interface JobRow {
  name: string
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

/** Makes sure that the jobs have a row; what is known of them is kept. */
export const declareJobs = async (sql: Sql, names: readonly string[]): Promise<void> => {
  await sql`insert into jobs (name) select unnest(${names}::text[]) on conflict do nothing`
}

/**
 * A lease is short and renewed while its job runs, so that a job whose worker died, or could not give it back, is free again
 * within seconds.
 */
export const leaseSeconds = 10

/** Takes the job if it is due and no worker has it. */
export const leaseJob = async (sql: Sql, name: string, workerId: string): Promise<boolean> =>
  (
    await sql`
      update jobs set leased_by = ${workerId}, leased_until = now() + make_interval(secs => ${leaseSeconds}), last_started_at = now()
      where name = ${name} and due_at <= now() and leased_until <= now()`
  ).count === 1

/** Keeps the job for another lease. False when it was given back, or another worker has taken it meanwhile. */
export const renewLease = async (sql: Sql, name: string, workerId: string): Promise<boolean> =>
  (
    await sql`
      update jobs set leased_until = now() + make_interval(secs => ${leaseSeconds})
      where name = ${name} and leased_by = ${workerId} and leased_until > '-infinity'`
  ).count === 1

export interface JobResult {
  readonly durationSeconds: number
  /** What went wrong, or null. */
  readonly error: string | null
  readonly nextInSeconds: number
}

/** Gives the job back with its result. A worker whose lease went to another changes nothing but the counts. */
export const finishJob = async (sql: Sql, name: string, workerId: string, result: JobResult): Promise<void> => {
  await sql`
    update jobs set
      runs = runs + 1, failures = failures + ${result.error === null ? 0 : 1},
      duration_seconds_total = duration_seconds_total + ${result.durationSeconds}, last_duration_seconds = ${result.durationSeconds},
      last_success_at = case when ${result.error === null} then now() else last_success_at end,
      last_error = ${result.error},
      due_at = case when leased_by = ${workerId} then greatest(due_at, last_started_at) + make_interval(secs => ${result.nextInSeconds}) else due_at end,
      leased_until = case when leased_by = ${workerId} then '-infinity' else leased_until end
    where name = ${name}`
}

/** Makes the job due now instead of at its next turn. */
export const hurryJob = async (sql: Sql, name: string): Promise<void> => {
  await sql`update jobs set due_at = now() where name = ${name} and due_at > now()`
}

interface JobFilter {
  /** The last job of the page before, by its name. */
  readonly after?: string | undefined
  readonly limit?: number
}

/** Jobs by name; all of them unless the filter asks for a page. */
export const listJobs = async (sql: Sql, { after, limit }: JobFilter = {}): Promise<JobRow[]> =>
  sql<JobRow[]>`
    select name, runs::float8 as runs, failures::float8 as failures, duration_seconds_total, last_duration_seconds,
      last_started_at, last_success_at, last_error, due_at,
      case when leased_until > now() then leased_by end as leased_by,
      case when leased_until > now() then leased_until end as leased_until
    from jobs where true ${after === undefined ? sql`` : sql`and name > ${after}`}
    order by name ${limit === undefined ? sql`` : sql`limit ${limit}`}`
