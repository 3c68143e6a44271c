/**
 * A server program run as a child: in a session of its own, so that the terminal's Ctrl-C reaches only the supervisor, and
 * with its output in a file, so that it can outlive a killed supervisor without writing into a broken pipe.
 */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { copyFile, rm, stat, truncate } from 'node:fs/promises'
import type { Signals } from './processes.ts'

const logBytesMax = 10 * 1024 * 1024
const logCheckMillis = 5000

/** The file descriptor of a log file to append to. One that has grown past 10 MiB is put aside as `<file>.1`. */
export function openLogFile(file: string): number {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > logBytesMax) renameSync(file, `${file}.1`)
  return openSync(file, 'a', 0o600)
}

/**
 * Empties a log file that has grown past 10 MiB, with a copy in `<file>.1` where there is room for one: the program holds
 * the file open and would go on in a renamed one. @returns whether it did. What is written during the copy may be lost.
 */
async function shortenLogFile(file: string): Promise<boolean> {
  const { size } = await stat(file)
  if (size <= logBytesMax) return false
  await copyFile(file, `${file}.1`).catch(() => rm(`${file}.1`, { force: true }))
  await truncate(file)
  return true
}

export interface ServerProgram {
  executable: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  /** Where its output goes; null throws it away. */
  logFile: string | null
  /** Whom it runs as, when not as the caller. */
  runAs?: { uid: number; gid: number } | undefined
  /** A channel to it, by whose end it learns that its supervisor is gone. Node programs only. */
  ipc?: boolean
  spawned?: Spawned | undefined
}

/** Called with the pid as soon as there is a process, long before it is ready, so that a killed supervisor leaves a record. */
export type Spawned = (pid: number) => Promise<void>

export class ServerProcess {
  readonly pid: number
  /** Resolves with what is known about the end, asked for or not. */
  readonly exited: Promise<string>
  #running = true

  private constructor(
    private readonly child: ReturnType<typeof spawn>,
    private readonly logFile: string | null,
    private logBytesBefore: number,
  ) {
    this.pid = child.pid ?? 0
    const shortening = setInterval(() => void this.#shortenLog(), logCheckMillis).unref()
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#running = false
        clearInterval(shortening)
        resolve(signal ? `ended by ${signal}` : `ended with code ${code}`)
      })
    })
  }

  /** Rejects when the program can't be run at all. */
  static async start({ executable, args, env, logFile, runAs, ipc, spawned }: ServerProgram): Promise<ServerProcess> {
    const output = logFile === null ? 'ignore' : openLogFile(logFile)
    const bytesBefore = logFile === null ? 0 : statSync(logFile).size
    try {
      const child = spawn(executable, [...args], {
        detached: true,
        stdio: ipc ? ['ignore', output, output, 'ipc'] : ['ignore', output, output],
        env: { ...env },
        ...runAs,
      })
      const server = new ServerProcess(child, logFile, bytesBefore)
      await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
      await spawned?.(server.pid)
      return server
    } finally {
      if (typeof output === 'number') closeSync(output)
    }
  }

  async #shortenLog(): Promise<void> {
    const isShort = this.logFile !== null && (await shortenLogFile(this.logFile).catch(() => false))
    if (isShort) this.logBytesBefore = 0
  }

  get running(): boolean {
    return this.#running
  }

  /** The last lines it wrote since it was started, for an error message. */
  lastWords(lines = 8): string {
    if (this.logFile === null) return ''
    return readFileSync(this.logFile)
      .subarray(this.logBytesBefore)
      .toString('utf8')
      .trim()
      .split('\n')
      .slice(-lines)
      .join('\n')
  }

  /** Sends one signal after the other, each with its time, until it has ended. */
  async end(signals: Signals): Promise<void> {
    for (const [signal, waitMillis] of signals) {
      if (!this.#running) return
      this.child.kill(signal)
      let timer: NodeJS.Timeout | undefined
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, waitMillis)
      })
      await Promise.race([this.exited, late])
      clearTimeout(timer)
    }
    if (this.#running) throw new Error(`process ${this.pid} does not end`)
  }
}
