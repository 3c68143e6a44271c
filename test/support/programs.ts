/** Api, worker and site as separate processes, so that a test can kill them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { nodeArguments } from '../../platform/launcher.ts'
import { atEnd } from './at-end.ts'
import { eventually } from './relays.ts'

export type ProgramName = 'api' | 'worker' | 'site'

const entries: Record<ProgramName, string> = {
  api: 'api/server.ts',
  worker: 'activities/worker/worker.ts',
  site: 'web/server.ts',
}

export interface Program {
  /** Sends SIGKILL and resolves when the process has exited. */
  kill(): Promise<void>
  /** Sends SIGTERM and resolves when the process has exited. */
  stop(): Promise<void>
  /** Starts the process again. @param changes of its variables, also for later starts. */
  start(changes?: Readonly<Record<string, string>>): void
  /** The latest output, for the message of a failing test. */
  readonly output: () => string
}

/**
 * Starts the program, and kills it after the tests of the file.
 * @param outputLengthMax of the output that is kept, in characters.
 */
export function startProgram(
  name: ProgramName,
  env: Readonly<Record<string, string>>,
  outputLengthMax = 20_000,
): Program {
  let child: ChildProcess | undefined
  let output = ''
  let variables = env
  const start = (changes: Readonly<Record<string, string>> = {}) => {
    variables = { ...variables, ...changes }
    child = spawn(process.execPath, nodeArguments(entries[name]), {
      env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', LOG_LEVEL: 'warn', ...variables },
      // The process exits when the IPC channel closes, for example because the test run was aborted.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-outputLengthMax)
      })
  }
  const end = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }
  const kill = () => end('SIGKILL')
  start()
  atEnd(kill)
  return { kill, stop: () => end('SIGTERM'), start, output: () => output }
}

/** Resolves when /health answers 200. Rejects with the last answer. */
export const untilWell = (apiUrl: string): Promise<{ readonly status: number; readonly body: string } | undefined> =>
  eventually(
    async () => {
      const answer = await fetch(`${apiUrl}/health`).catch(() => undefined)
      return answer && { status: answer.status, body: await answer.text() }
    },
    (answer) => answer?.status === 200,
  )
