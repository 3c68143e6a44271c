/** Work at fixed intervals until the run ends. Times are those of `performance.now()`. */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

export class Schedule {
  readonly #ended = new AbortController()

  constructor() {
    // Every plugin and every relay waits.
    setMaxListeners(0, this.#ended.signal)
  }

  get isOver(): boolean {
    return this.#ended.signal.aborted
  }

  /** Ends all waiting. */
  end(): void {
    this.#ended.abort()
  }

  /** Resolves at that time, or at the end of the run. */
  async sleepUntil(at: number): Promise<void> {
    const millis = Math.max(at - performance.now(), 0)
    await sleep(millis, undefined, { signal: this.#ended.signal }).catch((error: Error) => {
      if (error.name !== 'AbortError') throw error
    })
  }

  /**
   * Works from a random phase on. Intervals that a late call missed are skipped, so that delays do not become bursts.
   */
  async repeatEvery(millis: number, work: () => Promise<unknown>): Promise<void> {
    let dueAt = performance.now() + Math.random() * millis
    for (;;) {
      await this.sleepUntil(dueAt)
      if (this.isOver) return
      await work()
      dueAt = Math.max(dueAt + millis, performance.now())
    }
  }
}

/** From the mean, half of it up to one and a half. */
export const spread = (mean: number): number => mean * (0.5 + Math.random())
