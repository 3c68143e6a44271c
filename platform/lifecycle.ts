/** What a process holds open, let go of in reverse order, each within a limit, when it is asked to stop. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from './log.ts'

interface Held {
  what: string
  stop: () => Promise<unknown> | unknown
}

export class Lifecycle {
  readonly #held: Held[] = []
  #stopping: Promise<void> | undefined
  #drainMillis = 0

  constructor(
    private readonly log: Logger,
    /** How long one thing may take to stop before the next one's turn comes. */
    private readonly stopMillisMax = 15_000,
  ) {}

  /** Keeps `value` and remembers how to stop it. What comes when the process is stopping already is stopped at once. */
  hold<T>(what: string, value: T, stop: (value: T) => Promise<unknown> | unknown): T {
    this.#held.push({ what, stop: () => stop(value) })
    if (this.#stopping) this.#stopping = this.#stopping.then(() => this.#stopAll())
    return value
  }

  /** True from the call of {@link stop} on, also while everything still works because the process drains. */
  get isStopping(): boolean {
    return this.#stopping !== undefined
  }

  /** Lets everything work for that long after {@link stop} was called, so that load balancers see that it is not ready. */
  drainFor(millis: number): void {
    this.#drainMillis = millis
  }

  /** Drains, then stops everything in reverse; a second call waits for the first. Never throws: failures are logged. */
  stop(): Promise<void> {
    this.#stopping ??= this.#drainMillis > 0 ? sleep(this.#drainMillis).then(() => this.#stopAll()) : this.#stopAll()
    return this.#stopping
  }

  async #stopAll(): Promise<void> {
    for (const { what, stop } of this.#held.splice(0).reverse()) {
      try {
        await withinMillis(this.stopMillisMax, stop)
      } catch (error) {
        this.log.error({ err: error, what }, 'did not stop cleanly')
      }
    }
  }

  /** Resolves with the reason when the process is asked to end: a signal, or the end of the process that started it. */
  untilAsked(): Promise<string> {
    return new Promise((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal))
      if (process.connected) process.once('disconnect', () => resolve('parent ended'))
      // It had a parent once, which was gone before anybody asked.
      else if (process.send) resolve('parent ended')
    })
  }
}

async function withinMillis(millis: number, work: () => Promise<unknown> | unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still running after ${millis} ms`)), millis)
  })
  try {
    await Promise.race([work(), late])
  } finally {
    clearTimeout(timer)
  }
}
