/**
 * `GET /metrics` for Prometheus: the metrics of this process, of all workers, and gauges read from Postgres. The last
 * two are the same on every API replica: aggregate replicas with `max by`, not `sum by`.
 */
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import { readInboxFigures } from '../../db/billing/events.ts'
import { countOverdueAccounts } from '../../db/billing/subscriptions.ts'
import type { Database } from '../../db/connection.ts'
import { countEndedWorkflows } from '../../db/operations/ended-workflows.ts'
import { type JobRow, listJobs } from '../../db/operations/jobs.ts'
import { workerMetrics } from '../../db/operations/workers.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import { readAccountGauges } from './billing-metrics.ts'
import { readFleetGauges } from './fleet-metrics.ts'
import { readOutboxGauges } from './outbox-metrics.ts'
import { readRelayGauges } from './relay-metrics.ts'
import { readServerGauges } from './server-metrics.ts'

interface Deps {
  readonly sql: Database
  readonly config: Config
  readonly log: Logger
}

export async function renderMetrics(deps: Deps, own: Registry): Promise<string> {
  const shared = await readSharedMetrics(deps).catch((error: unknown) => {
    deps.log.warn({ err: error }, 'the metrics are incomplete: Postgres could not be read')
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

async function readSharedMetrics({ sql, config }: Deps): Promise<Registry> {
  const [inbox, overdue, ended, jobs, workerRegistries, ...setters] = await Promise.all([
    readInboxFigures(sql),
    countOverdueAccounts(sql, overdueSeconds),
    countEndedWorkflows(sql),
    listJobs(sql),
    workerMetrics(sql),
    readServerGauges(sql),
    readRelayGauges(sql, config),
    readFleetGauges(sql, config.regions),
    readOutboxGauges(sql),
    readAccountGauges(sql),
  ])
  const registry = new Registry()
  const gauge = createGaugeFactory(registry)
  for (const setGauges of setters) setGauges(registry)

  const events = gauge('svc_billing_events', 'Billing events that are not settled, by status.', ['status'])
  for (const { status, events: count } of inbox) events.set({ status }, count)
  gauge('svc_billing_oldest_pending_seconds', 'Age of the oldest event that its workflow has not applied.').set(
    inbox.find(({ status }) => status === 'pending')?.oldestSeconds ?? 0,
  )
  gauge(
    'svc_billing_oldest_unresolved_seconds',
    'Age of the oldest event that still needs data from its provider.',
  ).set(inbox.find(({ status }) => status === 'unresolved')?.oldestSeconds ?? 0)
  gauge('svc_subscriptions_overdue', 'Accounts whose subscription workflow is over a minute late.').set(overdue)
  const endedWorkflows = gauge(
    'svc_workflows_ended',
    'Workflows of the last day that were ended for their failing tasks.',
    ['workflow_type', 'times'],
  )
  for (const { workflowType: workflow_type, once, repeatedly } of ended) {
    endedWorkflows.set({ workflow_type, times: 'once' }, once)
    endedWorkflows.set({ workflow_type, times: 'repeatedly' }, repeatedly)
  }
  addJobMetrics(registry, jobs)
  return workerRegistries.length === 0
    ? registry
    : Registry.merge([registry, AggregatorRegistry.aggregate(workerRegistries as never)])
}

function addJobMetrics(registry: Registry, jobs: readonly JobRow[]): void {
  const gauge = createGaugeFactory(registry)
  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames: ['job'], registers: [registry] })
  const interval = gauge('svc_job_interval_seconds', 'How often a background job runs.', ['job'])
  const runs = counter('svc_job_runs_total', 'Runs of a background job.')
  const failures = counter('svc_job_failures_total', 'Failed runs of a background job.')
  const seconds = counter('svc_job_duration_seconds_total', 'Total duration of the runs.')
  const lastSeconds = gauge('svc_job_last_duration_seconds', 'Duration of the last run.', ['job'])
  const lastSuccess = gauge('svc_job_last_success_timestamp_seconds', 'Time of the last successful run.', ['job'])
  for (const job of jobs) {
    if (job.everySeconds !== null) interval.set({ job: job.name }, job.everySeconds)
    runs.inc({ job: job.name }, job.runs)
    failures.inc({ job: job.name }, job.failures)
    seconds.inc({ job: job.name }, job.durationSecondsTotal)
    if (job.lastDurationSeconds !== null) lastSeconds.set({ job: job.name }, job.lastDurationSeconds)
    if (job.lastSuccessAt) lastSuccess.set({ job: job.name }, job.lastSuccessAt.getTime() / 1000)
  }
}
