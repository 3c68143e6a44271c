/** Small JSON files in the data folder: what is running now, and what one start remembers for the next. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeWhole } from '../platform/embedded/whole-file.ts'

/** There only while the stack runs; other programs find it by this. */
export interface RunningStack {
  pid: number
  api: string
  site: string
  temporalUi: string | undefined
  /** Where its own servers are, as variables of its programs; a password is among them. */
  servers: Readonly<Record<string, string>>
}

const port = z.int().min(1).max(65535).optional()

const RememberedState = z.object({
  /** Running relays report to it: the next start prefers it. */
  apiPort: port,
  /** Links in mails and plugins lead to it. */
  sitePort: port,
  /** Whether the demo account has had its plan. */
  demoAccountReady: z.boolean().optional(),
})
export type RememberedState = z.infer<typeof RememberedState>

const runningFile = (dataDir: string): string => join(dataDir, 'running.json')
const stateFile = (dataDir: string): string => join(dataDir, 'state.json')

export const readRunning = (dataDir: string): Promise<RunningStack | undefined> =>
  readJson<RunningStack>(runningFile(dataDir))
export const writeRunning = (dataDir: string, running: RunningStack): Promise<void> =>
  writeJson(runningFile(dataDir), running)
export const removeRunning = (dataDir: string): Promise<void> => rm(runningFile(dataDir), { force: true })

/** Nothing of a file that can't be understood: then the usual ports are tried, and the demo account is looked at again. */
export const readState = async (dataDir: string): Promise<RememberedState> =>
  RememberedState.safeParse(await readJson(stateFile(dataDir))).data ?? {}

/** Adds to what is remembered already. */
export const remember = async (dataDir: string, news: RememberedState): Promise<void> =>
  writeJson(stateFile(dataDir), { ...(await readState(dataDir)), ...news })

/** Nothing when the file isn't there or can't be understood: neither file is worth a refused start. */
async function readJson<T>(file: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as T
  } catch {
    return undefined
  }
}

const writeJson = (file: string, value: unknown): Promise<void> =>
  writeWhole(file, `${JSON.stringify(value, null, 2)}\n`)
