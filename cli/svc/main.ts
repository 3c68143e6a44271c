/** `svc`: the command line for operators. Sets the exit code, see exit-codes.ts. */
import { CommanderError } from 'commander'
import { describeError, exitCodeOf } from './exit-codes.ts'
import { createProgram } from './program.ts'

// The reader of the output may end first, like `head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

try {
  await createProgram().parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
  // Commander has printed its own errors.
  if (!(error instanceof CommanderError)) process.stderr.write(`${describeError(error)}\n`)
}
// Ends what hangs, such as calls to providers that were given up. The output is written by then.
process.stdout.write('', () => process.exit())
