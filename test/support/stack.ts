/** Runs `npm start` in a separate process with its own data folder. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { readStackConfig } from '../../platform/config/stack.ts'
import { readStoredSecrets } from '../../platform/embedded/secrets.ts'
import { nodeArguments } from '../../platform/launcher.ts'
import { endProcess, listProcesses, type RunningProcess } from '../../platform/processes.ts'
import { eventually } from './eventually.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const readyMillisMax = 110_000

/** Variables of the developer's environment that must not affect the tests. */
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
  /** Maximum file size in units of 512 bytes, to simulate a full disk. */
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
    const node = [process.execPath, ...nodeArguments('cli/start.ts')]
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

  /** Resolves after its last line of output. Rejects with the output when it exits or takes too long. */
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
      if (Date.now() > deadline) throw new Error(`the output lacks ${text}:\n${this.output}`)
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

  /** The commands that it prints for copying. */
  get commandLines(): string[] {
    return this.output.split('\n').filter((line) => /^(JWT=|curl )/.test(line))
  }

  /** @returns the exit code; null when the signal ended the process. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const exit = once(this.#process, 'exit')
    this.#process.kill(signal)
    const [code] = await exit
    return code as number | null
  }

  /** Resolves with the exit code when the process exits without a signal. */
  async ended(): Promise<number | null> {
    if (this.#process.exitCode === null) await once(this.#process, 'exit')
    return this.#process.exitCode
  }
}

/** All processes whose arguments or environment contain the path of the data folder. */
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

/** Ends all processes of the data folder, for tests that fail before they do. */
export function endAllAfterwards(dataDir: string): void {
  onTestFinished(() => endAll(dataDir))
}

export async function endAll(dataDir: string): Promise<void> {
  for (const found of await processesOf(dataDir)) await endProcess(found, [['SIGKILL', 5000]])
}

/** The command lines of all processes of the data folder. */
export const commandsOf = async (dataDir: string): Promise<string[]> =>
  (await processesOf(dataDir)).map(({ command }) => command)

/** Runs lines in a shell, as a user who pastes them. @returns the output. */
export async function paste(...lines: string[]): Promise<string> {
  return (await promisify(execFile)('bash', ['-c', lines.join('\n')])).stdout
}

export interface SessionReply {
  readonly session: { readonly session_id: string; readonly state: string } | null
}

/** Resolves when the session has the state. Asks as the operator, who has no rate limit. */
export async function untilRelayState({ api, dataDir }: Stack, sessionId: string, state: string): Promise<void> {
  const { SVC_OPERATOR_PASSWORD = '' } = await readStoredSecrets(dataDir)
  const authorization = `Basic ${Buffer.from(`operator:${SVC_OPERATOR_PASSWORD}`).toString('base64')}`
  await eventually(
    async () => {
      const response = await fetch(`${api}/api/v1/admin/sessions/${sessionId}`, { headers: { authorization } })
      return ((await response.json()) as Partial<SessionReply>).session?.state
    },
    (present) => present === state,
  )
}
