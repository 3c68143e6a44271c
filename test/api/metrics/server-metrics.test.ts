/** The metrics of Postgres, of the presence of processes and of jobs. */
import { expect, test } from 'vitest'
import { startJobs } from '../../../activities/worker/jobs.ts'
import { recordProbe } from '../../../db/fleet/report-paths.ts'
import { startApi } from '../../support/api.ts'
import { readMetrics } from '../../support/metrics.ts'
import { eventually } from '../../support/relays.ts'

const api = await startApi()

test('the connections and the speed of Postgres are shown', async () => {
  const metric = await readMetrics(api)
  const connections = metric('svc_postgres_connections') ?? 0
  expect(connections).toBeGreaterThan(0)
  expect(metric('svc_postgres_connections_max')).toBeGreaterThan(connections)
  expect(metric('svc_postgres_round_trip_seconds')).toBeGreaterThan(0)
})

test('a role is absent since its last confirmation', async () => {
  await api.sql`update presence set seen_at = now() - interval '300 seconds' where role = 'worker'`
  const metric = await readMetrics(api)
  expect(metric('svc_process_absent_seconds{role="worker"}')).toBeGreaterThanOrEqual(300)
  expect(metric('svc_process_absent_seconds{role="api"}')).toBeLessThan(300)
})

test('the time for which the API is not reached through its public address is shown where it was reached before', async () => {
  const readFailing = async () => (await readMetrics(api))('svc_api_probe_failing_seconds')
  const probe = (isReached: boolean) => recordProbe(api.sql, { isReached, regions: [], healthTimeoutSeconds: 45 })
  await probe(false)
  await api.sql`update api_probe set failing_since = now() - interval '300 seconds'`
  expect(await readFailing()).toBe(0)
  await probe(true)
  expect(await readFailing()).toBe(0)
  await probe(false)
  await api.sql`update api_probe set failing_since = now() - interval '300 seconds'`
  await probe(false)
  expect(await readFailing()).toBeGreaterThanOrEqual(300)
  await probe(true)
  expect(await readFailing()).toBe(0)
})

test('the interval of a job is the one of the worker that started last', async () => {
  const readInterval = async () => (await readMetrics(api))('svc_job_interval_seconds{job="repeated"}')
  for (const everySeconds of [60, 90]) {
    const job = { name: 'repeated', everySeconds, runSecondsMax: 60, run: async () => {} }
    const { sql, log } = api.services
    const jobs = startJobs([job], { sql, log, workerId: crypto.randomUUID() })
    await eventually(readInterval, (seconds) => seconds === everySeconds)
    await jobs.stop()
  }
  expect(await readInterval()).toBe(90)
})
