/** A worker: runs workflows, activities and background jobs, and records its heartbeat. */
import { randomUUID } from 'node:crypto'
import { Worker } from '@temporalio/worker'
import { Registry } from 'prom-client'
import { createBillingDeps } from '../../db/billing/subscriptions.ts'
import type { Database } from '../../db/connection.ts'
import { findMaskedEmail } from '../../db/identity/users.ts'
import { recordHeartbeat, recordWorkerEnd } from '../../db/operations/workers.ts'
import { startPresence } from '../../db/presence.ts'
import { createEndpointStore } from '../../db/transactions/record-endpoint-attempts.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import type { Logger } from '../../platform/log.ts'
import { type PeriodicTask, startPeriodicTask } from '../../platform/periodic-task.ts'
import { createSealing } from '../../platform/sealing.ts'
import { connectTemporal, isTemporalReachable } from '../../platform/temporal.ts'
import { connectTemporalWorker, registerSearchAttributes } from '../../platform/temporal-worker.ts'
import type { Tracing } from '../../platform/tracing.ts'
import { type Billing, createBilling } from '../../providers/billing/billing.ts'
import { createMailDelivery } from '../../providers/mail/delivery.ts'
import { createOAuthProviders } from '../../providers/oauth/providers.ts'
import { createEndpointDelivery } from '../../providers/webhooks/endpoint-delivery.ts'
import { createFailingWorkflows } from '../../workflows/failing-workflows-client.ts'
import { createRelaySessionWorkflows } from '../../workflows/relay-session-client.ts'
import { createSubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { createWarmInstancesWorkflows } from '../../workflows/warm-instances-client.ts'
import { billingJobs } from '../billing/inbox-jobs.ts'
import { billingReconciliationJobs } from '../billing/reconciliation-jobs.ts'
import { billingResolutionJobs } from '../billing/resolution-jobs.ts'
import { createSubscriptionActivities } from '../billing/subscriptions.ts'
import { usageJobs } from '../billing/usage-jobs.ts'
import { instanceJobs } from '../fleet/instance-jobs.ts'
import { providerCheckJobs } from '../fleet/provider-check-jobs.ts'
import { createProviderChecks, type ProviderChecks } from '../fleet/provider-checks.ts'
import { relayAddressJobs } from '../fleet/relay-address-jobs.ts'
import { relayNameJobs } from '../fleet/relay-name-jobs.ts'
import { type RelayProviders, withCallMetrics } from '../fleet/relay-providers.ts'
import { reportPathJobs } from '../fleet/report-path-jobs.ts'
import { warmInstanceJobs } from '../fleet/warm-instance-jobs.ts'
import { createWarmInstanceActivities } from '../fleet/warm-instances.ts'
import { accountDeletionJobs } from '../identity/account-deletion-jobs.ts'
import { providerTokenJobs } from '../identity/provider-token-jobs.ts'
import { providerTokenRevocationJobs } from '../identity/provider-token-revocation-jobs.ts'
import { notificationJobs } from '../notifications/notification-jobs.ts'
import { createNotify } from '../notifications/notifier.ts'
import { outboxJobs } from '../notifications/outbox-jobs.ts'
import { lostRelayJobs } from '../relay/lost-relay-jobs.ts'
import { type RelaySessionJobDeps, relaySessionJobs } from '../relay/session-jobs.ts'
import { createRelaySessionActivities } from '../relay/sessions.ts'
import { certificateJobs } from './certificate-jobs.ts'
import { type ClockSkew, createClockSkew } from './clock-skew.ts'
import { versionedWorkflows } from './deployment-version.ts'
import { endFailingWorkflows, type FailingWorkflowDeps } from './failing-workflows.ts'
import { incidentJobs } from './incident-jobs.ts'
import { startJobs } from './jobs.ts'
import { createWorkerMetrics, type WorkerMetrics } from './metrics.ts'
import { retentionJobs } from './retention-jobs.ts'
import { secretJobs } from './secret-jobs.ts'
import { workflowRestartJobs } from './workflow-restart-jobs.ts'

const heartbeatSeconds = 5
/**
 * How long activities may continue after the worker was asked to stop. Then they are cancelled and retried elsewhere.
 */
const shutdownGraceTime = '10s'
/** A worker that starts looks this long for failing workflows. The job `restart_workflows` looks for the rest. */
const failingMillisMax = 20_000

interface Deps {
  readonly config: Config
  readonly log: Logger
  readonly sql: Database
  readonly life: Lifecycle
  readonly providers: RelayProviders
  /** Called when the worker has failed and accepts no more work. The process should end, so that it is restarted. */
  readonly onFailure: (error: unknown) => void
  readonly tracing?: Tracing | undefined
}

/** Resolves when the worker accepts work. Everything that it opens is closed with `life`. */
export async function startWorker({ config, log, sql, life, providers, onFailure, tracing }: Deps): Promise<void> {
  const workerId = randomUUID()
  const metrics = createWorkerMetrics(new Registry(), config.regions)
  const clockSkew = createClockSkew(log)
  const { client } = life.hold('Temporal client', connectTemporal(config.temporal, tracing), (it) => it.close())
  const connection = life.hold('Temporal worker connection', await connectTemporalWorker(config.temporal, log), (it) =>
    it.close(),
  )
  await registerSearchAttributes(connection, config.temporal.namespace, log)

  const sealing = createSealing(config.oauthEncryptionKeys)
  const measuredProviders = withCallMetrics(providers, config, metrics)
  const { taskQueue } = config.temporal
  const maskedEmailOf = (userId: string) => findMaskedEmail(sql, userId)
  const relaySessions = createRelaySessionWorkflows(client, {
    taskQueue,
    settings: config.relay,
    callMillisMax: 10_000,
    findMaskedEmail: maskedEmailOf,
  })
  const subscriptions = createSubscriptionWorkflows(client, {
    taskQueue,
    callMillisMax: 10_000,
    findMaskedEmail: maskedEmailOf,
  })
  const warmInstances = createWarmInstancesWorkflows(client, { taskQueue, callMillisMax: 10_000 })
  const failing = {
    config,
    log,
    sql,
    sealing,
    metrics,
    relaySessions,
    subscriptions,
    warmInstances,
    failingWorkflows: createFailingWorkflows(client, { taskQueue, callMillisMax: 10_000 }),
  }
  // Before the worker takes a task that may have crashed the ones before it.
  await endFailingWorkflows(failing, Number.POSITIVE_INFINITY, AbortSignal.timeout(failingMillisMax)).catch(
    (error: unknown) => log.warn({ err: error }, 'failing workflows could not be looked for'),
  )
  const worker = await Worker.create({
    connection,
    namespace: config.temporal.namespace,
    taskQueue,
    ...(await versionedWorkflows(config, log, tracing !== undefined)),
    ...tracing?.worker,
    activities: {
      ...createRelaySessionActivities({ config, log, sql, sealing, providers: measuredProviders, metrics, clockSkew }),
      ...createSubscriptionActivities({ config, sql, sealing, relaySessions }),
      ...createWarmInstanceActivities({ config, sql, providers: measuredProviders }),
    },
    shutdownGraceTime,
    // A workflow that cannot be replayed ends, and a job starts it again from its rows in Postgres
    // (docs/decisions/0051).
    workflowFailureErrorTypes: { '*': ['NondeterminismError'] },
    // 400 workflows take up to 300 MB. A workflow that is not cached is replayed at its next event, and most sessions
    // have none for hours (docs/performance.md).
    maxCachedWorkflows: 400,
    // After this time another worker takes over a workflow that a dead worker had cached.
    stickyQueueScheduleToStartTimeout: '3s',
    maxConcurrentActivityTaskExecutions: 50,
    // Activities receive cancellations with heartbeats, so creating the instance of a stopped relay is cancelled within
    // a second.
    maxHeartbeatThrottleInterval: '1s',
    defaultHeartbeatThrottleInterval: '1s',
  })
  const running = worker.run()
  running.catch(onFailure)
  life.hold('worker', worker, async () => {
    if (worker.getState() === 'RUNNING') worker.shutdown()
    await running.catch(() => undefined)
  })

  const billing = await createBilling(config, createBillingDeps(sql))
  const deps = {
    ...failing,
    config,
    billing,
    providers: measuredProviders,
    metrics,
    providerChecks: startChecking({ config, sql, log, life, providers: measuredProviders }),
  }
  const jobs = startAllJobs(deps, workerId)
  life.hold('jobs', jobs, (it) => it.stop())
  life.hold('heartbeat', startHeartbeat({ worker, workerId, sql, log, metrics, clockSkew }), (it) => it.stop())
  // Without Temporal a worker can do nothing for a relay.
  const isAvailable = async () => worker.getState() === 'RUNNING' && (await isTemporalReachable(client))
  const limitSeconds = config.relay.provisionTimeoutSeconds
  life.hold('presence', startPresence({ sql, log, role: 'worker', limitSeconds, isAvailable }), (it) => it.stop())
}

/** Starts the first check of all providers in the background: a wrong setting is logged, and stops no worker. */
function startChecking({ life, ...deps }: Pick<Deps, 'config' | 'sql' | 'log' | 'life' | 'providers'>): ProviderChecks {
  const checks = createProviderChecks(deps)
  const stopping = life.hold('provider check', new AbortController(), (it) => it.abort())
  checks.run(stopping.signal).catch((error: unknown) => {
    deps.log.warn({ err: error }, 'the result of a provider check could not be stored')
  })
  return checks
}

interface JobDeps extends RelaySessionJobDeps, FailingWorkflowDeps {
  readonly config: Config
  readonly billing: Billing
  readonly metrics: WorkerMetrics
  readonly providerChecks: ProviderChecks
}

function startAllJobs(deps: JobDeps, workerId: string): PeriodicTask {
  const { config, sql, log, sealing, billing, metrics, subscriptions } = deps
  const oauth = createOAuthProviders(config.oauth)
  const endpoints = createEndpointStore(sql, sealing)
  const notify = createNotify({ sealing, siteUrl: config.siteUrl })
  return startJobs(
    [
      ...relaySessionJobs(deps),
      ...lostRelayJobs(deps),
      ...relayNameJobs({ config, sql, log }),
      ...relayAddressJobs(deps),
      ...reportPathJobs({ config, sql, log }),
      ...workflowRestartJobs(deps),
      ...instanceJobs(deps),
      ...certificateJobs({ config, sql, log }),
      ...providerCheckJobs(deps.providerChecks),
      ...incidentJobs({ config, sql, log }),
      ...warmInstanceJobs(deps),
      ...billingJobs(deps),
      ...billingResolutionJobs({ sql, log, subscriptions, provider: billing.provider }),
      ...billingReconciliationJobs({ sql, log, metrics, provider: billing.provider }),
      ...usageJobs({ ...deps, notify }),
      ...notificationJobs({ ...deps, notify }),
      ...retentionJobs(deps),
      ...accountDeletionJobs({ sql, log, billing }),
      ...providerTokenJobs({ sql, log, sealing, providers: oauth }),
      ...providerTokenRevocationJobs({ sql, log, sealing, providers: oauth }),
      ...secretJobs({ sql, log, sealing }),
      ...outboxJobs({
        sql,
        log,
        sealing,
        deliveries: {
          email: createMailDelivery(config, log),
          webhook: createEndpointDelivery('webhook', endpoints),
          discord: createEndpointDelivery('discord', endpoints),
        },
        keepsMails: config.mail.mailbox,
      }),
    ],
    { sql, log, workerId },
  )
}

interface Heartbeat {
  readonly worker: Worker
  readonly workerId: string
  readonly sql: Database
  readonly log: Logger
  readonly metrics: WorkerMetrics
  readonly clockSkew: ClockSkew
}

/** Records the worker's heartbeat with its counters and the skew of its clock. */
function startHeartbeat({ worker, workerId, sql, log, metrics, clockSkew }: Heartbeat): PeriodicTask {
  const message = "the worker's heartbeat could not be recorded"
  const record = async () => {
    await clockSkew.measurePostgres(sql)
    await recordHeartbeat(sql, workerId, await metrics.registry.getMetricsAsJSON(), clockSkew.current())
  }
  const task = startPeriodicTask({
    everySeconds: heartbeatSeconds,
    log,
    failure: { message },
    run: async () => {
      // A worker that polls no longer counts as ended, even if its process continues.
      if (worker.getState() === 'RUNNING') await record()
    },
  })
  return {
    stop: async () => {
      await task.stop()
      // The counters since the last heartbeat.
      await record().catch((error: unknown) => log.warn({ err: error }, message))
      await recordWorkerEnd(sql, workerId).catch(() => undefined)
    },
  }
}
