/** The process table of this machine, and ending processes in it. */
import { execFile } from 'node:child_process'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface ProcessId {
  readonly pid: number
  /**
   * Boot and start time. Differs from those of every other process that had or will have the same pid. Compare for
   * equality only.
   */
  readonly identity: string
}

export interface RunningProcess extends ProcessId {
  /** The arguments, separated by spaces. */
  readonly command: string
  /** Accurate to a second. */
  readonly startedAt: Date
}

/** How processes are read: from `/proc` on Linux, from `ps` elsewhere. */
interface ProcessTable {
  /** The pid and the command line of each process. */
  list(): Promise<{ pid: number; command: string }[]>
  /** Nothing for a process that has ended, also if its parent has not reaped it yet. */
  find(pid: number): Promise<RunningProcess | undefined>
}

/** The running processes whose command line matches. Rejects when the process table cannot be read. */
export async function listProcesses(
  matches: (command: string) => boolean,
  table = processTable,
): Promise<RunningProcess[]> {
  const pids = (await table.list()).filter(({ command }) => matches(command)).map(({ pid }) => pid)
  const found = await Promise.all(pids.map((pid) => table.find(pid)))
  return found.filter((program) => program !== undefined && matches(program.command)) as RunningProcess[]
}

export const findProcess = (pid: number): Promise<RunningProcess | undefined> => processTable.find(pid)

/** Whether that very process runs, not a later one with the same pid. */
export const isRunning = async ({ pid, identity }: ProcessId): Promise<boolean> =>
  (await findProcess(pid))?.identity === identity

/** The working directory of a process; nothing where the system does not reveal it. */
export const workingFolderOf = (pid: number): Promise<string | undefined> =>
  readlink(`/proc/${pid}/cwd`).catch(() => undefined)

/** A signal, and how many milliseconds the process has to end before the next signal. */
export type Signals = readonly (readonly [signal: NodeJS.Signals, waitMillis: number])[]

/**
 * Ends a process. Sends one signal after the other until it has ended.
 * @returns whether it was running. Rejects when it survives the last signal.
 */
export async function endProcess(process: ProcessId, signals: Signals): Promise<boolean> {
  if (!(await isRunning(process))) return false
  for (const [signal, waitMillis] of signals) {
    sendSignal(process.pid, signal)
    for (const deadline = Date.now() + waitMillis; Date.now() < deadline; await sleep(20))
      if (!(await isRunning(process))) return true
  }
  throw new Error(`Process ${process.pid} does not end: end it by hand`)
}

/** Sends a signal. A process that has ended is no error. @param pid negative for a process group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Linux reports times in this unit whatever the kernel's own clock rate is (USER_HZ). */
const ticksPerSecond = 100

const procTable: ProcessTable = {
  async list() {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
    const found: { pid: number; command: string }[] = []
    // In batches, since thousands of processes would need as many file handles.
    for (let from = 0; from < pids.length; from += 64) {
      const batch = pids.slice(from, from + 64)
      found.push(...(await Promise.all(batch.map(async (pid) => ({ pid, command: await readCommand(pid) })))))
    }
    return found
  },
  async find(pid) {
    const stat = await readProc(pid, 'stat')
    // The second field is the name of the program in parentheses, and may contain spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, startTicks] = [fields[0], fields[19]]
    if (!state || !startTicks || state === 'Z' || state === 'X') return undefined
    const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
    const startedAt = new Date(Date.now() - uptime() * 1000 + (Number(startTicks) / ticksPerSecond) * 1000)
    return { pid, identity: `${boot}/${startTicks}`, command: await readCommand(pid), startedAt }
  },
}

const readCommand = async (pid: number): Promise<string> =>
  (await readProc(pid, 'cmdline')).replaceAll('\0', ' ').trim()

/** Empty for a process that has ended meanwhile, or that belongs to another user and is hidden. */
async function readProc(pid: number, file: 'cmdline' | 'stat'): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return ''
    throw error
  }
}

/** Exported for its test, which compares it with `/proc`. */
export const psTable: ProcessTable = {
  async list() {
    const lines = (await ps('-axww', '-o', 'pid=,command=')).split('\n')
    return lines.flatMap((line) => {
      const [, pid, command] = /^\s*(\d+)\s+(.+?)\s*$/.exec(line) ?? []
      return pid && command ? [{ pid: Number(pid), command }] : []
    })
  },
  async find(pid) {
    const line = await ps('-ww', '-o', 'state=,lstart=,command=', '-p', String(pid)).catch(
      (error: { code?: unknown }) => {
        if (error.code === 1) return '' // no such process
        throw error
      },
    )
    // `lstart` is five words in the C locale: Sat Nov 21 10:00:00 2026.
    const [, state, started, command] = /^\s*(\S+) +(\S+ +\S+ +\S+ +\S+ +\S+) +(.+?)\s*$/.exec(line) ?? []
    if (!state || state.startsWith('Z') || !started || !command) return undefined
    return { pid, identity: started, command, startedAt: new Date(started) }
  },
}

const ps = async (...args: string[]): Promise<string> =>
  (await run('/bin/ps', args, { env: { LC_ALL: 'C' }, maxBuffer: 64 * 1024 * 1024, encoding: 'utf8' })).stdout

const processTable = process.platform === 'linux' ? procTable : psTable
