/** The counters of workers whose rows were deleted. */
import { randomUUID } from 'node:crypto'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createWorkerMetrics, sumWorkerMetrics } from '../../../activities/worker/metrics.ts'
import { countAliveWorkers, recordHeartbeat, workerMetrics } from '../../../db/operations/workers.ts'
import { deleteEndedWorkers } from '../../../db/transactions/delete-ended-workers.ts'
import { startApi } from '../../support/api.ts'
import { readMetrics } from '../../support/metrics.ts'

const api = await startApi()

/** A worker that has counted this many failures, and one call of a second. */
async function givenWorker(failures: number, endedDaysAgo: number): Promise<void> {
  const metrics = createWorkerMetrics(new Registry())
  for (let count = 0; count < failures; count += 1)
    metrics.countFailure({ provider: 'aws', region: 'eu', failure: 'retry' })
  metrics.countOperation({ provider: 'aws', operation: 'create', outcome: 'ok', seconds: 1 })
  const id = randomUUID()
  await recordHeartbeat(api.sql, id, await metrics.registry.getMetricsAsJSON())
  await api.sql`
    update workers set started_at = started_at - make_interval(days => ${endedDaysAgo}),
      heartbeat_at = heartbeat_at - make_interval(days => ${endedDaysAgo})
    where id = ${id}`
}

test('the counters of deleted workers stay part of the sums', async () => {
  await givenWorker(3, 2)
  await givenWorker(4, 3)
  await givenWorker(5, 0)
  const readCounts = async () => {
    const metric = await readMetrics(api)
    return [
      metric('svc_provider_failures_total{region="eu",failure="retry",provider="aws"}'),
      metric('svc_provider_operation_duration_seconds_count{provider="aws",operation="create"}'),
    ]
  }
  const before = await readCounts()
  expect(before).toEqual([12, 3])
  expect(await deleteEndedWorkers(api.sql, sumWorkerMetrics)).toBe(2)
  expect(await readCounts()).toEqual(before)
  expect((await workerMetrics(api.sql)).length).toBe(2)
  expect(await countAliveWorkers(api.sql)).toBe(1)

  await givenWorker(2, 2)
  expect(await deleteEndedWorkers(api.sql, sumWorkerMetrics)).toBe(1)
  expect(await deleteEndedWorkers(api.sql, sumWorkerMetrics)).toBe(0)
  expect(await readCounts()).toEqual([14, 4])
  expect((await workerMetrics(api.sql)).length).toBe(2)
})
