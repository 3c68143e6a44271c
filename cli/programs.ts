/** The service's own programs as children, and what of their logs is worth a person's attention. */
import { open, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { prettyFactory } from 'pino-pretty'
import { ServerProcess } from '../platform/embedded/server-process.ts'
import type { Running } from './kept.ts'

const projectFile = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const loader = import.meta.resolve('tsx')

export interface Program {
  /** Below the project's folder. */
  file: string
  env: Readonly<Record<string, string>>
  logFile: string
}

const nodeProgram = ({ file, env, logFile }: Program) => ({
  executable: process.execPath,
  args: ['--import', loader, projectFile(file)],
  env,
  logFile,
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

export const pretty = prettyFactory({
  colorize: process.stdout.isTTY === true,
  ignore: 'pid,hostname,name',
  translateTime: 'SYS:HH:MM:ss',
  singleLine: true,
})

const worthShowing = new Set(['warn', 'error', 'fatal'])

/** Shows warnings and worse as they are appended to a log of JSON lines. @returns how to end it. */
export async function watchLog(name: string, file: string, show: (text: string) => void): Promise<() => void> {
  let offset = (await stat(file).catch(() => undefined))?.size ?? 0
  let rest = ''
  let reading = false
  const readOn = async () => {
    const { size } = await stat(file)
    // A shorter file is a new one in its place.
    if (size < offset) offset = 0
    if (size === offset) return
    const handle = await open(file)
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size - offset, 1_048_576)), {
        position: offset,
      })
      offset += bytesRead
      const lines = (rest + buffer.subarray(0, bytesRead).toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (isWorthShowing(line)) show(`${name} │ ${pretty(line).trimEnd()}`)
    } finally {
      await handle.close()
    }
  }
  const timer = setInterval(() => {
    if (reading) return
    reading = true
    readOn()
      .catch(() => {})
      .finally(() => {
        reading = false
      })
  }, 250)
  return () => clearInterval(timer)
}

/** What is no JSON is a crash report: one line of it says little, and the notice of its end names the file. */
function isWorthShowing(line: string): boolean {
  try {
    return worthShowing.has((JSON.parse(line) as { level?: string }).level ?? '')
  } catch {
    return false
  }
}
