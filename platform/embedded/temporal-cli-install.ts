/** Installs the Temporal CLI: downloads the official build, or builds it from source. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeArguments } from '../launcher.ts'
import { sendSignal } from '../processes.ts'

/** The newest version that `go install` can build: later ones have a replace directive. */
export const temporalCliVersion = '1.5.1'

/** Below the project's folder. */
const downloadProgram = 'platform/embedded/temporal-cli-download.ts'

type Progress = (text: string) => void

/** A download without progress for this time is aborted. */
const downloadStallMillis = 20_000
const downloadMillisMax = 10 * 60_000
const buildMillisMax = 30 * 60_000

/**
 * Downloads it into a folder and returns its path. The Temporal SDK downloads it in a process of its own, since only a
 * process can be interrupted, not the SDK's native code. Rejects within seconds where there is no internet.
 */
export async function downloadTemporalCli(folder: string, progress: Progress): Promise<string> {
  const step = `downloading the Temporal CLI ${temporalCliVersion} (about 50 MB, once)`
  progress(step)
  const child = spawn(process.execPath, [...nodeArguments(downloadProgram), folder, `v${temporalCliVersion}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  let bytes = 0
  let progressAt = Date.now()
  const watch = setInterval(async () => {
    const size = await sizeOf(folder)
    if (size > bytes) {
      bytes = size
      progressAt = Date.now()
      progress(`${step}: ${Math.round(bytes / 1e6)} MB`)
    }
    if (Date.now() - progressAt > downloadStallMillis) killGroup(child)
  }, 500)
  const result = await waitForEnd(child, downloadMillisMax).finally(() => clearInterval(watch))
  const program = (await readdir(folder)).find((name) => name.startsWith('temporal') && !name.endsWith('.downloading'))
  if (result.failure !== undefined || !program) {
    const failure = result.failure ?? 'the program is missing after the download.'
    throw new Error(`the Temporal CLI could not be downloaded: ${failure} ${lastLine(result.errorOutput)}`)
  }
  return join(folder, program)
}

/** Builds it in a folder and returns its path. Rejects at once without Go. Takes 4 to 6 minutes on two cores. */
export async function buildTemporalCli(folder: string, progress: Progress): Promise<string> {
  const step = `building the Temporal CLI ${temporalCliVersion} with Go (about 5 minutes on 2 cores, once)`
  const target = `github.com/temporalio/cli/cmd/temporal@v${temporalCliVersion}`
  const child = spawn('env', [`GOBIN=${folder}`, 'go', 'install', '-v', target], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // Outside of any go.mod or go.work of the caller.
    cwd: folder,
    detached: true,
  })
  child.once('spawn', () => progress(step))
  let modules = 0
  let packages = 0
  child.stderr.on('data', (text: Buffer) => {
    const lines = text
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
    const downloaded = lines.filter((line) => line.startsWith('go: ')).length
    modules += downloaded
    packages += lines.length - downloaded
    progress(`${step}: ${modules} modules downloaded, ${packages} packages compiled`)
  })
  const { failure, errorOutput } = await waitForEnd(child, buildMillisMax)
  if (failure !== undefined)
    throw new Error(`the Temporal CLI could not be built with Go: ${failure} ${lastLine(errorOutput)}`)
  return join(folder, 'temporal')
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''

interface Result {
  /** Why it failed, or undefined. */
  failure: string | undefined
  /** The last 64 KiB that it wrote to standard error. */
  errorOutput: string
}

function waitForEnd(child: ChildProcess, millisMax: number): Promise<Result> {
  let errorOutput = ''
  child.stderr?.on('data', (text: Buffer) => {
    errorOutput = (errorOutput + text.toString('utf8')).slice(-65_536)
  })
  // A build has child processes, which must not outlive this process.
  const kill = () => killGroup(child)
  process.once('exit', kill)
  const timer = setTimeout(kill, millisMax)
  return new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`${error.message}.`))
    child.once('close', (code, signal) => resolve(failures.get(code ?? signal) ?? `it ended with ${code ?? signal}.`))
  }).then((failure) => {
    clearTimeout(timer)
    process.off('exit', kill)
    return { failure: failure || undefined, errorOutput }
  })
}

const failures = new Map<unknown, string>([
  [0, ''],
  [127, 'Go is not installed.'],
  ['SIGKILL', 'it took too long.'],
])

function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) sendSignal(-pid, 'SIGKILL')
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => [])
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        (found) => found.size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
