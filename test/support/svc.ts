/** Runs `svc` in this process, or as a program of its own, with an empty data folder. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { CommanderError } from 'commander'
import { onTestFinished, vi } from 'vitest'
import { describeError, exitCodeOf } from '../../cli/svc/exit-codes.ts'
import { createProgram } from '../../cli/svc/program.ts'
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

/**
 * Runs a command in this process, as `cli/svc/main.ts` does. For commands that read no terminal and wait for no signal;
 * one at a time, since it takes the output of the whole process.
 */
export async function runSvcHere(
  words: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const texts = { stdout: '', stderr: '' }
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      texts[name] += String(text)
      return true
    }),
  )
  const folder = await temporaryFolder()
  const unset = Object.keys(process.env).filter((name) => name.startsWith('SVC_'))
  for (const name of unset) vi.stubEnv(name, undefined)
  for (const [name, value] of Object.entries({ SVC_DATA_DIR: folder, ...variables })) vi.stubEnv(name, value)
  try {
    await createProgram().parseAsync(words, { from: 'user' })
    return { code: 0, ...texts }
  } catch (error) {
    const described = error instanceof CommanderError ? '' : `${describeError(error)}\n`
    return { code: exitCodeOf(error), stdout: texts.stdout, stderr: texts.stderr + described }
  } finally {
    for (const spy of spies) spy.mockRestore()
    vi.unstubAllEnvs()
  }
}

/** A function that runs commands as the operator of an API. It rejects with the output unless the exit code is 0. */
export const svcOf =
  (url: string) =>
  async (...words: string[]): Promise<string> => {
    const ended = await runSvcHere(words, operatorVariables(url))
    if (ended.code !== 0) throw new Error(`svc ${words.join(' ')} ended with ${ended.code}: ${ended.stderr}`)
    return ended.stdout
  }

export const operatorVariables = (url: string) => ({ SVC_API_URL: url, SVC_OPERATOR_PASSWORD: operatorPassword })
