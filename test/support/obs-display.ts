/** A display without a screen, for programs with windows. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { endChild, withParent } from './obs-process.ts'

export interface Display {
  /** As in `DISPLAY`. */
  readonly name: string
  end(): Promise<void>
}

/** Starts Xvfb on a number that is free. */
export async function startDisplay(): Promise<Display> {
  const [program = '', ...args] = withParent(
    'Xvfb',
    '-displayfd',
    '3',
    '-screen',
    '0',
    '800x600x24',
    '-nolisten',
    'tcp',
  )
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr?.on('data', (text) => {
    errors = (errors + text).slice(-2_000)
  })
  const number = await Promise.race([
    readNumber(child),
    once(child, 'error').then(([error]) => `${error}`),
    endOf(child),
  ])
  if (!/^\d+$/.test(number)) {
    await endChild(child)
    throw new Error(`Xvfb did not start: ${number}\n${errors}`)
  }
  return { name: `:${number}`, end: () => endChild(child) }
}

async function readNumber(child: ChildProcess): Promise<string> {
  let text = ''
  for await (const bytes of child.stdio[3] as Readable) {
    text += bytes
    if (text.includes('\n')) break
  }
  return text.trim()
}

const endOf = async (child: ChildProcess): Promise<string> => {
  const [code] = await once(child, 'exit')
  return `it ended with code ${code}`
}
