/** Small JSON files in the data folder: what is running now, and what one start remembers for the next. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** There only while the stack runs; other programs find it by this. */
export interface RunningStack {
  pid: number
  api: string
  site: string
  temporalUi: string | undefined
  /** Where its own servers are, as variables of its programs; a password is among them. */
  servers: Readonly<Record<string, string>>
}

export interface RememberedState {
  /** Running relays report to it: the next start prefers it. */
  apiPort?: number
  /** Links in mails and plugins lead to it. */
  sitePort?: number
  /** Whether the demo account has had its plan. */
  demoAccountReady?: boolean
}

const runningFile = (dataDir: string): string => join(dataDir, 'running.json')
const stateFile = (dataDir: string): string => join(dataDir, 'state.json')

export const readRunning = (dataDir: string): Promise<RunningStack | undefined> =>
  readJson<RunningStack>(runningFile(dataDir))
export const writeRunning = (dataDir: string, running: RunningStack): Promise<void> =>
  writeJson(runningFile(dataDir), running)
export const removeRunning = (dataDir: string): Promise<void> => rm(runningFile(dataDir), { force: true })

export const readState = async (dataDir: string): Promise<RememberedState> =>
  (await readJson<RememberedState>(stateFile(dataDir))) ?? {}

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

async function writeJson(file: string, value: unknown): Promise<void> {
  const half = `${file}.${process.pid}`
  await writeFile(half, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  await rename(half, file)
}
