/**
 * `npm run reconcile -- [--dry-run]`: what the billing provider's own list would change, or does. With the variables of the
 * worker it asks for those; without them it asks for the stack that runs on the data folder.
 */
import { spawn } from 'node:child_process'
import { readStackConfig } from '../platform/config/stack.ts'
import { readKeptSecrets } from '../platform/embedded/secrets.ts'
import { billingUnlessSaid, environmentOf, missingSecrets } from './environments.ts'
import { readRunning } from './kept-files.ts'
import { nodeArguments } from './programs.ts'

try {
  const stack = readStackConfig()
  const running = await readRunning(stack.dataDir)
  if (!stack.databaseUrl && !running)
    throw new Error(
      `Nothing is running on ${stack.dataDir}. Start it first (npm start), or set DATABASE_URL and the rest`,
    )
  const found = running && {
    ...missingSecrets(stack, await readKeptSecrets(stack.dataDir)),
    ...billingUnlessSaid(stack),
    ...running.servers,
  }
  const args = [...nodeArguments('activities/jobs/reconcile.ts'), ...process.argv.slice(2)]
  const program = spawn(process.execPath, args, { env: environmentOf(stack, found ?? {}), stdio: 'inherit' })
  program.on('exit', (code) => {
    process.exitCode = code ?? 1
  })
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
