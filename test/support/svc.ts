/** Runs `svc` as a program of its own, in an empty folder. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from './folders.ts'
import { operatorPassword } from './relays.ts'

export const svcLauncher = fileURLToPath(new URL('../../cli/svc/bin.mjs', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface SvcProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  /** The output so far. */
  readonly stdout: () => string
  readonly ended: Promise<Ended>
}

/** Starts a command, and kills it after the test. @param variables of its environment, beside an empty data folder. */
export async function startSvc(
  words: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<SvcProcess> {
  const folder = await temporaryFolder()
  const child = spawn(svcLauncher, words, {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', SVC_DATA_DIR: folder, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text
    })
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...texts }))
  return { child, stdout: () => texts.stdout, ended }
}

/** Runs a command to its end. */
export const runSvc = async (words: readonly string[], variables?: Readonly<Record<string, string>>): Promise<Ended> =>
  (await startSvc(words, variables)).ended

/** A function that runs commands as the operator of an API. It rejects with the output unless the exit code is 0. */
export const svcOf =
  (url: string) =>
  async (...words: string[]): Promise<string> => {
    const ended = await runSvc(words, operatorVariables(url))
    if (ended.code !== 0) throw new Error(`svc ${words.join(' ')} ended with ${ended.code}: ${ended.stderr}`)
    return ended.stdout
  }

export const operatorVariables = (url: string) => ({ SVC_API_URL: url, SVC_OPERATOR_PASSWORD: operatorPassword })
