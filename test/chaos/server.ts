/** A process under test that can be killed, paused, cut off, and started again at the same port. */
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../platform/processes.ts'
import type { CutMode, Link } from './link.ts'
import type { Target } from './plan.ts'

interface Running {
  readonly pid: number
  readonly exited: Promise<string>
  stop(): Promise<void>
}

export interface ServerOptions {
  readonly name: Target
  /** Resolves when the process exists; it may not be ready yet. */
  readonly launch: () => Promise<Running>
  /** Resolves when the process serves. Rejects, or never resolves, when it does not. */
  readonly untilReady: () => Promise<void>
  /** The connections that end when it is cut off. */
  readonly links: readonly Link[]
  /** Called when it ended by itself. It is then started again. */
  readonly onCrash: (text: string) => void
}

/** How long a process that ended by itself stays away, as under a supervisor. */
const restartMillis = 500

export class Server {
  readonly name: Target
  #running: Running | undefined
  #isStopping = false

  constructor(private readonly options: ServerOptions) {
    this.name = options.name
  }

  /** Resolves when it is ready. */
  async start(): Promise<void> {
    await this.#launch()
    await this.options.untilReady()
  }

  async #launch(): Promise<void> {
    const running = await this.options.launch()
    this.#running = running
    void running.exited.then((how) => this.#onExit(running, how))
  }

  async #onExit(running: Running, how: string): Promise<void> {
    // A process that was ended on purpose is no longer the running one.
    if (this.#running !== running || this.#isStopping) return
    this.options.onCrash(`${this.name} ${how}`)
    await sleep(restartMillis)
    if (this.#running !== running || this.#isStopping) return
    await this.#launch().catch((error: Error) => this.options.onCrash(`${this.name}: ${error.message}`))
  }

  /** Sends SIGKILL to the process and its children, which a machine that fails would end together. */
  async kill(): Promise<void> {
    const running = this.#running
    if (!running) return
    this.#running = undefined
    for (const pid of [running.pid, ...(await childrenOf(running.pid))]) sendSignal(pid, 'SIGKILL')
    await running.exited
  }

  async pause(): Promise<void> {
    await this.#signal('SIGSTOP')
  }

  async resume(): Promise<void> {
    await this.#signal('SIGCONT')
  }

  /** The main process first, so that it cannot start a process that is missed. */
  async #signal(signal: NodeJS.Signals): Promise<void> {
    const pid = this.#running?.pid
    if (pid === undefined) return
    sendSignal(pid, signal)
    for (const child of await childrenOf(pid)) sendSignal(child, signal)
  }

  cut(mode: CutMode): void {
    for (const link of this.options.links) link.cut(mode)
  }

  restore(): void {
    for (const link of this.options.links) link.restore()
  }

  untilReady(): Promise<void> {
    return this.options.untilReady()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    this.restore()
    await this.resume()
    await this.#running?.stop()
  }
}

/**
 * Relays that a worker has started are its children, and machines of their own: they are in a group of their own and
 * stay.
 */
async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const isChild = async (pid: number) => {
    const [stat, command] = await Promise.all(
      ['stat', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    )
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
    return Number(fields[1]) === parent && !command?.includes('relay-node/')
  }
  const found = await Promise.all(pids.map(async (pid) => ((await isChild(pid)) ? [pid] : [])))
  return found.flat()
}

/** Polls a condition, whose failures count as not met. Rejects after `secondsMax`. */
export async function waitFor(
  what: string,
  isMet: () => Promise<boolean> | boolean,
  secondsMax: number,
): Promise<void> {
  const deadline = Date.now() + secondsMax * 1000
  while (!(await Promise.resolve(isMet()).catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`not met after ${secondsMax} s: ${what}`)
    await sleep(100)
  }
}
