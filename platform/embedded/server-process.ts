/**
 * Runs a server as a child process: in its own session, so that Ctrl-C in the terminal reaches only the supervisor, and
 * with its output in a file, so that it survives a killed supervisor without a broken pipe.
 */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { copyFile, rm, stat, truncate } from 'node:fs/promises'
import type { Signals } from '../processes.ts'

const logBytesMax = 10 * 1024 * 1024
const defaultLogCheckMillis = 5000

/**
 * Opens a log file for appending. Renames a file of more than 10 MiB to `<file>.1` before.
 * @returns a file descriptor.
 */
export function openLogFile(file: string): number {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > logBytesMax) renameSync(file, `${file}.1`)
  return openSync(file, 'a', 0o600)
}

/**
 * Truncates a log file of more than 10 MiB, and keeps a copy in `<file>.1` when there is space for one. Renaming would
 * have no effect, since the program has the file open. Lines that are written during the copy may be lost. @returns
 * whether it did.
 */
async function truncateLogFile(file: string): Promise<boolean> {
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
  /** The file of its output; null discards it. */
  logFile: string | null
  /** The time between two looks at the size of that file. 5 s by default. */
  logCheckMillis?: number
  /** The user that it runs as; the caller by default. */
  runAs?: { uid: number; gid: number } | undefined
  /** Opens an IPC channel, whose end notifies the program that its supervisor has ended. Node programs only. */
  ipc?: boolean
  onSpawn?: OnSpawn | undefined
}

/**
 * Called with the pid as soon as the process exists, long before it is ready, to record it in case the supervisor is
 * killed.
 */
export type OnSpawn = (pid: number) => Promise<void>

export class ServerProcess {
  readonly pid: number
  /** Resolves when the process has ended for any reason, with `ended with code 0` or `ended by SIGKILL`. */
  readonly exited: Promise<string>
  #running = true

  private constructor(
    private readonly child: ReturnType<typeof spawn>,
    private readonly logFile: string | null,
    private logOffset: number,
    logCheckMillis: number,
  ) {
    this.pid = child.pid ?? 0
    const truncation = setInterval(() => void this.#truncateLog(), logCheckMillis).unref()
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#running = false
        clearInterval(truncation)
        resolve(signal ? `ended by ${signal}` : `ended with code ${code}`)
      })
    })
  }

  /** Rejects when the program cannot be executed. */
  static async start({
    executable,
    args,
    env,
    logFile,
    logCheckMillis = defaultLogCheckMillis,
    runAs,
    ipc,
    onSpawn,
  }: ServerProgram): Promise<ServerProcess> {
    const output = logFile === null ? 'ignore' : openLogFile(logFile)
    const logOffset = logFile === null ? 0 : statSync(logFile).size
    try {
      const child = spawn(executable, [...args], {
        detached: true,
        stdio: ipc ? ['ignore', output, output, 'ipc'] : ['ignore', output, output],
        env: { ...env },
        ...runAs,
      })
      const server = new ServerProcess(child, logFile, logOffset, logCheckMillis)
      await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
      await onSpawn?.(server.pid)
      return server
    } finally {
      if (typeof output === 'number') closeSync(output)
    }
  }

  async #truncateLog(): Promise<void> {
    const isTruncated = this.logFile !== null && (await truncateLogFile(this.logFile).catch(() => false))
    if (isTruncated) this.logOffset = 0
  }

  get isRunning(): boolean {
    return this.#running
  }

  /** The last lines that it has written to its log, for an error message. */
  readLastLines(lines = 8): string {
    if (this.logFile === null) return ''
    return readFileSync(this.logFile)
      .subarray(this.logOffset)
      .toString('utf8')
      .trim()
      .split('\n')
      .slice(-lines)
      .join('\n')
  }

  /** Sends one signal after the other until the process has ended. Rejects when it survives the last one. */
  async end(signals: Signals): Promise<void> {
    for (const [signal, waitMillis] of signals) {
      if (!this.#running) return
      this.child.kill(signal)
      let timer: NodeJS.Timeout | undefined
      const timeout = new Promise((resolve) => {
        timer = setTimeout(resolve, waitMillis)
      })
      await Promise.race([this.exited, timeout])
      clearTimeout(timer)
    }
    if (this.#running) throw new Error(`Process ${this.pid} does not end: end it by hand`)
  }
}
