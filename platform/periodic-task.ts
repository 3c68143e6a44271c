/** Work that a process repeats in the background. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from './log.ts'

export interface PeriodicTask {
  /** Aborts the signal of the run in progress and waits for its end. No run follows. */
  stop(): Promise<void>
}

interface Options {
  /** Between the end of a run and the start of the next one. */
  readonly everySeconds: number
  readonly log: Logger
  /** Logged as a warning, with these fields, when a run fails. */
  readonly failure: { readonly message: string; readonly fields?: object }
  /** @param signal aborted when the task is stopped. */
  readonly run: (signal: AbortSignal) => Promise<unknown>
}

/** Starts the first run at once. Runs do not overlap, and a run that fails does not keep the next one from starting. */
export function startPeriodicTask({ everySeconds, log, failure, run }: Options): PeriodicTask {
  const stopping = new AbortController()
  const { signal } = stopping
  const runUntilStopped = async () => {
    while (!signal.aborted) {
      try {
        await run(signal)
      } catch (error) {
        log.warn({ err: error, ...failure.fields }, failure.message)
      }
      await sleep(everySeconds * 1000, undefined, { signal }).catch(() => undefined)
    }
  }
  const stopped = runUntilStopped()
  return {
    stop: () => {
      stopping.abort()
      return stopped
    },
  }
}
