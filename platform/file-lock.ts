/**
 * A lock that one process holds at a time. It ends with its holder, also by `kill -9`, and is never taken from a
 * running process, however long that is suspended.
 *
 * A lock is a symbolic link `<file>.lock.<number>` whose target names the holder, since creating a link is atomic and
 * fails where one exists. The successor of a holder that has ended creates the link of the next number, so that no
 * process ever removes a link that another one has created meanwhile. A second look after that covers a holder that
 * came and went between the first look and the link: of two processes that compete, the later one to look sees both
 * links and gives way.
 */
import { rmSync } from 'node:fs'
import { readdir, readlink, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProcess, isRunning, type ProcessId } from './processes.ts'

const attemptsMax = 10

export interface FileLock {
  /** Synchronous, so that it can run in the `exit` event of a process. */
  release(): void
}

/**
 * Takes the lock for this process. The folder of the file must exist; the file itself need not.
 * @returns the lock, or the process that holds it.
 */
export async function lockFile(file: string): Promise<FileLock | { heldBy: ProcessId }> {
  const self = await findProcess(process.pid)
  if (!self) throw new Error('this process is missing from the process table')
  let holder: ProcessId = self
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const present = await readLocks(file)
    const running = await findHolder(present)
    if (running) return { heldBy: running }
    const number = Math.max(0, ...present.map((lock) => lock.number)) + 1
    const path = `${file}.lock.${number}`
    if (!(await createLink(`${self.pid} ${self.identity}`, path))) continue
    const others = (await readLocks(file)).filter((lock) => lock.number !== number)
    const competitor = await findHolder(others)
    if (!competitor) {
      for (const other of others) await rm(other.path, { force: true })
      return { release: () => rmSync(path, { force: true }) }
    }
    holder = competitor
    await rm(path, { force: true })
    await sleep(50 * Math.random())
  }
  return { heldBy: holder }
}

interface Lock {
  readonly path: string
  readonly number: number
  /** Nothing when the link cannot be read as a lock. */
  readonly holder: ProcessId | undefined
}

async function readLocks(file: string): Promise<Lock[]> {
  const prefix = `${basename(file)}.lock.`
  const names = (await readdir(dirname(file))).filter((name) => name.startsWith(prefix))
  const locks = names.map(async (name): Promise<Lock[]> => {
    const [path, number] = [join(dirname(file), name), Number(name.slice(prefix.length))]
    if (!Number.isSafeInteger(number)) return []
    const target = await readlink(path).catch((error: NodeJS.ErrnoException) => error.code)
    if (target === 'ENOENT') return []
    const [, pid, identity] = /^(\d+) (.+)$/.exec(target ?? '') ?? []
    return [{ path, number, holder: pid && identity ? { pid: Number(pid), identity } : undefined }]
  })
  return (await Promise.all(locks)).flat()
}

async function findHolder(locks: readonly Lock[]): Promise<ProcessId | undefined> {
  for (const { holder } of locks) if (holder && (await isRunning(holder))) return holder
  return undefined
}

async function createLink(target: string, path: string): Promise<boolean> {
  try {
    await symlink(target, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    // Node reports the target of the link as the path.
    throw Object.assign(error as Error, { path })
  }
}
