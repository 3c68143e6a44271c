/** A program that runs as long as the stack does: restarted with growing pauses whenever it ends by itself. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../platform/processes.ts'

/** Exponential backoff from 0.5 s to 30 s. */
const pauseMillis = (failures: number): number => Math.min(30_000, 500 * 2 ** Math.min(failures, 10))

/** A program that ran for longer before it ended is not in a crash loop. */
const stableMillisMin = 60_000

export interface RunningProgram {
  pid: number
  /** Resolves with the exit code or the signal as text. */
  exited: Promise<string>
  stop(): Promise<void>
}

export interface SupervisedProgramOptions<T extends RunningProgram> {
  name: string
  start: () => Promise<T>
  /** Called with a text for the user. */
  notify: (text: string) => void
}

export class SupervisedProgram<T extends RunningProgram = RunningProgram> {
  /** How many times in a row it ended by itself soon after its start. */
  failures = 0
  /** How it ended the last time. */
  lastEnd = ''
  #current: Promise<T> | undefined
  readonly #stopping = new AbortController()

  constructor(private readonly options: SupervisedProgramOptions<T>) {}

  get name(): string {
    return this.options.name
  }

  /** Rejects when the first start fails. Later starts are repeated. */
  async start(): Promise<T> {
    this.#current = this.#launch()
    const running = await this.#current
    void this.#supervise(running)
    return running
  }

  /** Waits for a start in progress, then stops the program. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const running = await this.#current?.catch(() => undefined)
    await running?.stop()
  }

  /** Kills the program and its child processes. */
  async kill(): Promise<void> {
    this.#stopping.abort()
    const running = await this.#current?.catch(() => undefined)
    if (running) sendSignal(-running.pid, 'SIGKILL')
  }

  async #launch(): Promise<T> {
    this.#stopping.signal.throwIfAborted()
    return this.options.start()
  }

  async #supervise(first: T): Promise<void> {
    let startedAt = Date.now()
    this.lastEnd = await first.exited
    while (!this.#stopping.signal.aborted) {
      if (Date.now() - startedAt > stableMillisMin) this.failures = 0
      const pause = pauseMillis(this.failures++)
      this.options.notify(`${this.name} ${this.lastEnd}; restarting in ${pause / 1000} s`)
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
