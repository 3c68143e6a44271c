/** Looking at and ending processes of this machine, always after a look at their command line: pids are used again. */
import { execFile } from 'node:child_process'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const hasProc = process.platform === 'linux'

export interface ProcessEntry {
  pid: number
  /** The whole command line, arguments separated by one space. */
  command: string
}

/** The processes of this machine that are running; those that ended and only wait for their parent are left out. */
export async function listProcesses(): Promise<ProcessEntry[]> {
  if (!hasProc) {
    const { stdout } = await run('ps', ['-axww', '-o', 'pid=,command='], { maxBuffer: 16 * 1024 * 1024 })
    return stdout.split('\n').flatMap((line) => {
      const found = /^\s*(\d+)\s+(.+)$/.exec(line)
      return found?.[1] && found[2] && !found[2].endsWith('<defunct>')
        ? [{ pid: Number(found[1]), command: found[2] }]
        : []
    })
  }
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const entries = await Promise.all(pids.map(async (pid) => ({ pid, command: await commandOf(pid) })))
  return entries.filter((entry): entry is ProcessEntry => entry.command !== undefined)
}

/** The command line of a running process, or nothing. */
export async function commandOf(pid: number): Promise<string | undefined> {
  try {
    if (hasProc) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8')
      return line.replaceAll('\0', ' ').trim() || undefined
    }
    const { stdout } = await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)])
    const line = stdout.trim()
    return line === '' || line.endsWith('<defunct>') ? undefined : line
  } catch {
    return undefined
  }
}

/**
 * Tells this process from any other that has or will ever have its pid, also after a reboot. Nothing when it doesn't run.
 * Compare for equality only.
 */
export async function identityOf(pid: number): Promise<string | undefined> {
  if ((await commandOf(pid)) === undefined) return undefined
  try {
    if (!hasProc) return (await run('ps', ['-o', 'lstart=', '-p', String(pid)])).stdout.trim() || undefined
    const [boot, stat] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
    ])
    // The 22nd field is the start time; the second, the program's name, may hold blanks and brackets.
    return `${boot.trim()}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    return undefined
  }
}

/** The folder a process works in, or nothing where the system doesn't tell. */
export const folderOf = (pid: number): Promise<string | undefined> =>
  hasProc ? readlink(`/proc/${pid}/cwd`).catch(() => undefined) : Promise.resolve(undefined)

/** A signal and how many milliseconds the process then has before the next one. */
export type Signals = readonly (readonly [signal: NodeJS.Signals, waitMillis: number])[]

export const politely: Signals = [
  ['SIGTERM', 8000],
  ['SIGKILL', 2000],
]

/**
 * Ends the process with that pid if `isOurs` still says so of it; looks again before every signal.
 * @returns whether it had to be ended. Throws when it outlives the last signal.
 */
export async function endProcess(
  pid: number,
  isOurs: (entry: ProcessEntry) => boolean | Promise<boolean>,
  signals: Signals = politely,
): Promise<boolean> {
  const stillOurs = async () => {
    const command = await commandOf(pid)
    return command !== undefined && (await isOurs({ pid, command }))
  }
  if (!(await stillOurs())) return false
  for (const [signal, waitMillis] of signals) {
    sendSignal(pid, signal)
    const deadline = Date.now() + waitMillis
    while (Date.now() < deadline) {
      await sleep(20)
      if (!(await stillOurs())) return true
    }
  }
  throw new Error(`process ${pid} does not end: end it by hand`)
}

/** Sends it; that the process is gone already is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

const isRelayOf =
  (dataDir: string) =>
  ({ command }: ProcessEntry): boolean =>
    command.includes('relay-node/main.ts') && command.includes(`${dataDir}/relay-nodes/`)

/** Whether no local relay of this data folder runs. */
export const localRelaysAreGone = async (dataDir: string): Promise<boolean> =>
  !(await listProcesses()).some(isRelayOf(dataDir))

const relayStop: Signals = [
  ['SIGTERM', 3000],
  ['SIGKILL', 2000],
]

/** Ends the local relays of this data folder, which outlive the worker on purpose. @returns how many there were. */
export async function endLocalRelays(dataDir: string, signals = relayStop): Promise<number> {
  const isRelay = isRelayOf(dataDir)
  const relays = (await listProcesses()).filter(isRelay)
  await Promise.all(relays.map(({ pid }) => endProcess(pid, isRelay, signals)))
  return relays.length
}
