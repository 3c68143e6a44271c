/**
 * Background jobs: small rounds that look at rows and put right what no actor would notice. Each runs on one worker at a
 * time, by a lease in Postgres, and says there how it went.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../db/connection.ts'
import { declareJobs, finishJob, leaseJob, leaseSeconds, renewLease } from '../../db/jobs.ts'
import type { Logger } from '../../platform/log.ts'

export interface Job {
  readonly name: string
  readonly everySeconds: number
  /** Longer than any round takes. A round that takes longer is hung: its lease is renewed no more, and another begins. */
  readonly roundSecondsMax: number
  /** @param signal aborted when the round has lost its lease, or the worker stops: the round begins nothing more. */
  run(signal?: AbortSignal): Promise<void>
}

interface Needs {
  readonly sql: Database
  readonly log: Logger
  readonly workerId: string
}

/** Runs the jobs until stopped; a round under way is waited for. A job that fails is logged and has its next turn. */
export function startJobs(jobs: readonly Job[], needs: Needs): { stop(): Promise<void> } {
  const stopping = new AbortController()
  // Every job waits on it at the same time, more of them than Node takes for a leak of listeners.
  setMaxListeners(0, stopping.signal)
  const loops = declared(jobs, needs, stopping.signal).then(() =>
    Promise.all(jobs.map((job) => loop(job, needs, stopping.signal))),
  )
  return {
    stop: async () => {
      stopping.abort()
      await loops
    },
  }
}

async function declared(jobs: readonly Job[], { sql, log }: Needs, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await declareJobs(
        sql,
        jobs.map((job) => job.name),
      )
    } catch (error) {
      log.warn({ err: error }, 'jobs wait for the database')
      await pause(1000, signal)
    }
  }
}

async function loop(job: Job, needs: Needs, signal: AbortSignal): Promise<void> {
  // Looks more often than it runs, so that a job that was triggered or left by a dead worker does not wait a whole turn.
  const lookMillis = Math.min(job.everySeconds * 1000, 1000)
  while (!signal.aborted) {
    try {
      if (await leaseJob(needs.sql, job.name, needs.workerId)) await runOnce(job, needs, signal)
    } catch (error) {
      needs.log.warn({ err: error, job: job.name }, 'a job could not say how it went')
    }
    await pause(lookMillis, signal)
  }
}

async function runOnce(job: Job, needs: Needs, stopping: AbortSignal): Promise<void> {
  const { sql, log, workerId } = needs
  const startedAt = performance.now()
  let error: string | null = null
  const lease = keepLease(job, needs, stopping)
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

/** Renews the lease of a round until it is ended. The round's signal is aborted when the lease is lost or the worker stops. */
function keepLease(
  { name, roundSecondsMax }: Job,
  { sql, log, workerId }: Needs,
  stopping: AbortSignal,
): { readonly signal: AbortSignal; end(): void } {
  const round = new AbortController()
  const abort = () => round.abort()
  // Removed with the round, since the worker's signal outlives many of them.
  stopping.addEventListener('abort', abort)
  if (stopping.aborted) abort()
  let isEnded = false
  const hungAt = performance.now() + roundSecondsMax * 1000
  const renewing = setInterval(async () => {
    try {
      if (performance.now() < hungAt && (await renewLease(sql, name, workerId))) return
      if (isEnded) return
      log.error({ job: name }, 'a round of a job has lost its lease')
      clearInterval(renewing)
      abort()
    } catch (error) {
      // The next renewal may succeed in time, and otherwise finds that another worker has the job.
      log.warn({ err: error, job: name }, 'a lease could not be renewed')
    }
  }, leaseSeconds * 300)
  const end = () => {
    isEnded = true
    clearInterval(renewing)
    stopping.removeEventListener('abort', abort)
  }
  return { signal: round.signal, end }
}

const pause = (millis: number, signal: AbortSignal): Promise<void> =>
  sleep(millis, undefined, { signal }).catch(() => undefined)
