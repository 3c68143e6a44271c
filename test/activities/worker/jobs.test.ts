/** The leases of background jobs: one worker at a time, also when workers die or runs hang. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Job, startJobs } from '../../../activities/worker/jobs.ts'
import { insertMissingJobs, leaseJob, listJobs, triggerJob } from '../../../db/operations/jobs.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'
import { eventually } from '../../support/relays.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi()
})

function runJob(job: Partial<Job> & Pick<Job, 'name' | 'run'>): { stop(): Promise<void> } {
  const { sql, log } = api.services
  const running = startJobs([{ everySeconds: 3600, runSecondsMax: 60, ...job }], { sql, log, workerId: randomUUID() })
  atEnd(() => running.stop())
  return running
}

describe.concurrent('a job', () => {
  test('whose worker died during a run is run by another worker within seconds', async () => {
    await insertMissingJobs(api.sql, ['orphaned'])
    const died = randomUUID()
    expect(await leaseJob(api.sql, 'orphaned', died)).toBe(true)
    const [lease] = await api.sql`
      select leased_until <= now() + interval '10 seconds' as ends_soon from jobs where name = 'orphaned'`
    expect(lease).toEqual({ endsSoon: true })
    const endLease = (at: Date) => api.sql`
      update jobs set leased_until = ${at} where name = 'orphaned' and leased_by = ${died}`
    await endLease(new Date(Date.now() + 3_600_000))
    let runs = 0
    const run = async () => {
      runs += 1
    }
    runJob({ name: 'orphaned', run })
    await eventually(
      async () => (await listJobs(api.sql)).find(({ name }) => name === 'orphaned')?.everySeconds,
      (everySeconds) => everySeconds === 3600,
    )
    expect(runs).toBe(0)
    await endLease(new Date())
    await eventually(
      () => runs,
      (count) => count === 1,
    )
  })

  test('is run by one worker at a time, however long a run takes', async () => {
    const leaseEnd = async () => {
      const [row] = await api.sql<{ leasedUntil: Date }[]>`select leased_until from jobs where name = 'long'`
      return row?.leasedUntil.getTime() ?? 0
    }
    let runs = 0
    let running = 0
    let most = 0
    const run = async (signal?: AbortSignal) => {
      runs += 1
      running += 1
      most = Math.max(most, running)
      const isStopped = () => signal?.aborted === true
      // Until its lease was renewed twice, it runs as it would for any time. A worker that stops renews no lease.
      for (let renewals = 0, end = await leaseEnd(); renewals < 2 && !isStopped(); renewals += 1)
        end = await eventually(leaseEnd, (renewed) => renewed > end || isStopped())
      if (!isStopped()) expect(await leaseJob(api.sql, 'long', randomUUID())).toBe(false)
      running -= 1
    }
    for (let worker = 0; worker < 3; worker += 1) runJob({ name: 'long', everySeconds: 0.1, run })
    const [job] = await eventually(
      async () => (await listJobs(api.sql)).filter(({ name }) => name === 'long'),
      ([row]) => row !== undefined && row.runs > 0,
    )
    expect([job?.failures, most]).toEqual([0, 1])
    expect(runs).toBeGreaterThan(0)
  })

  test('whose run hangs loses its lease, so that another worker runs it', async () => {
    const lost: string[] = []
    const hang = (name: string) => (signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        signal?.addEventListener('abort', () => {
          lost.push(name)
          resolve()
        })
      })
    runJob({ name: 'hung', runSecondsMax: 1, everySeconds: 0, run: hang('first') })
    await eventually(
      () => lost,
      (names) => names.length > 0,
    )
  })

  test('that is triggered during a run runs once more at once', async () => {
    let runs = 0
    const run = async () => {
      runs += 1
      if (runs === 1) await triggerJob(api.sql, 'triggered')
    }
    runJob({ name: 'triggered', run })
    const job = await eventually(
      async () => (await listJobs(api.sql)).find(({ name }) => name === 'triggered'),
      (row) => row?.runs === 2,
    )
    expect(job?.dueAt.getTime()).toBeGreaterThan(Date.now() + 1_800_000)
  })

  test('whose worker stops ends its run early', async () => {
    let isRunning = false
    const run = (signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        isRunning = true
        signal?.addEventListener('abort', () => resolve())
      })
    const worker = runJob({ name: 'stopped', run })
    await eventually(
      () => isRunning,
      (running) => running,
    )
    await worker.stop()
    const job = (await listJobs(api.sql)).find(({ name }) => name === 'stopped')
    expect([job?.failures, job?.lastSuccessAt]).toEqual([0, expect.any(Date)])
  })

  test('that fails records the error and runs again', async () => {
    let runs = 0
    const run = async () => {
      runs += 1
      if (runs === 1) throw new Error('a listing failed')
    }
    runJob({ name: 'failing', everySeconds: 0.2, run })
    await eventually(
      async () => (await listJobs(api.sql)).find(({ name }) => name === 'failing'),
      (job) => job?.failures === 1 && job.lastSuccessAt !== null,
    )
  })
})
