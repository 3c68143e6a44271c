/**
 * Where the Temporal CLI comes from: named by the operator, on the PATH, kept from an earlier time, downloaded, or built.
 * A new one is made under a name of its own and then renamed, so neither a killed build nor two at once leave half a file.
 */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, chmod, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { commandOf } from './processes.ts'
import { build, download, temporalCliVersion } from './temporal-obtain.ts'

const run = promisify(execFile)

const folderName = `temporal-cli-${temporalCliVersion}`
/** Update-with-start and worker versioning as they are used here. */
const oldestServer = [1, 29] as const

export interface TemporalCliSearch {
  /** The value of SVC_TEMPORAL_CLI. */
  explicit: string | undefined
  /** The folders of PATH. */
  searchPath: readonly string[]
  dataDir: string
  /** The user's cache folder for this product. */
  cacheDir: string
  /** Told what is being done whenever it takes time, ready to be shown. */
  progress: (text: string) => void
  /** How to get one when there is none, tried in this order: put it into the folder and answer its path. */
  ways?: readonly Way[]
}

export type Way = (work: string, progress: (text: string) => void) => Promise<string>

/** The path of a CLI that was seen to run. Rejects with all ways out when there is none. */
export async function findTemporalCli(search: TemporalCliSearch): Promise<string> {
  const { explicit, searchPath, dataDir, cacheDir, progress, ways = [download, build] } = search
  if (explicit !== undefined) {
    const fault = await faultOf(explicit)
    if (fault) throw new Error(`SVC_TEMPORAL_CLI names ${explicit}, which ${fault}`)
    return explicit
  }
  const kept = [dataDir, cacheDir].map((folder) => join(folder, folderName, 'temporal'))
  for (const candidate of [...searchPath.map((folder) => join(folder, 'temporal')), ...kept]) {
    if (!(await isExecutable(candidate))) continue
    const fault = await faultOf(candidate)
    if (!fault) return candidate
    progress(`passing over ${candidate}, which ${fault}`)
  }
  const failures: string[] = []
  const folder = await firstWritable([cacheDir, dataDir].map((parent) => join(parent, folderName)))
  for (const obtain of ways) {
    try {
      return await keep(folder, (work) => obtain(work, progress))
    } catch (error) {
      failures.push((error as Error).message)
      progress((error as Error).message)
    }
  }
  throw new Error(waysOut(failures, folder))
}

const waysOut = (failures: readonly string[], folder: string): string =>
  [
    'There is no Temporal CLI, which the embedded stack needs:',
    ...failures.map((text) => `  - ${text}`),
    'Any one of these helps:',
    '  - install it (https://docs.temporal.io/cli#install), so that `temporal` is on the PATH',
    '  - set SVC_TEMPORAL_CLI to the path of the program',
    `  - put the program at ${join(folder, 'temporal')}`,
    '  - install Go 1.25 or newer, and it is built from source at the next start',
    '  - set TEMPORAL_ADDRESS to a Temporal server of your own',
  ].join('\n')

const isExecutable = async (path: string): Promise<boolean> =>
  access(path, constants.X_OK)
    .then(async () => (await stat(path)).isFile())
    .catch(() => false)

/** Why it can't be used, continuing "which …"; nothing when it can. */
async function faultOf(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 30_000, env: {} })
    const found = /Server (\d+)\.(\d+)/.exec(stdout)
    if (!found) return `does not answer --version like the Temporal CLI: ${stdout.slice(0, 80).trim()}`
    const [major, minor] = [Number(found[1]), Number(found[2])]
    const recent = major > oldestServer[0] || (major === oldestServer[0] && minor >= oldestServer[1])
    return recent ? undefined : `holds Temporal server ${major}.${minor}; ${oldestServer.join('.')} or newer is needed`
  } catch (error) {
    return `does not run: ${(error as Error).message.split('\n')[0]}`
  }
}

async function firstWritable(folders: readonly string[]): Promise<string> {
  for (const folder of folders) {
    try {
      await mkdir(folder, { recursive: true })
      await access(folder, constants.W_OK)
      return folder
    } catch {
      // Not this one, e.g. below a home that doesn't exist: the next.
    }
  }
  throw new Error(`none of these folders can be written: ${folders.join(', ')}`)
}

/** Lets `obtain` put the program somewhere below a folder of this process only, then moves it into place. */
async function keep(folder: string, obtain: (work: string) => Promise<string>): Promise<string> {
  await clearAbandoned(folder)
  const work = join(folder, `.work-${process.pid}`)
  await rm(work, { recursive: true, force: true })
  await mkdir(work, { recursive: true })
  try {
    const program = await obtain(work)
    await chmod(program, 0o755)
    const fault = await faultOf(program)
    if (fault) throw new Error(`the Temporal CLI just obtained ${fault}`)
    const place = join(folder, 'temporal')
    await rename(program, place)
    return place
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** What a killed process left half done. */
async function clearAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = Number(/^\.work-(\d+)$/.exec(name)?.[1])
    if (pid && !(await commandOf(pid))) await rm(join(folder, name), { recursive: true, force: true })
  }
}
