/** The question before a command that ends or takes away something. */
import { createInterface } from 'node:readline/promises'
import { exitCodes, SvcError } from './exit-codes.ts'
import type { ConfirmableOptions } from './options.ts'

/** Asks on a terminal, unless `--yes` is given; a script is not asked. Rejects when the answer is not yes. */
export async function confirm(question: string, { yes }: ConfirmableOptions): Promise<void> {
  if (yes || !process.stdin.isTTY) return
  // Standard output may be a pipe.
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const interrupted = new AbortController()
  terminal.once('close', () => interrupted.abort())
  try {
    const answer = await terminal.question(`${question} [y/N] `, { signal: interrupted.signal }).catch(() => '')
    if (!/^y(es)?$/i.test(answer.trim())) throw new SvcError(exitCodes.failed, 'Nothing was changed.')
  } finally {
    terminal.close()
  }
}
