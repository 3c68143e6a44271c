/** A worker: runs workflows, activities and background jobs, and says every few seconds that it does. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker'
import { Registry } from 'prom-client'
import type { Database } from '../../db/connection.ts'
import { keepPresence } from '../../db/presence.ts'
import { createBillingDeps } from '../../db/subscriptions.ts'
import { beat, endBeat } from '../../db/workers.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import type { Logger } from '../../platform/log.ts'
import { createSealing, type Sealing } from '../../platform/sealing.ts'
import { connectTemporal, isTemporalThere } from '../../platform/temporal.ts'
import { connectTemporalWorker, registerSearchAttributes } from '../../platform/temporal-worker.ts'
import { type Billing, createBilling } from '../../providers/billing/billing.ts'
import { createOAuthProviders } from '../../providers/oauth/providers.ts'
import { createRelaySessionActors } from '../../workflows/relay-session-client.ts'
import { createSubscriptionWorkflows, type SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import { accountJobs } from '../jobs/account-jobs.ts'
import { billingJobs } from '../jobs/billing-jobs.ts'
import { billingReconciliationJobs } from '../jobs/billing-reconciliation-jobs.ts'
import { billingResolutionJobs } from '../jobs/billing-resolution-jobs.ts'
import { instanceJobs } from '../jobs/instance-jobs.ts'
import { startJobs } from '../jobs/jobs.ts'
import { providerTokenJobs } from '../jobs/provider-token-jobs.ts'
import { providerTokenRevocationJobs } from '../jobs/provider-token-revocation-jobs.ts'
import { type RelaySessionJobNeeds, relaySessionJobs } from '../jobs/relay-session-jobs.ts'
import { secretJobs } from '../jobs/secret-jobs.ts'
import { usageJobs } from '../jobs/usage-jobs.ts'
import { workflowRestartJobs } from '../jobs/workflow-restart-jobs.ts'
import { countingCalls, type RelayProviders } from '../relay-providers.ts'
import { createRelaySessionActivities } from '../relay-sessions.ts'
import { createSubscriptionActivities } from '../subscriptions.ts'
import { type ClockSkew, createClockSkew } from './clock-skew.ts'
import { createWorkerMetrics, type WorkerMetrics } from './metrics.ts'
import { workflowBundlePath } from './workflow-bundle.ts'

const beatMillis = 5000
/** How long an activity may go on after the worker was asked to stop, before it is cancelled and tried elsewhere. */
const shutdownGraceTime = '10s'

interface Needs {
  readonly config: Config
  readonly log: Logger
  readonly sql: Database
  readonly life: Lifecycle
  readonly providers: RelayProviders
  /** Called when the worker can't take work any more; the process had better end, so that another one takes its place. */
  readonly failed: (error: unknown) => void
}

