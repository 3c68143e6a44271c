/**
 * Stops everything that a process has opened, in reverse order and with a time limit for each, when the process stops.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from './log.ts'
import { withTimeout } from './timeout.ts'

interface Resource {
  name: string
  stop: () => Promise<unknown> | unknown
}

export class Lifecycle {
  readonly #resources: Resource[] = []
  #stopping: Promise<void> | undefined
  #drainMillis = 0

  constructor(
    private readonly log: Logger,
    /** How long to wait for one resource before the next is stopped. */
    private readonly stopMillisMax = 15_000,
  ) {}

  /** Registers how to stop a value, and returns it. Stops it at once when the process is stopping already. */
  hold<T>(name: string, value: T, stop: (value: T) => Promise<unknown> | unknown): T {
    this.#resources.push({ name, stop: () => stop(value) })
    if (this.#stopping) this.#stopping = this.#stopping.then(() => this.#stopAll())
    return value
  }

  /** True from the call of {@link stop} on, also while everything still works during the drain time. */
  get isStopping(): boolean {
    return this.#stopping !== undefined
  }

  /**
   * Keeps everything working for this time after {@link stop}, so that load balancers see that the process is not
   * ready.
   */
  drainFor(millis: number): void {
    this.#drainMillis = millis
  }

  /**
   * Waits for the drain time, then stops everything in reverse order. Logs failures and never rejects. Safe to repeat.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#drainMillis > 0 ? sleep(this.#drainMillis).then(() => this.#stopAll()) : this.#stopAll()
    return this.#stopping
  }

  async #stopAll(): Promise<void> {
    for (const { name, stop } of this.#resources.splice(0).reverse()) {
      try {
        await withTimeout(this.stopMillisMax, `still running after ${this.stopMillisMax} ms`, stop)
      } catch (error) {
        this.log.error({ err: error, resource: name }, 'did not stop cleanly')
      }
    }
  }

  /** Resolves with the reason when the process is asked to stop: a signal, or the end of its parent process. */
  waitForStopRequest(): Promise<string> {
    return new Promise((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal))
      if (process.connected) process.once('disconnect', () => resolve('parent ended'))
      // The parent ended before this call.
      else if (process.send) resolve('parent ended')
    })
  }
}
