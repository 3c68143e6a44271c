/**
 * Background jobs: short runs that compare rows with what should be, and repair what no workflow would notice. Each
 * runs on one worker at a time, by a lease in Postgres, where its results are recorded too.
 */
import type { Database } from '../../db/connection.ts'
import {
  finishJob,
  insertMissingJobs,
  leaseJob,
  leaseSeconds,
  recordJobInterval,
  renewLease,
} from '../../db/operations/jobs.ts'
import type { Logger } from '../../platform/log.ts'
import { type PeriodicTask, startPeriodicTask } from '../../platform/periodic-task.ts'

export interface Job {
  readonly name: string
  readonly everySeconds: number
  /** Longer than any run takes. A run that exceeds it hangs: its lease is not renewed, and another run may start. */
  readonly runSecondsMax: number
  /** @param signal aborted when the lease is lost or the worker stops: the run starts nothing more. */
  run(signal?: AbortSignal): Promise<void>
}

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly workerId: string
}

/** Due jobs are looked for this often, so that one that was triggered, or whose worker died, starts soon. */
const lookSeconds = 1

/** Runs the jobs until stopped. Stopping waits for their runs. */
export function startJobs(jobs: readonly Job[], deps: Deps): PeriodicTask {
  const tasks = jobs.map((job) =>
    startPeriodicTask({
      everySeconds: Math.min(job.everySeconds, lookSeconds),
      log: deps.log,
      failure: { message: 'the state of a job could not be read or written', fields: { job: job.name } },
      run: createTurn(job, deps),
    }),
  )
  return {
    stop: async () => {
      await Promise.all(tasks.map((task) => task.stop()))
    },
  }
}

function createTurn(job: Job, deps: Deps): (stopping: AbortSignal) => Promise<void> {
  let hasRow = false
  return async (stopping) => {
    if (!hasRow) {
      await insertMissingJobs(deps.sql, [job.name])
      await recordJobInterval(deps.sql, job.name, job.everySeconds)
    }
    hasRow = true
    if (await leaseJob(deps.sql, job.name, deps.workerId)) await runOnce(job, deps, stopping)
  }
}

async function runOnce(job: Job, deps: Deps, stopping: AbortSignal): Promise<void> {
  const { sql, log, workerId } = deps
  const startedAt = performance.now()
  let error: string | null = null
  const lease = startRenewingLease(job, deps, stopping)
  try {
    await job.run(lease.signal)
  } catch (failure) {
    error = failure instanceof Error ? failure.message : String(failure)
    log.error({ err: failure, job: job.name }, 'a job failed')
  } finally {
    lease.end()
  }
  const durationSeconds = (performance.now() - startedAt) / 1000
  await finishJob(sql, job.name, workerId, { durationSeconds, error, nextInSeconds: job.everySeconds })
}

/** Renews the lease until `end` is called. The signal is aborted when the lease is lost or the worker stops. */
function startRenewingLease(
  { name, runSecondsMax }: Job,
  { sql, log, workerId }: Deps,
  stopping: AbortSignal,
): { readonly signal: AbortSignal; end(): void } {
  const run = new AbortController()
  const abort = () => run.abort()
  // Removed at the end of the run, since the worker's signal outlives many runs.
  stopping.addEventListener('abort', abort)
  if (stopping.aborted) abort()
  let hasEnded = false
  const hangsAt = performance.now() + runSecondsMax * 1000
  const renewing = setInterval(async () => {
    try {
      if (performance.now() < hangsAt && (await renewLease(sql, name, workerId))) return
      if (hasEnded) return
      log.error({ job: name }, 'a job lost its lease during a run')
      clearInterval(renewing)
      abort()
    } catch (error) {
      // The next renewal may succeed in time. Otherwise it finds that another worker has leased the job.
      log.warn({ err: error, job: name }, "a job's lease could not be renewed")
    }
  }, leaseSeconds * 300)
  const end = () => {
    hasEnded = true
    clearInterval(renewing)
    stopping.removeEventListener('abort', abort)
  }
  return { signal: run.signal, end }
}
