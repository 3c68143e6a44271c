/** The service's own programs as children of the supervisor. */
import { fileURLToPath } from 'node:url'
import { ServerProcess, type Spawned } from '../platform/embedded/server-process.ts'
import type { Running } from './kept.ts'

const projectFile = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const loader = import.meta.resolve('tsx')

export interface Program {
  /** Below the project's folder. */
  file: string
  env: Readonly<Record<string, string>>
  logFile: string
  spawned?: Spawned
}

/** What Node is told to run one of our programs. @param file below the project's folder. */
export const nodeArguments = (file: string): string[] => ['--import', loader, projectFile(file)]

const nodeProgram = ({ file, env, logFile, spawned }: Program) => ({
  executable: process.execPath,
  args: nodeArguments(file),
  env,
  logFile,
  spawned,
})

/** A program that runs until it is stopped, and ends by itself when this process does. */
export async function startProgram(program: Program): Promise<Running & { lastWords(): string }> {
  const server = await ServerProcess.start({ ...nodeProgram(program), ipc: true })
  return {
    pid: server.pid,
    exited: server.exited,
    lastWords: () => server.lastWords(),
    stop: () =>
      server.end([
        ['SIGTERM', 15_000],
        ['SIGKILL', 2000],
      ]),
  }
}

/** A program with an end. Rejects with its last words unless it is a good one. */
export async function runProgram(program: Program): Promise<void> {
  const server = await ServerProcess.start(nodeProgram(program))
  const end = await server.exited
  if (end !== 'ended with code 0') throw new Error(`${program.file} ${end}:\n${server.lastWords()}`)
}
