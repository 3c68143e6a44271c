/** What the commands use that work without the API: the configuration of the worker, and Postgres. */
import { connectPostgres, type Database } from '../../db/connection.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { createLog } from '../../platform/log.ts'
import type { GlobalOptions } from '../svc/options.ts'
import { readWorkerEnvironment } from '../worker-environment.ts'

export interface WorkerAccess {
  readonly config: Config
  readonly sql: Database
}

export type OutputOptions = Pick<GlobalOptions, 'json'>

const connectionsMax = 5

/** The output of a command is its result; what the providers log is in the logs of the workers. */
export const silentLog = createLog('svc', 'silent')

/**
 * Closes the connections when `run` has settled. Throws `ConfigError`, and `SvcError` when there is no configuration.
 */
export async function withWorkerAccess<Result>(run: (access: WorkerAccess) => Promise<Result>): Promise<Result> {
  const config = readConfig(await readWorkerEnvironment(readStackConfig()))
  const sql = connectPostgres(config.database.url, connectionsMax)
  try {
    return await run({ config, sql })
  } finally {
    await sql.end({ timeout: 5 })
  }
}
