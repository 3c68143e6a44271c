/** `npm run worker`: the background process. It has no listener; what is to be known of it stands in Postgres. */
import { connectPostgres, workerLimits } from '../../db/connection.ts'
import { migrateWhenThere } from '../../db/migrations.ts'
import { readConfig } from '../../platform/config/config.ts'
import { runProgram } from '../../platform/program.ts'
import { createRelayProviders } from '../relay-providers.ts'
import { leaveSignalsAlone, startWorker } from './start-worker.ts'

await runProgram('worker', readConfig, async ({ config, log, life }) => {
  leaveSignalsAlone(log)
  const { url, connectionsMax } = config.database
  const sql = life.hold('database', connectPostgres(url, connectionsMax, workerLimits), (it) => it.end({ timeout: 5 }))
  const failed = (error: unknown) => {
    log.fatal({ err: error }, 'the worker can not go on')
    process.exit(1)
  }
  migrateWhenThere(url, log)
    .then(() => startWorker({ config, log, sql, life, providers: createRelayProviders(config, log), failed }))
    .then(() => log.info('the worker takes work'), failed)
})
