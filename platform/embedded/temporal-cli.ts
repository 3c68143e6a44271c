/**
 * Finds the Temporal CLI: configured, on the PATH, or installed by an earlier start. Otherwise downloads or builds it.
 * A new one is made in a folder of its own and then moved, so that neither a killed process nor two at once leave an
 * incomplete file.
 */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, chmod, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProcess } from '../processes.ts'
import { buildTemporalCli, downloadTemporalCli, temporalCliVersion } from './temporal-cli-install.ts'

const run = promisify(execFile)

const folderName = `temporal-cli-${temporalCliVersion}`
/** The oldest server with update-with-start and worker versioning as they are used here. */
const serverVersionMin = [1, 29] as const

export interface TemporalCliSearch {
  /** The value of SVC_TEMPORAL_CLI. */
  explicit: string | undefined
  /** The folders of PATH. */
  searchPath: readonly string[]
  dataDir: string
  /** The cache folder of this product in the user's home. */
  cacheDir: string
  /** Called with a text for the user while an installation takes time. */
  progress: (text: string) => void
  /** Tried in this order when there is no CLI. The default is a download, then a build. */
  installers?: readonly Installer[]
}

/** Puts the program into a folder and returns its path. */
export type Installer = (folder: string, progress: (text: string) => void) => Promise<string>

/** The path of a CLI that runs. Rejects with all ways to get one when there is none. */
export async function findTemporalCli(search: TemporalCliSearch): Promise<string> {
  const {
    explicit,
    searchPath,
    dataDir,
    cacheDir,
    progress,
    installers = [downloadTemporalCli, buildTemporalCli],
  } = search
  if (explicit !== undefined) {
    const problem = await findProblem(explicit)
    if (problem) throw new Error(`SVC_TEMPORAL_CLI is set to ${explicit}, which ${problem}`)
    return explicit
  }
  const installed = [dataDir, cacheDir].map((folder) => join(folder, folderName, 'temporal'))
  for (const candidate of [...searchPath.map((folder) => join(folder, 'temporal')), ...installed]) {
    if (!(await isExecutable(candidate))) continue
    const problem = await findProblem(candidate)
    if (!problem) return candidate
    progress(`skipping ${candidate}, which ${problem}`)
  }
  const failures: string[] = []
  const folder = await findWritable([cacheDir, dataDir].map((parent) => join(parent, folderName)))
  for (const install of installers) {
    try {
      return await installInto(folder, (work) => install(work, progress))
    } catch (error) {
      failures.push((error as Error).message)
      progress((error as Error).message)
    }
  }
  throw new Error(missingCliMessage(failures, folder))
}

const missingCliMessage = (failures: readonly string[], folder: string): string =>
  [
    'The embedded stack needs the Temporal CLI, which could not be installed:',
    ...failures.map((text) => `  - ${text}`),
    'Do one of these:',
    '  - install it (https://docs.temporal.io/cli#install), so that `temporal` is on the PATH',
    '  - set SVC_TEMPORAL_CLI to the path of the program',
    `  - put the program at ${join(folder, 'temporal')}`,
    '  - install Go 1.25 or newer, so that the next start builds it from source',
    '  - set TEMPORAL_ADDRESS to a Temporal server of your own',
  ].join('\n')

const isExecutable = async (path: string): Promise<boolean> =>
  access(path, constants.X_OK)
    .then(async () => (await stat(path)).isFile())
    .catch(() => false)

/** Why a program cannot be used as the CLI, to continue "which …"; undefined when it can. */
async function findProblem(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 30_000, env: {} })
    const found = /Server (\d+)\.(\d+)/.exec(stdout)
    if (!found) return `is not the Temporal CLI, by its output for --version: ${stdout.slice(0, 80).trim()}`
    const [major, minor] = [Number(found[1]), Number(found[2])]
    const isRecent = major > serverVersionMin[0] || (major === serverVersionMin[0] && minor >= serverVersionMin[1])
    return isRecent
      ? undefined
      : `has Temporal server ${major}.${minor}; ${serverVersionMin.join('.')} or newer is required`
  } catch (error) {
    return `does not run: ${(error as Error).message.split('\n')[0]}`
  }
}

async function findWritable(folders: readonly string[]): Promise<string> {
  for (const folder of folders) {
    try {
      await mkdir(folder, { recursive: true })
      await access(folder, constants.W_OK)
      return folder
    } catch {
      // Not writable, for example below a home that does not exist.
    }
  }
  throw new Error(`none of these folders is writable: ${folders.join(', ')}`)
}

/**
 * Calls an installer with a temporary folder of this process, and moves the program that it returns into the target
 * folder.
 */
async function installInto(folder: string, install: (work: string) => Promise<string>): Promise<string> {
  await removeAbandoned(folder)
  const work = join(folder, `.work-${process.pid}`)
  await rm(work, { recursive: true, force: true })
  await mkdir(work, { recursive: true })
  try {
    const program = await install(work)
    await chmod(program, 0o755)
    const problem = await findProblem(program)
    if (problem) throw new Error(`the installed Temporal CLI ${problem}`)
    const target = join(folder, 'temporal')
    await rename(program, target)
    return target
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Removes the temporary folders of killed processes. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = Number(/^\.work-(\d+)$/.exec(name)?.[1])
    if (pid && !(await findProcess(pid))) await rm(join(folder, name), { recursive: true, force: true })
  }
}
