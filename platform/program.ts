/** The life of a program of the service: configured, started, and ended in good order when it is asked to. */
import { ConfigError } from './config/environment.ts'
import { Lifecycle } from './lifecycle.ts'
import { createLog, type Logger } from './log.ts'

export interface ProgramDeps<Config> {
  readonly config: Config
  readonly log: Logger
  /** What is held by it is let go of when the program ends. */
  readonly life: Lifecycle
}

/**
 * Runs until the process is asked to end, and ends the process. What is wrong with the configuration, or keeps the program
 * from starting, is said on standard error, and the exit code is 1.
 * @param name how the program is named in its log.
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
    // Listens before anything starts: whoever asks meanwhile is heard.
    const asked = life.untilAsked()
    await start({ config, log, life })
    log.info({ reason: await asked }, 'stopping')
    await life.stop()
    process.exit(0)
  } catch (error) {
    process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