/** Resolves once the worker takes work. What it holds open ends with `life`. */
export async function startWorker({ config, log, sql, life, providers, failed }: Needs): Promise<void> {
  const workerId = randomUUID()
  const metrics = createWorkerMetrics(new Registry())
  const clockSkew = createClockSkew(log)
  const { client } = life.hold('Temporal client', connectTemporal(config.temporal), (it) => it.close())
  const connection = life.hold('Temporal worker connection', await connectTemporalWorker(config.temporal, log), (it) =>
    it.close(),
  )
  await registerSearchAttributes(connection, config.temporal.namespace, log)

  const sealing = createSealing(config.oauthEncryptionKeys)
  const counted = countingCalls(providers, config, metrics)
  const { taskQueue } = config.temporal
  const actors = createRelaySessionActors(client, {
    taskQueue,
    settings: config.relay,
    callMillisMax: 10_000,
  })
  const subscriptions = createSubscriptionWorkflows(client, { taskQueue, callMillisMax: 10_000 })
  const worker = await Worker.create({
    connection,
    namespace: config.temporal.namespace,
    taskQueue,
    workflowBundle: { codePath: await workflowBundlePath(log) },
    activities: {
      ...createRelaySessionActivities({ config, sql, sealing, providers: counted, metrics, clockSkew }),
      ...createSubscriptionActivities({ config, sql, actors }),
    },
    shutdownGraceTime,
    // Memory against replays: 500 take about 400 MB, and most sessions have nothing to say for hours (docs/performance.md).
    maxCachedWorkflows: 500,
    // What a dead worker had in its cache goes to another one this soon.
    stickyQueueScheduleToStartTimeout: '3s',
    maxConcurrentActivityTaskExecutions: 50,
    // A cancelled create is told so within a second, or a stopped relay would linger.
    maxHeartbeatThrottleInterval: '1s',
    defaultHeartbeatThrottleInterval: '1s',
  })
  const running = worker.run()
  running.catch(failed)
  life.hold('worker', worker, async () => {
    if (worker.getState() === 'RUNNING') worker.shutdown()
    await running.catch(() => undefined)
  })

  const billing = await createBilling(config, createBillingDeps(sql))
  const needs = { config, sql, log, sealing, actors, subscriptions, billing, providers: counted, metrics }
  const jobs = startAllJobs(needs, workerId)
  life.hold('jobs', jobs, (it) => it.stop())
  life.hold('heartbeat', startHeartbeat({ worker, workerId, sql, log, metrics, clockSkew }), (it) => it.stop())
  // Without Temporal a worker is as good as absent.
  const isAble = async () => worker.getState() === 'RUNNING' && (await isTemporalThere(client))
  const limitSeconds = config.relay.provisionTimeoutSeconds
  life.hold('presence', keepPresence({ sql, log, role: 'worker', limitSeconds, isAble }), (it) => it.stop())
}

interface JobNeeds extends RelaySessionJobNeeds {
  readonly sealing: Sealing
  readonly subscriptions: SubscriptionWorkflows
  readonly billing: Billing
  readonly metrics: WorkerMetrics
}

function startAllJobs(needs: JobNeeds, workerId: string): { stop(): Promise<void> } {
  const { config, sql, log, sealing, billing, metrics, subscriptions } = needs
  const oauth = createOAuthProviders(config.oauth)
  return startJobs(
    [
      ...relaySessionJobs(needs),
      ...workflowRestartJobs(needs),
      ...instanceJobs(needs),
      ...billingJobs(needs),
      ...billingResolutionJobs({ sql, log, subscriptions, provider: billing.provider }),
      ...billingReconciliationJobs({ sql, log, metrics, provider: billing.provider }),
      ...usageJobs(needs),
      ...accountJobs(sql),
      ...providerTokenJobs({ sql, log, sealing, providers: oauth }),
      ...providerTokenRevocationJobs({ sql, log, sealing, providers: oauth }),
      ...secretJobs({ sql, log, sealing }),
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

/** Keeps the worker's row alive, with its counters and its clock's skew. */
function startHeartbeat({ worker, workerId, sql, log, metrics, clockSkew }: Heartbeat): { stop(): Promise<void> } {
  const stopping = new AbortController()

  const sendHeartbeat = async () => {
    try {
      await clockSkew.measurePostgres(sql)
      await beat(sql, workerId, await metrics.registry.getMetricsAsJSON(), clockSkew.current())
    } catch (error) {
      log.warn({ err: error }, "the worker's heartbeat could not be written")
    }
  }

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      // A worker whose poller died is not alive, whatever else still runs.
      if (worker.getState() === 'RUNNING') await sendHeartbeat()
      await sleep(beatMillis, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  })()

  return {
    stop: async () => {
      stopping.abort()
      await loop
      await sendHeartbeat()
      await endBeat(sql, workerId).catch(() => undefined)
    },
  }
}

/** The process owns its signals, so that everything stops in one order. Once a process, before any worker. */
export const leaveSignalsAlone = (log: Logger): Runtime =>
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions: { logging: { forward: {}, filter: { core: 'WARN', other: 'ERROR' } } },
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      const { error, ...rest } = (meta ?? {}) as { error?: unknown }
      log[level === 'WARN' ? 'warn' : 'error']({ ...rest, ...(error ? { err: error } : {}) }, message)
    }),
  })
