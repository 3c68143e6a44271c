/** `npm run worker`: the background process. It has no listener; what is to be known of it stands in Postgres. */
import { connectPostgres } from '../db/connection.ts'
import { migrateWhenThere } from '../db/migrations.ts'
import { ConfigError, readConfig } from '../platform/config.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { createRelayProviders } from './relay-providers.ts'
import { leaveSignalsAlone, startWorker } from './start-worker.ts'

try {
  const config = readConfig()
  const log = createLog('worker', config.logLevel)
  const life = new Lifecycle(log)
  const asked = life.untilAsked()
  leaveSignalsAlone(log)
  const sql = life.hold('database', connectPostgres(config.database.url, config.database.connectionsMax), (it) =>
    it.end({ timeout: 5 }),
  )
  const failed = (error: unknown) => {
    log.fatal({ err: error }, 'the worker can not go on')
    process.exit(1)
  }
  migrateWhenThere(sql, log)
    .then(() => startWorker({ config, log, sql, life, providers: createRelayProviders(config, log), failed }))
    .then(() => log.info('the worker takes work'), failed)
  log.info({ reason: await asked }, 'stopping')
  await life.stop()
  process.exit(0)
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`)
  process.exit(1)
}
