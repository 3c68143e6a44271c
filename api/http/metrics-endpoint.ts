/**
 * `GET /metrics` for Prometheus: the metrics of this process, of all workers, and gauges read from Postgres. The last two are the
 * same on every API replica: aggregate replicas with `max by`, not `sum by`.
 */
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import { readInboxFigures } from '../../db/billing-events.ts'
import { type JobRow, listJobs } from '../../db/jobs.ts'
import { countUndeliveredCommands } from '../../db/relay-commands.ts'
import { countOverlongSessions, listQuietSessions } from '../../db/relay-health.ts'
import { countLiveRelaySessions } from '../../db/relay-sessions.ts'
import { countOverdueAccounts } from '../../db/subscriptions.ts'
import { countAliveWorkers, greatestSkews, workerMetrics } from '../../db/workers.ts'
import { silenceByRegion } from '../../domain/relay-health.ts'
import { relayStates } from '../../domain/relay-session.ts'
import type { Services } from '../services.ts'
import { readAccountGauges } from './billing-metrics.ts'
import { readFleetGauges } from './fleet-metrics.ts'
import { readOutboxGauges } from './outbox-metrics.ts'

export async function renderMetrics(services: Services, own: Registry): Promise<string> {
  const shared = await readSharedMetrics(services).catch((error: unknown) => {
    services.log.warn({ err: error }, 'the metrics are incomplete: Postgres could not be read')
    return new Registry()
  })
  const merged = Registry.merge([own, shared])
  new Gauge({
    name: 'svc_metrics_complete',
    help: '1 if the metrics from Postgres are included, otherwise 0.',
    registers: [merged],
  }).set((await shared.getMetricsAsArray()).length > 0 ? 1 : 0)
  return merged.metrics()
}

const createGaugeFactory =
  (registry: Registry) =>
  (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [registry] })

/** A subscription workflow that is this late has probably stopped. */
const overdueSeconds = 60

async function readSharedMetrics({ sql, config }: Services): Promise<Registry> {
  const [
    sessions,
    quietSessions,
    overlong,
    undelivered,
    inbox,
    overdue,
    setAccountGauges,
    jobs,
    workers,
    skews,
    setFleetGauges,
    setOutboxGauges,
    workerRegistries,
  ] = await Promise.all([
    countLiveRelaySessions(sql),
    listQuietSessions(sql, config.relay.healthTimeoutSeconds / 2),
    countOverlongSessions(sql, config.relay.maxSessionSeconds),
    countUndeliveredCommands(sql),
    readInboxFigures(sql),
    countOverdueAccounts(sql, overdueSeconds),
    readAccountGauges(sql),
    listJobs(sql),
    countAliveWorkers(sql),
    greatestSkews(sql),
    readFleetGauges(sql, config.regions),
    readOutboxGauges(sql),
    workerMetrics(sql),
  ])
  const registry = new Registry()
  const gauge = createGaugeFactory(registry)

  const live = gauge('svc_relay_sessions', 'Live relay sessions by state and region.', ['state', 'region'])
  for (const { region } of config.regions)
    for (const state of relayStates.filter((one) => one !== 'stopped')) live.set({ state, region }, 0)
  for (const { state, region, sessions: count } of sessions) live.set({ state, region }, count)
  const silence = silenceByRegion(quietSessions, config.relay.healthTimeoutSeconds)
  const quiet = gauge('svc_relay_sessions_quiet', 'Active sessions that did not report for half the health timeout.', [
    'region',
  ])
  for (const { region } of config.regions)
    quiet.set({ region }, silence.find((one) => one.region === region)?.quiet ?? 0)
  gauge('svc_relay_sessions_overlong', 'Live sessions older than the maximum duration.').set(overlong)
  gauge('svc_relay_commands_undelivered', 'Accepted commands that are not delivered to their workflow.').set(
    undelivered.commands,
  )
  gauge('svc_relay_commands_undelivered_age_seconds', 'Age of the oldest undelivered command.').set(
    undelivered.oldestSeconds,
  )
  setFleetGauges(registry)
  setOutboxGauges(registry)
  gauge('svc_workers_alive', 'Worker processes with a recent heartbeat.').set(workers)
  const skew = gauge(
    'svc_clock_skew_seconds',
    'Largest clock difference between a live worker and Postgres or Temporal.',
    ['clock'],
  )
  for (const clock of ['postgres', 'temporal'] as const) if (skews[clock] !== null) skew.set({ clock }, skews[clock])

  const events = gauge('svc_billing_events', 'Billing events that are not settled, by status.', ['status'])
  for (const { status, events: count } of inbox) events.set({ status }, count)
  gauge('svc_billing_oldest_pending_seconds', 'Age of the oldest event that its workflow has not applied.').set(
    inbox.find((one) => one.status === 'pending')?.oldestSeconds ?? 0,
  )
  gauge(
    'svc_billing_oldest_unresolved_seconds',
    'Age of the oldest event that still needs data from its provider.',
  ).set(inbox.find((one) => one.status === 'unresolved')?.oldestSeconds ?? 0)
  gauge('svc_subscriptions_overdue', 'Accounts whose subscription workflow is over a minute late.').set(overdue)
  setAccountGauges(registry)
  addJobMetrics(registry, jobs)
  return workerRegistries.length === 0
    ? registry
    : Registry.merge([registry, AggregatorRegistry.aggregate(workerRegistries as never)])
}

function addJobMetrics(registry: Registry, jobs: readonly JobRow[]): void {
  const gauge = createGaugeFactory(registry)
  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames: ['job'], registers: [registry] })
  const runs = counter('svc_job_runs_total', 'Runs of a background job.')
  const failures = counter('svc_job_failures_total', 'Failed runs of a background job.')
  const seconds = counter('svc_job_duration_seconds_total', 'Total duration of the runs.')
  const lastSeconds = gauge('svc_job_last_duration_seconds', 'Duration of the last run.', ['job'])
  const lastSuccess = gauge('svc_job_last_success_timestamp_seconds', 'Time of the last successful run.', ['job'])
  for (const job of jobs) {
    runs.inc({ job: job.name }, job.runs)
    failures.inc({ job: job.name }, job.failures)
    seconds.inc({ job: job.name }, job.durationSecondsTotal)
    if (job.lastDurationSeconds !== null) lastSeconds.set({ job: job.name }, job.lastDurationSeconds)
    if (job.lastSuccessAt) lastSuccess.set({ job: job.name }, job.lastSuccessAt.getTime() / 1000)
  }
}
