/**
 * The page that Prometheus reads: what this process counted, what all workers counted, and what stands in Postgres.
 * The last two are the same on every api replica: take `max by`, not `sum by`, over replicas.
 */
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import { readInboxFigures } from '../../db/billing-events.ts'
import { countInstances } from '../../db/instances.ts'
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

const gaugesOf =
  (page: Registry) =>
  (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [page] })

/** An actor that acts this late is not merely busy. */
const overdueSeconds = 60

async function sharedMetrics({ sql, config }: Services): Promise<Registry> {
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
    instances,
    counted,
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
    countInstances(sql),
    workerMetrics(sql),
  ])
  const page = new Registry()
  const gauge = gaugesOf(page)

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
  gauge('svc_relay_sessions_overlong', 'Live sessions older than the longest duration.').set(overlong)
  gauge('svc_relay_commands_undelivered', 'Accepted commands that are not delivered to their workflow.').set(
    undelivered.commands,
  )
  gauge('svc_relay_commands_undelivered_age_seconds', 'Age of the oldest undelivered command.').set(
    undelivered.oldestSeconds,
  )
  const existing = gauge('svc_relay_instances', 'Instances that exist at the providers.', ['region'])
  for (const { region, count } of instances) existing.set({ region }, count)
  gauge('svc_workers_alive', 'Worker processes that said lately that they are alive.').set(workers)
  const skew = gauge('svc_clock_skew_seconds', 'Greatest difference of a live worker to the other clock.', ['clock'])
  for (const clock of ['postgres', 'temporal'] as const) if (skews[clock] !== null) skew.set({ clock }, skews[clock])

  const events = gauge('svc_billing_events', 'Billing events that are not settled, by what they wait for.', ['status'])
  for (const { status, events: count } of inbox) events.set({ status }, count)
  gauge('svc_billing_oldest_pending_seconds', 'Age of the oldest event that its actor has not taken.').set(
    inbox.find((one) => one.status === 'pending')?.oldestSeconds ?? 0,
  )
  gauge('svc_billing_oldest_unresolved_seconds', 'Age of the oldest event whose provider has still to be asked.').set(
    inbox.find((one) => one.status === 'unresolved')?.oldestSeconds ?? 0,
  )
  gauge('svc_subscriptions_overdue', 'Accounts whose actor should have acted over a minute ago.').set(overdue)
  setAccountGauges(page)
  countJobs(page, jobs)
  return counted.length === 0 ? page : Registry.merge([page, AggregatorRegistry.aggregate(counted as never)])
}

function countJobs(page: Registry, jobs: readonly JobRow[]): void {
  const gauge = gaugesOf(page)
  const counter = (name: string, help: string) => new Counter({ name, help, labelNames: ['job'], registers: [page] })
  const runs = counter('svc_job_runs_total', 'Rounds of a background job.')
  const failures = counter('svc_job_failures_total', 'Rounds that failed.')
  const seconds = counter('svc_job_duration_seconds_total', 'Time spent in rounds.')
  const lastSeconds = gauge('svc_job_last_duration_seconds', 'Duration of the last round.', ['job'])
  const lastSuccess = gauge('svc_job_last_success_timestamp_seconds', 'When a round last succeeded.', ['job'])
  for (const job of jobs) {
    runs.inc({ job: job.name }, job.runs)
    failures.inc({ job: job.name }, job.failures)
    seconds.inc({ job: job.name }, job.durationSecondsTotal)
    if (job.lastDurationSeconds !== null) lastSeconds.set({ job: job.name }, job.lastDurationSeconds)
    if (job.lastSuccessAt) lastSuccess.set({ job: job.name }, job.lastSuccessAt.getTime() / 1000)
  }
}
