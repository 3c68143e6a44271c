/**
 * The data folder belongs to one `npm start` at a time. Its lock names the owner and what the owner runs; a lock whose owner
 * is dead is taken over, and what the dead one left running is ended first.
 */
import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { endProcess, identityOf, type Signals } from './processes.ts'

interface RunningProcess {
  name: string
  pid: number
  /** See {@link identityOf}: pids alone are used again, in containers from the first boot on. */
  identity: string
}

interface LockRecord extends RunningProcess {
  children: RunningProcess[]
}

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

  private constructor(
    /** With no link in it. */
    readonly path: string,
    private readonly owner: RunningProcess,
  ) {}

  /** Makes the folder if it is missing and locks it. Rejects when a live process holds it. */
  static async lock(wanted: string): Promise<DataFolder> {
    await mkdir(wanted, { recursive: true })
    const path = await realpath(wanted)
    const owner = { name: 'start', pid: process.pid, identity: (await identityOf(process.pid)) ?? '' }
    const folder = new DataFolder(path, owner)
    for (let attempt = 0; attempt < 10; attempt++) {
      if (await folder.#create()) return folder
      await folder.#removeDeadLock()
    }
    throw new Error(`${path} could not be locked: several starts at once fight for it. Try again.`)
  }

  get #file(): string {
    return join(this.path, 'lock.json')
  }

  /** Remembers a process, so that the next start can end it if this one is killed. Replaces one of the same name. */
  async record(name: string, pid: number): Promise<void> {
    const identity = await identityOf(pid)
    if (identity === undefined) return
    this.#children.set(name, { name, pid, identity })
    this.#written = this.#written.then(() => this.#replace())
    await this.#written
  }

  /** Gives the folder back. */
  async release(): Promise<void> {
    await this.#written
    await rm(this.#file, { force: true })
  }

  #text(): string {
    const record: LockRecord = { ...this.owner, children: [...this.#children.values()] }
    return `${JSON.stringify(record, null, 2)}\n`
  }

  async #replace(): Promise<void> {
    const half = `${this.#file}.${randomUUID()}`
    await writeFile(half, this.#text())
    await rename(half, this.#file)
  }

  /** Linking fails where a file stands already, and never shows half a file. */
  async #create(): Promise<boolean> {
    const half = `${this.#file}.${randomUUID()}`
    await writeFile(half, this.#text())
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

  /** Throws when its owner lives. */
  async #removeDeadLock(): Promise<void> {
    const found = await readLock(this.#file)
    if (found === undefined) return
    if (await isRunning(found)) {
      throw new Error(
        `Another start (process ${found.pid}) is running on ${this.path}. ` +
          'Stop it first, or set SVC_DATA_DIR to another folder to run a second copy.',
      )
    }
    // Of several that see the same dead lock one alone can move it away; it may be a new owner's by now, though.
    const aside = `${this.#file}.dead-${randomUUID()}`
    const moved = await rename(this.#file, aside).then(
      () => readLock(aside),
      () => undefined,
    )
    if (moved === undefined) return
    if (await isRunning(moved)) {
      await rename(aside, this.#file)
      return
    }
    await rm(aside, { force: true })
    await this.#endChildrenOf(moved)
  }

  /** The last started ends first. */
  async #endChildrenOf(dead: LockRecord): Promise<void> {
    for (const child of dead.children.toReversed()) {
      if (await endProcess(child.pid, () => isRunning(child), leftoverSignals)) this.ended.push(child.name)
    }
  }
}

const isRunning = async ({ pid, identity }: RunningProcess): Promise<boolean> => (await identityOf(pid)) === identity

/** Nothing when there is none; a record of nobody when it can't be understood, as after a full disk. */
async function readLock(file: string): Promise<LockRecord | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  try {
    const read = JSON.parse(text) as LockRecord
    return { ...read, children: Array.isArray(read.children) ? read.children : [] }
  } catch {
    return { name: 'unknown', pid: 0, identity: 'unknown', children: [] }
  }
}
