/** `npm start` as a person runs it: a process of its own on a data folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { readStackConfig } from '../../platform/config/stack.ts'
import { endProcess, listProcesses, type RunningProcess } from '../../platform/processes.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const readyMillisMax = 110_000

/** What the developer's own environment may hold and a fresh start must not see. */
const unset = Object.fromEntries(
  [
    'DATABASE_URL',
    'TEMPORAL_ADDRESS',
    'PORT',
    'SVC_API_URL',
    'SVC_SITE_PORT',
    'SVC_SITE_URL',
    'SVC_JWT_SECRET',
    'OAUTH_ENCRYPTION_KEY',
    'SVC_BILLING_WEBHOOK_SECRET',
    'NODE_ENV',
  ].map((name) => [name, undefined]),
)

interface StackOptions {
  readonly variables?: Readonly<Record<string, string>>
  /** No file may grow beyond so many units of 512 bytes, as if its disk were full then. */
  readonly fileBlocksMax?: number
}

export class Stack {
  output = ''
  readonly #process: ChildProcess

  constructor(
    readonly dataDir: string,
    { variables = {}, fileBlocksMax }: StackOptions = {},
  ) {
    const { environment } = readStackConfig()
    const limit = fileBlocksMax === undefined ? '' : `ulimit -f ${fileBlocksMax}; `
    const node = [process.execPath, '--import', 'tsx', 'cli/start.ts']
    this.#process = spawn('/bin/sh', ['-c', `${limit}exec "$@"`, 'sh', ...node], {
      cwd: project,
      env: { ...environment, ...unset, SVC_DATA_DIR: dataDir, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
    }
  }

  /** Resolves once it has said its last line. Rejects with all it said when it ends or takes too long. */
  async ready(): Promise<this> {
    const deadline = Date.now() + readyMillisMax
    while (!this.output.includes('Press Ctrl-C to stop everything')) {
      if (this.#process.exitCode !== null || Date.now() > deadline) throw new Error(`no stack:\n${this.output}`)
      await sleep(50)
    }
    return this
  }

  async waitFor(text: string | RegExp): Promise<void> {
    const deadline = Date.now() + 30_000
    while (this.output.search(text) < 0) {
      if (Date.now() > deadline) throw new Error(`never said ${text}:\n${this.output}`)
      await sleep(50)
    }
  }

  /** The address of the API. */
  get api(): string {
    return /^ {2}API +(\S+)$/m.exec(this.output)?.[1] ?? ''
  }

  /** The address of the site. */
  get site(): string {
    return /^ {2}Site +(\S+)$/m.exec(this.output)?.[1] ?? ''
  }

  /** The command lines that it shows, to be pasted. */
  get commandLines(): string[] {
    return this.output.split('\n').filter((line) => /^(JWT=|curl )/.test(line))
  }

  /** @returns the exit code, null when the signal itself ended it. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const exit = once(this.#process, 'exit')
    this.#process.kill(signal)
    const [code] = await exit
    return code as number | null
  }

  /** The exit code, once it has ended by itself. */
  async ended(): Promise<number | null> {
    if (this.#process.exitCode === null) await once(this.#process, 'exit')
    return this.#process.exitCode
  }
}

/** Every process that was started for the data folder: its path is among the arguments or in the environment. */
export async function processesOf(dataDir: string): Promise<RunningProcess[]> {
  const all = (await listProcesses(() => true)).filter(({ pid }) => pid !== process.pid)
  const belongs = await Promise.all(
    all.map(async ({ pid, command }) => {
      if (command.includes(`${dataDir}/`)) return true
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
      return environment.split('\0').includes(`SVC_DATA_DIR=${dataDir}`)
    }),
  )
  return all.filter((_, index) => belongs[index])
}

/** For tests that fail half way: nothing of the data folder may outlive them. */
export function endAllAfterwards(dataDir: string): void {
  onTestFinished(() => endAll(dataDir))
}

export async function endAll(dataDir: string): Promise<void> {
  for (const found of await processesOf(dataDir)) await endProcess(found, [['SIGKILL', 5000]])
}
