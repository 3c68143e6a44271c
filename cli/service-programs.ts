/** Runs the programs of the service as child processes. */
import { fileURLToPath } from 'node:url'
import { type OnSpawn, ServerProcess } from '../platform/embedded/server-process.ts'
import type { RunningProgram } from './supervised-program.ts'

const projectFile = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const loader = import.meta.resolve('tsx')

export interface ServiceProgram {
  /** Below the project's folder. */
  file: string
  env: Readonly<Record<string, string>>
  logFile: string
  onSpawn?: OnSpawn
}

/** The arguments of Node for a program of the project. @param file below the project's folder. */
export const nodeArguments = (file: string): string[] => ['--import', loader, projectFile(file)]

const nodeProcess = ({ file, env, logFile, onSpawn }: ServiceProgram) => ({
  executable: process.execPath,
  args: nodeArguments(file),
  env,
  logFile,
  onSpawn,
})

/** Starts a program that runs until it is stopped, and that ends by itself when this process ends. */
export async function startProgram(program: ServiceProgram): Promise<RunningProgram & { readLastLines(): string }> {
  const server = await ServerProcess.start({ ...nodeProcess(program), ipc: true })
  return {
    pid: server.pid,
    exited: server.exited,
    readLastLines: () => server.readLastLines(),
    stop: () =>
      server.end([
        ['SIGTERM', 15_000],
        ['SIGKILL', 2000],
      ]),
  }
}

/** Runs a program until it ends by itself. Rejects with its last lines unless its exit code is 0. */
export async function runProgram(program: ServiceProgram): Promise<void> {
  const server = await ServerProcess.start(nodeProcess(program))
  const end = await server.exited
  if (end !== 'ended with code 0') throw new Error(`${program.file} ${end}:\n${server.readLastLines()}`)
}
