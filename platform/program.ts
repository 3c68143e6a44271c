/** Runs a program of the service: reads its configuration, starts it, and stops it gracefully on request. */
import { ConfigError } from './config/environment.ts'
import { Lifecycle } from './lifecycle.ts'
import { createLog, type Logger } from './log.ts'

export interface ProgramDeps<Config> {
  readonly config: Config
  readonly log: Logger
  /** Stops everything that is registered with it when the program ends. */
  readonly life: Lifecycle
}

/**
 * Runs until the process is asked to stop, and then ends the process. When the configuration is invalid or the start
 * fails, it prints the error to standard error and exits with code 1.
 * @param name the name of the program in its log.
 */
export async function runProgram<Config extends { readonly logLevel: string }>(
  name: string,
  readConfig: () => Config,
  start: (deps: ProgramDeps<Config>) => Promise<void>,
): Promise<never> {
  try {
    const config = readConfig()
    const log = createLog(name, config.logLevel)
    const life = new Lifecycle(log)
    // Before the start, so that a request during the start is not missed.
    const stopRequest = life.waitForStopRequest()
    await start({ config, log, life })
    log.info({ reason: await stopRequest }, 'stopping')
    await life.stop()
    process.exit(0)
  } catch (error) {
    process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
