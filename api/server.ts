/** `npm run api`: the HTTP process. */
import { connectPostgres } from '../db/connection.ts'
import { ConfigError, readConfig } from '../platform/config.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { startApi } from './start-api.ts'

try {
  const config = readConfig()
  const log = createLog('api', config.logLevel)
  const life = new Lifecycle(log)
  const asked = life.untilAsked()
  const sql = life.hold('database', connectPostgres(config.database.url, config.database.connectionsMax), (it) =>
    it.end({ timeout: 5 }),
  )
  const { port, ready } = await startApi({ config, log, sql, life })
  log.info({ port }, 'the api listens')
  ready.then(
    () => log.info('the api is ready'),
    (error: unknown) => {
      log.fatal({ err: error }, 'the database could not be brought up to date')
      process.exit(1)
    },
  )
  log.info({ reason: await asked }, 'stopping')
  await life.stop()
  process.exit(0)
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`)
  process.exit(1)
}
