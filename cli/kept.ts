/** A program that shall run as long as the stack does: started again, ever more slowly, whenever it ends by itself. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../platform/embedded/processes.ts'

/** Ten doublings are beyond the longest pause. */
const pauseMillis = (failures: number): number => Math.min(30_000, 500 * 2 ** Math.min(failures, 10))

/** Whoever ran that long before it ended is not in a crash loop. */
const steadyMillis = 60_000

export interface Running {
  pid: number
  /** Resolves with what is known about the end. */
  exited: Promise<string>
  stop(): Promise<void>
}

export interface KeptProgram<T extends Running> {
  name: string
  start: () => Promise<T>
  notice: (text: string) => void
}

export class Kept<T extends Running = Running> {
  /** How often in a row it ended by itself soon after its start. */
  failures = 0
  /** How it ended last. */
  lastEnd = ''
  #current: Promise<T> | undefined
  readonly #stopping = new AbortController()

  constructor(private readonly program: KeptProgram<T>) {}

  get name(): string {
    return this.program.name
  }

  /** Rejects when the first start fails; later ones are tried again and again. */
  async start(): Promise<T> {
    this.#current = this.#launch()
    const running = await this.#current
    void this.#watch(running)
    return running
  }

  /** Also ends what is only just being started. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const running = await this.#current?.catch(() => undefined)
    await running?.stop()
  }

  /** At once, with everything it started. */
  async kill(): Promise<void> {
    this.#stopping.abort()
    const running = await this.#current?.catch(() => undefined)
    if (running) sendSignal(-running.pid, 'SIGKILL')
  }

  async #launch(): Promise<T> {
    this.#stopping.signal.throwIfAborted()
    return this.program.start()
  }

  async #watch(first: T): Promise<void> {
    let startedAt = Date.now()
    this.lastEnd = await first.exited
    while (!this.#stopping.signal.aborted) {
      if (Date.now() - startedAt > steadyMillis) this.failures = 0
      const pause = pauseMillis(this.failures++)
      this.program.notice(`${this.program.name} ${this.lastEnd}; it is started again in ${pause / 1000} s`)
      await sleep(pause, undefined, { signal: this.#stopping.signal }).catch(() => {})
      if (this.#stopping.signal.aborted) return
      startedAt = Date.now()
      try {
        this.#current = this.#launch()
        this.lastEnd = await (await this.#current).exited
      } catch (error) {
        this.lastEnd = `did not start: ${(error as Error).message}`
      }
    }
  }
}
