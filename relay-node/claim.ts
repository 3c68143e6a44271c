/**
 * What makes an instance exist once, and how its provider finds its ports: a claim, and a state file, both beside each other.
 * All synchronous, so that a claim can be let go in the very last moment of a process.
 */
import { execFileSync } from 'node:child_process'
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Ports } from './listeners.ts'

/** What a running relay says of itself. Holds no secret. */
export interface StateFile extends Ports {
  readonly instanceId: string
  readonly sessionId: string
  readonly region: string
  readonly pid: number
  readonly host: string
  readonly startedAt: string
}

interface Lock {
  readonly path: string
  readonly generation: number
  readonly pid: number
}

/**
 * Claims the instance for this process: false when another living process has it. Two processes at the same moment may both
 * be refused, but never both succeed.
 *
 * A lock is a file with the holder's pid, and the lock that follows a dead holder's is a new file with the next number: so no
 * contender ever deletes a lock by a name which meanwhile belongs to somebody else. Looking once more after having locked
 * covers the rest, a holder that comes and goes while a contender hesitates: of any two, the later one to look sees both.
 */
export function claim(stateFile: string): boolean {
  const draft = `${stateFile}.${process.pid}.tmp`
  writeFileSync(draft, String(process.pid), { mode: 0o600 })
  try {
    for (;;) {
      const present = locks(stateFile)
      if (present.some((lock) => isHeld(lock, stateFile))) return false
      const mine = lockPath(stateFile, Math.max(0, ...present.map((lock) => lock.generation)) + 1)
      if (!linked(draft, mine)) continue
      const others = locks(stateFile).filter((lock) => lock.path !== mine)
      if (others.some((lock) => isHeld(lock, stateFile))) {
        rmSync(mine, { force: true })
        return false
      }
      for (const lock of others) rmSync(lock.path, { force: true })
      rmSync(stateFile, { force: true })
      return true
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Lets go of what {@link claim} took, and of the state file. */
export function release(stateFile: string): void {
  rmSync(stateFile, { force: true })
  for (const lock of locks(stateFile)) if (lock.pid === process.pid) rmSync(lock.path, { force: true })
}

/** Appears whole or not at all. */
export function writeState(stateFile: string, state: StateFile): void {
  const draft = `${stateFile}.${process.pid}.tmp`
  writeFileSync(draft, JSON.stringify(state), { mode: 0o600 })
  renameSync(draft, stateFile)
}

const lockPath = (stateFile: string, generation: number) => `${stateFile}.lock.${generation}`

function locks(stateFile: string): Lock[] {
  const prefix = `${basename(stateFile)}.lock.`
  const isLock = (name: string) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length))
  const names = readdirSync(dirname(stateFile)).filter(isLock)
  return names.flatMap((name) => {
    const path = join(dirname(stateFile), name)
    const text = unlessGone(() => readFileSync(path, 'utf8'))
    return text === undefined ? [] : [{ path, generation: Number(name.slice(prefix.length)), pid: Number(text) }]
  })
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** A pid alone proves nothing, as they are given out anew: its command line must be that of this instance. */
function isHeld({ pid }: Lock, stateFile: string): boolean {
  if (pid === process.pid) return false
  return commandOf(pid).includes(stateFile)
}

function commandOf(pid: number): string {
  if (process.platform === 'linux') return unlessGone(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? ''
  try {
    return execFileSync('/bin/ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
  } catch {
    return '' // ps ends with 1 when there is no such process
  }
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
