/**
 * The data folder of `npm start`. One start at a time may use it. It records the processes that a start runs, so that
 * the next start can end them when this one is killed.
 */
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeFileAtomically } from '../atomic-file.ts'
import { type FileLock, lockFile } from '../file-lock.ts'
import { endProcess, findProcess, type Signals } from '../processes.ts'
import { explainFolderError } from './data-folder-errors.ts'

const ProcessRecord = z.object({ name: z.string(), pid: z.int(), identity: z.string() })
type ProcessRecord = z.infer<typeof ProcessRecord>

/** Servers, Postgres among them, take SIGINT as a request to shut down gracefully. */
const leftoverSignals: Signals = [
  ['SIGINT', 10_000],
  ['SIGKILL', 2000],
]

export class DataFolder {
  /** Names of the processes that a killed start had left running, and that were ended. */
  readonly endedLeftovers: string[] = []
  readonly #processes = new Map<string, ProcessRecord>()
  #written: Promise<unknown> = Promise.resolve()

  private constructor(
    /** Without symbolic links. */
    readonly path: string,
    private readonly lock: FileLock,
  ) {}

  /**
   * Creates the folder if it is missing, locks it, and ends what a killed start left running.
   * Rejects when another start uses it, or when it is not usable, with the way out.
   */
  static async open(folder: string): Promise<DataFolder> {
    try {
      await mkdir(folder, { recursive: true })
      const path = await realpath(folder)
      const lock = await lockFile(join(path, 'start'))
      if ('heldBy' in lock) throw inUse(lock.heldBy.pid, path)
      const opened = new DataFolder(path, lock)
      await opened.#endLeftovers()
      return opened
    } catch (error) {
      throw await explainFolderError(error, folder)
    }
  }

  get #processesFile(): string {
    return join(this.path, 'processes.json')
  }

  /**
   * Records a running process, in place of one with the same name. Rejects when the file cannot be written, as on a
   * full disk; the next call writes all of them.
   */
  async recordProcess(name: string, pid: number): Promise<void> {
    const found = await findProcess(pid)
    if (found === undefined) return
    this.#processes.set(name, { name, pid, identity: found.identity })
    const text = `${JSON.stringify([...this.#processes.values()], null, 2)}\n`
    this.#written = this.#written.catch(() => {}).then(() => writeFileAtomically(this.#processesFile, text))
    await this.#written
  }

  /** Lets another start use the folder. */
  async close(): Promise<void> {
    await this.#written.catch(() => {})
    this.lock.release()
  }

  /** The process that was started last ends first. */
  async #endLeftovers(): Promise<void> {
    for (const leftover of (await readProcesses(this.#processesFile)).toReversed())
      if (await endProcess(leftover, leftoverSignals)) this.endedLeftovers.push(leftover.name)
  }
}

const inUse = (pid: number, path: string) =>
  new Error(
    `${path} is in use by another npm start (process ${pid}). ` +
      'Stop it first, or set SVC_DATA_DIR to another folder to run a second copy.',
  )

/** Empty when there is no such file, or it cannot be parsed. */
async function readProcesses(file: string): Promise<ProcessRecord[]> {
  try {
    return z.array(ProcessRecord).parse(JSON.parse(await readFile(file, 'utf8')))
  } catch {
    return []
  }
}
