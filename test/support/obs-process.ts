/** Processes beside OBS that end with the test run. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** The command of a program that the kernel ends with this process, also when the test run is aborted. */
export const withParent = (...command: readonly string[]): readonly string[] =>
  process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL', '--', ...command] : command

const hasEnded = ({ exitCode, signalCode, pid }: ChildProcess): boolean =>
  pid === undefined || exitCode !== null || signalCode !== null

/** Ends a process by a signal, and by SIGKILL when it is not gone after a while. */
export async function endChild(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL', waitMillis = 10_000) {
  if (hasEnded(child)) return
  const gone = once(child, 'exit')
  child.kill(signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), waitMillis)
  await gone
  clearTimeout(timer)
}
