/** The file by which an orchestrator probes a worker, which has no HTTP listener that its event loop serves. */
import { rm } from 'node:fs/promises'
import { writeFileAtomically } from '../../platform/atomic-file.ts'
import type { Logger } from '../../platform/log.ts'
import { startPeriodicTask } from '../../platform/periodic-task.ts'

const everySeconds = 5

export interface AliveFile {
  /** The next time that the file is replaced, it says that the worker accepts work. */
  markAccepting(): void
  /** Removes the file. */
  stop(): Promise<void>
}

/**
 * Replaces the file every 5 s as long as the event loop runs, whether or not Postgres and Temporal are available. Its
 * only line is `starting` or `accepting`. A file that cannot be written is logged. @param file undefined: writes none.
 */
export function startAliveFile(file: string | undefined, log: Logger): AliveFile {
  if (file === undefined) return { markAccepting: () => {}, stop: async () => {} }
  let state = 'starting'
  const write = () => writeFileAtomically(file, `${state}\n`)
  const failure = { message: 'the file of SVC_WORKER_ALIVE_FILE could not be written', fields: { file } }
  const task = startPeriodicTask({ everySeconds, log, failure, run: write })
  return {
    markAccepting() {
      state = 'accepting'
    },
    async stop() {
      await task.stop()
      await rm(file, { force: true })
    },
  }
}
