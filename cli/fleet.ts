/** `npm run fleet -- <command>`: shows, compares, checks and drains the regions and their instances. */
import { parseFleetArguments, UsageError, usageExitCode } from '../platform/fleet-arguments.ts'
import { runWithWorkerEnvironment } from './worker-environment.ts'

const words = process.argv.slice(2)
try {
  const command = parseFleetArguments(words)
  if (command.name === 'help') process.stdout.write(command.text)
  else process.exitCode = await runWithWorkerEnvironment('activities/fleet/fleet.ts', words)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = error instanceof UsageError ? usageExitCode : 1
}
