/**
 * The page that Prometheus reads: what this process counted, what all workers counted, and what stands in Postgres.
 * The last two are the same on every api replica: take `max by`, not `sum by`, over replicas.
 */
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import { existingInstances } from '../db/instances.ts'
import { listJobs } from '../db/jobs.ts'
import { countOverlongSessions, silentSessions } from '../db/relay-health.ts'
import { countLiveRelaySessions, oldestUndelivered } from '../db/relay-sessions.ts'
import { countAliveWorkers, workerMetrics } from '../db/workers.ts'
import type { Services } from './services.ts'

export async function renderMetrics(services: Services, own: Registry): Promise<string> {
  const shared = await sharedMetrics(services).catch((error: unknown) => {
    services.log.warn({ err: error }, 'metrics without what stands in Postgres')
    return new Registry()
  })
  const page = Registry.merge([own, shared])
  new Gauge({
    name: 'svc_metrics_complete',
    help: '1 when what stands in Postgres could be read for this page.',
    registers: [page],
  }).set((await shared.getMetricsAsArray()).length > 0 ? 1 : 0)
  return page.metrics()
}

async function sharedMetrics({ sql, config }: Services): Promise<Registry> {
  const [sessions, silence, overlong, undelivered, jobs, workers, instances, counted] = await Promise.all([
    countLiveRelaySessions(sql),
    silentSessions(sql, config.relay.healthTimeoutSeconds),
    countOverlongSessions(sql, config.relay.maxSessionSeconds),
    oldestUndelivered(sql),
    listJobs(sql),
    countAliveWorkers(sql),
    existingInstances(sql),
    workerMetrics(sql),
  ])
  const page = new Registry()
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [page] })

  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers: [page] })

  const live = gauge('svc_relay_sessions', 'Live relay sessions by state and region.', ['state', 'region'])
  for (const { region } of config.regions)
    for (const state of ['provisioning', 'active', 'grace']) live.set({ state, region }, 0)
  for (const { state, region, sessions: count } of sessions) live.set({ state, region }, count)
  const quiet = gauge('svc_relay_sessions_quiet', 'Active sessions that did not report for half the health timeout.', [
    'region',
  ])
  for (const { region } of config.regions)
    quiet.set({ region }, silence.find((one) => one.region === region)?.quiet ?? 0)
  gauge('svc_relay_sessions_overlong', 'Live sessions older than the longest duration.').set(overlong)
  gauge('svc_relay_commands_undelivered', 'Accepted commands that their actor is not known to have.').set(
    undelivered.commands,
  )
  gauge('svc_relay_commands_undelivered_age_seconds', 'Age of the oldest of those.').set(undelivered.oldestSeconds)
  const existing = gauge('svc_relay_instances', 'Instances that exist at the providers.', ['region'])
  for (const { region, count } of instances) existing.set({ region }, count)
  gauge('svc_workers_alive', 'Worker processes that said lately that they are alive.').set(workers)

  const runs = counter('svc_job_runs_total', 'Rounds of a background job.', ['job'])
  const failures = counter('svc_job_failures_total', 'Rounds that failed.', ['job'])
  const seconds = counter('svc_job_duration_seconds_total', 'Time spent in rounds.', ['job'])
  const lastSeconds = gauge('svc_job_last_duration_seconds', 'Duration of the last round.', ['job'])
  const lastSuccess = gauge('svc_job_last_success_timestamp_seconds', 'When a round last succeeded.', ['job'])
  for (const job of jobs) {
    runs.inc({ job: job.name }, job.runs)
    failures.inc({ job: job.name }, job.failures)
    seconds.inc({ job: job.name }, job.duration_seconds_total)
    if (job.last_duration_seconds !== null) lastSeconds.set({ job: job.name }, job.last_duration_seconds)
    if (job.last_success_at) lastSuccess.set({ job: job.name }, job.last_success_at.getTime() / 1000)
  }
  return counted.length === 0 ? page : Registry.merge([page, AggregatorRegistry.aggregate(counted as never)])
}
