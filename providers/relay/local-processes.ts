/**
 * The process table of this machine, as the place where local relays exist or don't. Nothing is remembered: a relay that was
 * killed is gone from it at once, and one whose creator died is still in it.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { uptime } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { RelayProviderError } from './provider.ts'

/** The program of a relay, as it stands in a command line. */
export const relayProgram = 'relay-node/main.ts'

export interface RelayProcess {
  readonly pid: number
  /** With the pid, names this process and no later one that was given the same pid. */
  readonly started: string
  readonly instanceId: string
  readonly sessionId: string
  readonly region: string
  readonly stateFile: string
}

/** The arguments of a relay, in the order in which {@link relayProcesses} can read them back from a line of `ps`. */
export const relayArguments = (relay: Omit<RelayProcess, 'pid' | 'started'>) => [
  ...['--instance', relay.instanceId, '--session', relay.sessionId],
  ...['--region', relay.region, '--state-file', relay.stateFile],
]

/** All relays whose state files are in this folder. Rejects when the process table can't be read. */
export async function relayProcesses(stateFolder: string, read = readTable): Promise<RelayProcess[]> {
  return (await read()).filter((relay) => dirname(relay.stateFile) === stateFolder)
}

/** The relay that has this pid, if it is one. */
export async function relayProcessAt(pid: number): Promise<RelayProcess | undefined> {
  return onLinux ? relayOfProc(pid) : (await readTableOfPs()).find((relay) => relay.pid === pid)
}

/** Whether it is still there; a zombie isn't. */
export async function isRunning({ pid, started }: Pick<RelayProcess, 'pid' | 'started'>): Promise<boolean> {
  return (await startOf(pid)) === started
}

/** When the process started, give or take a second. */
export const startedAt = ({ started }: Pick<RelayProcess, 'started'>): Date =>
  onLinux ? new Date(Date.now() - uptime() * 1000 + (Number(started) / ticksPerSecond) * 1000) : new Date(started)

const pollMillis = 25
const termMillisMax = 3_000
const killMillisMax = 5_000

/** Resolves once the process is gone: first asks it, then ends it. Rejects with {@link RelayProviderError} when it stays. */
export async function endRelay(relay: RelayProcess): Promise<void> {
  if (await signalled(relay, 'SIGTERM', termMillisMax)) return
  if (await signalled(relay, 'SIGKILL', killMillisMax)) return
  throw new RelayProviderError(`${relay.instanceId} (pid ${relay.pid}) is still there after SIGKILL`)
}

/** Whether the process is gone in time. The pid is looked at again right before the signal: it may be another's by now. */
async function signalled(relay: RelayProcess, signal: 'SIGTERM' | 'SIGKILL', millisMax: number): Promise<boolean> {
  const until = Date.now() + millisMax
  if (!(await isRunning(relay))) return true
  try {
    process.kill(relay.pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
  while (await isRunning(relay)) {
    if (Date.now() >= until) return false
    await sleep(pollMillis)
  }
  return true
}

const onLinux = process.platform === 'linux'
/** USER_HZ, which Linux keeps at 100 for programs whatever the kernel's own rate is. */
const ticksPerSecond = 100
const readTable = () => (onLinux ? readTableOfProc() : readTableOfPs())
const startOf = (pid: number) => (onLinux ? startOfProc(pid) : startOfPs(pid))

async function readTableOfProc(): Promise<RelayProcess[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found: RelayProcess[] = []
  // In slices, so that a machine with thousands of processes doesn't take as many file handles.
  for (let from = 0; from < pids.length; from += 64) {
    const slice = await Promise.all(pids.slice(from, from + 64).map(relayOfProc))
    found.push(...slice.filter((relay) => relay !== undefined))
  }
  return found
}

async function relayOfProc(pid: number): Promise<RelayProcess | undefined> {
  const argv = (await readProc(pid, 'cmdline'))?.split('\0')
  if (!argv) return undefined
  const program = argv.findIndex((arg) => arg === relayProgram || arg.endsWith(`/${relayProgram}`))
  if (program < 0) return undefined
  const argumentOf = (option: string) => {
    const at = argv.indexOf(option, program)
    return at < 0 ? undefined : argv[at + 1]
  }
  const instanceId = argumentOf('--instance')
  const sessionId = argumentOf('--session')
  const region = argumentOf('--region')
  const stateFile = argumentOf('--state-file')
  if (!instanceId || !sessionId || !region || !stateFile) return undefined
  const started = await startOfProc(pid)
  return started === undefined ? undefined : { pid, started, instanceId, sessionId, region, stateFile }
}

/** In clock ticks since the machine started; undefined for a process that is gone or a zombie. */
async function startOfProc(pid: number): Promise<string | undefined> {
  const stat = await readProc(pid, 'stat')
  // The second field is the program's name in brackets, and may hold blanks and brackets itself.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, started] = [fields?.[0], fields?.[19]]
  return state === undefined || state === 'Z' || state === 'X' ? undefined : started
}

async function readProc(pid: number, file: 'cmdline' | 'stat'): Promise<string | undefined> {
  try {
    return await readFile(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    // Gone while we looked, or hidden from us, and then it isn't ours.
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

const run = promisify(execFile)
// `lstart` is five words in the C locale: Sat Nov 21 10:00:00 2026.
const psLine = new RegExp(
  `^\\s*(?<pid>\\d+) +(?<state>\\S+) +(?<started>\\S+ +\\S+ +\\S+ +\\S+ +\\S+) +.*${relayProgram.replace('.', '\\.')}` +
    ' --instance (?<instanceId>\\S+) --session (?<sessionId>\\S+) --region (?<region>\\S+) --state-file (?<stateFile>.+)$',
)

const ps = (args: readonly string[]) =>
  run('/bin/ps', [...args], { env: { LC_ALL: 'C' }, maxBuffer: 64 * 1024 * 1024, encoding: 'utf8' })

/** The same by `ps`, for machines without `/proc`. */
export async function readTableOfPs(): Promise<RelayProcess[]> {
  const { stdout } = await ps(['-axww', '-o', 'pid=,state=,lstart=,command='])
  return stdout.split('\n').flatMap((line) => {
    const { pid, state, started, instanceId, sessionId, region, stateFile } = psLine.exec(line)?.groups ?? {}
    if (!pid || !started || !instanceId || !sessionId || !region || !stateFile || state?.startsWith('Z')) return []
    return [{ pid: Number(pid), started, instanceId, sessionId, region, stateFile: stateFile.trimEnd() }]
  })
}

async function startOfPs(pid: number): Promise<string | undefined> {
  try {
    const { stdout } = await ps(['-ww', '-o', 'state=,lstart=', '-p', String(pid)])
    const [, state, started] = /^\s*(\S+) +(.+?)\s*$/.exec(stdout) ?? []
    return state?.startsWith('Z') ? undefined : started
  } catch (error) {
    if ((error as { code?: unknown }).code === 1) return undefined // no such process
    throw error
  }
}
