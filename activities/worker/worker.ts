/**
 * `npm run worker`: the background process. Its state is in Postgres; with `SVC_WORKER_METRICS_ADDRESS` it listens for
 * Prometheus.
 */
import { connectPostgres, workerLimits } from '../../db/connection.ts'
import { beginEpoch } from '../../db/epochs.ts'
import { migrateWhenReachable } from '../../db/migrations.ts'
import { withStatementSpans } from '../../db/statement-spans.ts'
import { findHostProblems } from '../../platform/bindable-host.ts'
import { readWorkerConfig } from '../../platform/config/config.ts'
import { ConfigError } from '../../platform/config/environment.ts'
import { runProgram } from '../../platform/program.ts'
import { startTracing } from '../../platform/start-tracing.ts'
import { assertFleetName } from '../fleet/fleet-names.ts'
import { createRelayProviders, keepRelayProgram } from '../fleet/relay-providers.ts'
import { startAliveFile } from './alive-file.ts'
import { startProcessMetrics } from './process-metrics.ts'
import { installRuntime } from './runtime.ts'
import { startWorker } from './start-worker.ts'

await runProgram('worker', readWorkerConfig, async ({ config, log, life }) => {
  const hostProblems = await findHostProblems(config.regions)
  if (hostProblems.length > 0) throw new ConfigError(hostProblems)
  const alive = life.hold('alive file', startAliveFile(config.workerAliveFile, log), (it) => it.stop())
  const { metricMeter } = installRuntime(log, config.workerMetricsAddress)
  if (config.workerMetricsAddress)
    life.hold('process metrics', startProcessMetrics(metricMeter, log), (it) => it.stop())
  const { url, connectionsMax } = config.database
  const tracing = await startTracing(config, 'relay-control-plane-worker', life)
  const pool = life.hold('database', connectPostgres(url, connectionsMax, workerLimits), (it) => it.end({ timeout: 5 }))
  const sql = tracing ? withStatementSpans(pool, tracing) : pool
  const onFailure = (error: unknown) => {
    log.fatal({ err: error }, 'the worker failed')
    process.exit(1)
  }
  migrateWhenReachable(url, log)
    .then(() => keepRelayProgram(sql, config))
    .then(() => createRelayProviders(config, log))
    .then(async (providers) => {
      await assertFleetName({ config, sql, log, providers })
      if (await beginEpoch(sql, config.fleet.epoch))
        log.info('a new epoch of the database begins: instances that it does not know are kept for a day')
      return providers
    })
    .then((providers) => startWorker({ config, log, sql, life, providers, onFailure, tracing }))
    .then(() => {
      alive.markAccepting()
      log.info('the worker accepts work')
    })
    .catch(onFailure)
})
