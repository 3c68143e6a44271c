/** The real worker with a fake relay provider, since thousands of relay processes would dominate the measurement. */
import { startProcessMetrics } from '../activities/worker/process-metrics.ts'
import { installRuntime } from '../activities/worker/runtime.ts'
import { startWorker } from '../activities/worker/start-worker.ts'
import { connectPostgres } from '../db/connection.ts'
import { readConfig } from '../platform/config/config.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { createFakeRelays } from '../test/support/fake-relay-provider.ts'

const config = readConfig()
const log = createLog('worker', config.logLevel)
const life = new Lifecycle(log)
const { metricMeter } = installRuntime(log, config.workerMetricsAddress)
if (config.workerMetricsAddress) life.hold('process metrics', startProcessMetrics(metricMeter, log), (it) => it.stop())
const stopRequest = life.waitForStopRequest()
const sql = connectPostgres(config.database.url, config.database.connectionsMax)
life.hold('database', sql, (it) => it.end({ timeout: 5 }))
const provider = createFakeRelays()
const providers = new Map(config.regions.map(({ region }) => [region, provider]))
const onFailure = (error: unknown) => {
  log.fatal({ err: error }, 'the worker failed')
  process.exit(1)
}
await startWorker({ config, log, sql, life, providers, onFailure })
await stopRequest
await life.stop()
process.exit(0)
