/**
 * The data folder belongs to one `npm start` at a time. Its lock names the owner and what the owner runs; a lock whose owner
 * is dead is taken over, and what the dead one left running is ended first.
 */
import { link, mkdir, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { explainFolderProblem } from './folder-problems.ts'
import { endProcess, identityOf, type Signals } from './processes.ts'
import { writeDraft, writeWhole } from './whole-file.ts'

const RunningProcess = z.object({
  name: z.string(),
  pid: z.int(),
  /** See {@link identityOf}: pids alone are used again, in containers from the first boot on. */
  identity: z.string(),
})
type RunningProcess = z.infer<typeof RunningProcess>

const LockRecord = RunningProcess.extend({ children: z.array(RunningProcess) })
type LockRecord = z.infer<typeof LockRecord>

/** Servers, Postgres among them, take SIGINT as "end now, in good order". */
const leftoverSignals: Signals = [
  ['SIGINT', 10_000],
  ['SIGKILL', 2000],
]

export class DataFolder {
  /** Names of what a killed predecessor had left running and was ended. */
  readonly ended: string[] = []
  readonly #children = new Map<string, RunningProcess>()
  #written: Promise<unknown> = Promise.resolve()
  #generation = 0

  private constructor(
    /** With no link in it. */
    readonly path: string,
    private readonly owner: RunningProcess,
  ) {}

  /** Makes the folder if it is missing and locks it. Rejects when a live process holds it, or when it can't be used. */
  static async lock(wanted: string): Promise<DataFolder> {
    try {
      return await DataFolder.#lock(wanted)
    } catch (error) {
      throw await explainFolderProblem(error, wanted)
    }
  }

  static async #lock(wanted: string): Promise<DataFolder> {
    await mkdir(wanted, { recursive: true })
    const path = await realpath(wanted)
    const owner = { name: 'start', pid: process.pid, identity: (await identityOf(process.pid)) ?? '' }
    const folder = new DataFolder(path, owner)
    for (let attempt = 0; attempt < 10; attempt++) {
      if (await folder.#claim()) return folder
      await sleep(50 * Math.random())
    }
    throw new Error(`${path} could not be locked: several starts at once fight for it. Try again.`)
  }

  /**
   * Takes the lock that follows all there are: only one can make the file of the next number, and nobody ever removes a file
   * that meanwhile belongs to somebody else. Looking again afterwards covers an owner who came and went in between: of any
   * two, the later one to look sees both, so both may give way, but never both succeed.
   */
  async #claim(): Promise<boolean> {
    const found = await readLocks(this.path)
    for (const { record } of found) if (await isRunning(record)) throw inUse(record, this.path)
    this.#generation = Math.max(0, ...found.map((lock) => lock.generation)) + 1
    if (!(await this.#create())) return false
    const others = (await readLocks(this.path)).filter((lock) => lock.generation !== this.#generation)
    for (const { record } of others) {
      if (!(await isRunning(record))) continue
      await rm(this.#file, { force: true })
      return false
    }
    for (const { file, record } of others) {
      await this.#endChildrenOf(record)
      await rm(file, { force: true })
    }
    return true
  }

  get #file(): string {
    return join(this.path, `lock-${this.#generation}.json`)
  }

  /**
   * Remembers a process, so that the next start can end it if this one is killed. Replaces one of the same name. Rejects when
   * it can't be written, as on a full disk; the next call writes all of them.
   */
  async record(name: string, pid: number): Promise<void> {
    const identity = await identityOf(pid)
    if (identity === undefined) return
    this.#children.set(name, { name, pid, identity })
    this.#written = this.#written.catch(() => {}).then(() => this.#replace())
    await this.#written
  }

  /** Gives the folder back. */
  async release(): Promise<void> {
    await this.#written.catch(() => {})
    await rm(this.#file, { force: true })
  }

  #text(): string {
    const record: LockRecord = { ...this.owner, children: [...this.#children.values()] }
    return `${JSON.stringify(record, null, 2)}\n`
  }

  async #replace(): Promise<void> {
    await writeWhole(this.#file, this.#text())
  }

  /** Linking fails where a file stands already, and never shows half a file. */
  async #create(): Promise<boolean> {
    const half = await writeDraft(this.#file, this.#text())
    try {
      await link(half, this.#file)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    } finally {
      await rm(half, { force: true })
    }
  }

  /** The last started ends first. */
  async #endChildrenOf(dead: LockRecord): Promise<void> {
    for (const child of dead.children.toReversed()) {
      if (await endProcess(child.pid, () => isRunning(child), leftoverSignals)) this.ended.push(child.name)
    }
  }
}

const isRunning = async ({ pid, identity }: RunningProcess): Promise<boolean> => (await identityOf(pid)) === identity

const inUse = ({ pid }: RunningProcess, path: string) =>
  new Error(
    `Another start (process ${pid}) is running on ${path}. ` +
      'Stop it first, or set SVC_DATA_DIR to another folder to run a second copy.',
  )

interface Lock {
  file: string
  generation: number
  record: LockRecord
}

/** All locks of a folder; more than one only while somebody takes over from a dead owner. */
async function readLocks(path: string): Promise<Lock[]> {
  const locks = (await readdir(path)).map(async (name): Promise<Lock | undefined> => {
    const generation = /^lock-(\d+)\.json$/.exec(name)?.[1]
    if (generation === undefined) return undefined
    const record = await readLock(join(path, name))
    return record && { file: join(path, name), generation: Number(generation), record }
  })
  return (await Promise.all(locks)).filter((lock) => lock !== undefined)
}

/** Nothing when there is none; a record of no process when it can't be understood, as after a full disk. */
async function readLock(file: string): Promise<LockRecord | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  try {
    return LockRecord.parse(JSON.parse(text))
  } catch {
    return { name: 'unknown', pid: 0, identity: 'unknown', children: [] }
  }
}
