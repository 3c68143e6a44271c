/** Two ways to a Temporal CLI where none is installed: fetch the official build, or build it from its source. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sendSignal } from './processes.ts'

/** Also the newest that `go install` can build: later ones carry a replace directive. */
export const temporalCliVersion = '1.5.1'

type Progress = (text: string) => void

/** A download that gets no further for that long is given up. */
const downloadStallMillis = 20_000
const downloadMillisMax = 10 * 60_000
const buildMillisMax = 30 * 60_000

/**
 * Fetches it into `work` and returns its path. The SDK does the fetching, in a process of its own: its native code can't be
 * interrupted, a process can. Rejects within seconds where there is no internet.
 */
export async function download(work: string, progress: Progress): Promise<string> {
  const doing = `downloading the Temporal CLI ${temporalCliVersion} (about 50 MB, once)`
  progress(doing)
  const script = fileURLToPath(new URL('temporal-download.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, work, `v${temporalCliVersion}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    detached: true,
  })
  let bytes = 0
  let movedAt = Date.now()
  const watch = setInterval(async () => {
    const now = await bytesIn(work)
    if (now > bytes) {
      bytes = now
      movedAt = Date.now()
      progress(`${doing}: ${Math.round(bytes / 1e6)} MB`)
    }
    if (Date.now() - movedAt > downloadStallMillis) endGroup(child)
  }, 500)
  const end = await endOf(child, downloadMillisMax).finally(() => clearInterval(watch))
  const program = (await readdir(work)).find((name) => name.startsWith('temporal') && !name.endsWith('.downloading'))
  if (end.fault !== undefined || !program) {
    throw new Error(
      `the Temporal CLI could not be downloaded: ${end.fault ?? 'nothing was kept'} ${lastLine(end.said)}`,
    )
  }
  return join(work, program)
}

/** Builds it in `work` and returns its path. Rejects at once without Go. Takes 4 to 6 minutes on two cores. */
export async function build(work: string, progress: Progress): Promise<string> {
  const doing = `building the Temporal CLI ${temporalCliVersion} with Go (about 5 minutes on 2 cores, once)`
  const target = `github.com/temporalio/cli/cmd/temporal@v${temporalCliVersion}`
  const child = spawn('env', [`GOBIN=${work}`, 'go', 'install', '-v', target], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // Away from any go.mod or go.work of the caller.
    cwd: work,
    detached: true,
  })
  child.once('spawn', () => progress(doing))
  let fetched = 0
  let compiled = 0
  child.stderr.on('data', (text: Buffer) => {
    for (const line of text
      .toString('utf8')
      .split('\n')
      .filter((each) => each !== '')) {
      if (line.startsWith('go: ')) fetched += 1
      else compiled += 1
    }
    progress(`${doing}: ${fetched} modules fetched, ${compiled} packages compiled`)
  })
  const end = await endOf(child, buildMillisMax)
  if (end.fault !== undefined) {
    throw new Error(`the Temporal CLI could not be built with Go: ${end.fault} ${lastLine(end.said)}`)
  }
  return join(work, 'temporal')
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''

interface End {
  /** Why it failed, or undefined. */
  fault: string | undefined
  /** What it wrote to standard error, at most the last 64 KiB. */
  said: string
}

function endOf(child: ChildProcess, millisMax: number): Promise<End> {
  let said = ''
  child.stderr?.on('data', (text: Buffer) => {
    said = (said + text.toString('utf8')).slice(-65_536)
  })
  // A build has children of its own; none may go on when whoever waits for it has gone.
  const end = () => endGroup(child)
  process.once('exit', end)
  const timer = setTimeout(end, millisMax)
  return new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(`${error.message}.`))
    child.once('close', (code, signal) => resolve(faults.get(code ?? signal) ?? `it ended with ${code ?? signal}.`))
  }).then((fault) => {
    clearTimeout(timer)
    process.off('exit', end)
    return { fault: fault || undefined, said }
  })
}

const faults = new Map<unknown, string>([
  [0, ''],
  [127, 'it is not installed.'],
  ['SIGKILL', 'it took too long.'],
])

function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) sendSignal(-pid, 'SIGKILL')
}

async function bytesIn(folder: string): Promise<number> {
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
