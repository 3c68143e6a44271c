/** The real worker, with the local provider in one region and the driver's simulated provider in the other. */
import { createRelayProviders } from '../../activities/fleet/relay-providers.ts'
import { installRuntime } from '../../activities/worker/runtime.ts'
import { startWorker } from '../../activities/worker/start-worker.ts'
import { connectPostgres, workerLimits } from '../../db/connection.ts'
import { migrateWhenReachable } from '../../db/migrations.ts'
import { readWorkerConfig } from '../../platform/config/config.ts'
import { runProgram } from '../../platform/program.ts'
import { createCloudClient } from './cloud.ts'
import type { RegionName } from './plan.ts'

await runProgram('worker', readWorkerConfig, async ({ config, log, life }) => {
  installRuntime(log)
  const { url, connectionsMax } = config.database
  const sql = life.hold('database', connectPostgres(url, connectionsMax, workerLimits), (it) => it.end({ timeout: 5 }))
  const onFailure = (error: unknown) => {
    log.fatal({ err: error }, 'the worker failed')
    process.exit(1)
  }
  const start = async () => {
    await migrateWhenReachable(url, log)
    const providers = new Map(await createRelayProviders(config, log))
    providers.set('simulated' satisfies RegionName, createCloudClient(process.env.CHAOS_CLOUD_URL ?? ''))
    await startWorker({ config, log, sql, life, providers, onFailure })
    log.info('the worker accepts work')
  }
  start().catch(onFailure)
})
