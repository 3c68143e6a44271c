/** Runs the programs of the service as child processes, and waits until they are healthy. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type OnSpawn, ServerProcess } from '../platform/embedded/server-process.ts'
import { nodeArguments } from '../platform/launcher.ts'
import type { RunningProgram } from './supervised-program.ts'

const healthyMillisMax = 120_000

export interface ServiceProgram {
  /** Below the project's folder. */
  file: string
  env: Readonly<Record<string, string>>
  logFile: string
  onSpawn?: OnSpawn
}

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

/**
 * Waits until a health check answers 200. Rejects after two minutes with the last answer.
 * @param findFailure returns a reason to reject before that.
 */
export async function waitUntilHealthy(url: string, findFailure: () => string | undefined): Promise<void> {
  const deadline = Date.now() + healthyMillisMax
  let lastAnswer = 'no answer'
  while (Date.now() < deadline) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
      const text = await response.text()
      if (response.status === 200) return
      lastAnswer = `${response.status} ${text}`
    } catch (error) {
      lastAnswer = (error as Error).message
    }
    const failure = findFailure()
    if (failure !== undefined) throw new Error(failure)
    await sleep(100)
  }
  throw new Error(`${url} is not healthy after ${healthyMillisMax / 1000} s: ${lastAnswer}`)
}
