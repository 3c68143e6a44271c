/** `npm run api`: the API process. */
import { connectPostgres, requestLimits } from '../db/connection.ts'
import { withStatementSpans } from '../db/statement-spans.ts'
import { readConfig } from '../platform/config/config.ts'
import { runProgram } from '../platform/program.ts'
import { startTracing } from '../platform/start-tracing.ts'
import { startApi } from './start-api.ts'

await runProgram('api', readConfig, async ({ config, log, life }) => {
  const { url, connectionsMax } = config.database
  const tracing = await startTracing(config, 'relay-control-plane-api', life)
  const pool = life.hold('database', connectPostgres(url, connectionsMax, requestLimits), (it) =>
    it.end({ timeout: 5 }),
  )
  const sql = tracing ? withStatementSpans(pool, tracing) : pool
  const { port, ready } = await startApi({ config, log, sql, life, tracing })
  log.info({ port }, 'the api is listening')
  ready.then(
    () => log.info('the api is ready'),
    (error: unknown) => {
      log.fatal({ err: error }, 'the database migrations failed')
      process.exit(1)
    },
  )
})
