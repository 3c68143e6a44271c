/** `npm run worker`: the background process. It has no HTTP listener; its state is in Postgres. */
import { connectPostgres, workerLimits } from '../../db/connection.ts'
import { migrateWhenReachable } from '../../db/migrations.ts'
import { readWorkerConfig } from '../../platform/config/config.ts'
import { runProgram } from '../../platform/program.ts'
import { createRelayProviders } from '../relay-providers.ts'
import { installRuntime, startWorker } from './start-worker.ts'

await runProgram('worker', readWorkerConfig, async ({ config, log, life }) => {
  installRuntime(log)
  const { url, connectionsMax } = config.database
  const sql = life.hold('database', connectPostgres(url, connectionsMax, workerLimits), (it) => it.end({ timeout: 5 }))
  const onFailure = (error: unknown) => {
    log.fatal({ err: error }, 'the worker failed')
    process.exit(1)
  }
  migrateWhenReachable(url, log)
    .then(() => createRelayProviders(config, log))
    .then((providers) => startWorker({ config, log, sql, life, providers, onFailure }))
    .then(() => log.info('the worker accepts work'), onFailure)
})
