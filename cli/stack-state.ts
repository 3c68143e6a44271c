/** Small JSON files in the data folder: the running stack, and what one start remembers for the next. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeFileAtomically } from '../platform/atomic-file.ts'

/** Exists while the stack runs. Other commands find the stack by it. */
export interface RunningStack {
  pid: number
  api: string
  site: string
  temporalUi: string | undefined
  /** The addresses of the embedded servers, as variables for programs of the service. Contains a password. */
  servers: Readonly<Record<string, string>>
}

const port = z.int().min(1).max(65535).optional()

const StackState = z.object({
  /** Running relays report to this port, so the next start prefers it. */
  apiPort: port,
  /** Links in emails and plugins contain this port. */
  sitePort: port,
  /** Whether the demo account has been created with its plan. */
  demoAccountReady: z.boolean().optional(),
})
export type StackState = z.infer<typeof StackState>

const runningFile = (dataDir: string): string => join(dataDir, 'running.json')
const stateFile = (dataDir: string): string => join(dataDir, 'state.json')

export const readRunningStack = (dataDir: string): Promise<RunningStack | undefined> =>
  readJson<RunningStack>(runningFile(dataDir))
export const writeRunningStack = (dataDir: string, stack: RunningStack): Promise<void> =>
  writeJson(runningFile(dataDir), stack)
export const removeRunningStack = (dataDir: string): Promise<void> => rm(runningFile(dataDir), { force: true })

/**
 * Empty when the file is missing or invalid: then the default ports are tried, and the demo account is checked again.
 */
export const readState = async (dataDir: string): Promise<StackState> =>
  StackState.safeParse(await readJson(stateFile(dataDir))).data ?? {}

/** Changes the given values and keeps the others. */
export const updateState = async (dataDir: string, changes: StackState): Promise<void> =>
  writeJson(stateFile(dataDir), { ...(await readState(dataDir)), ...changes })

/** Undefined when the file is missing or invalid, since neither file is needed for a start. */
async function readJson<T>(file: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as T
  } catch {
    return undefined
  }
}

const writeJson = (file: string, value: unknown): Promise<void> =>
  writeFileAtomically(file, `${JSON.stringify(value, null, 2)}\n`)
