/**
 * `npm run reconcile -- [--dry-run]`: compares all subscriptions with the billing provider's list, and applies the differences.
 * Uses the variables of the worker where they are set, and otherwise the stack that runs in the data folder.
 */
import { spawn } from 'node:child_process'
import { readStackConfig } from '../platform/config/stack.ts'
import { readStoredSecrets } from '../platform/embedded/secrets.ts'
import { defaultBillingProvider, environmentWith, generatedSecrets } from './program-environment.ts'
import { nodeArguments } from './service-programs.ts'
import { readRunningStack } from './stack-state.ts'

try {
  const stack = readStackConfig()
  const running = await readRunningStack(stack.dataDir)
  if (!stack.databaseUrl && !running)
    throw new Error(
      `No stack is running in ${stack.dataDir}. Start it first (npm start), or set DATABASE_URL and the other variables of the worker.`,
    )
  const overrides = running && {
    ...generatedSecrets(stack, await readStoredSecrets(stack.dataDir)),
    ...defaultBillingProvider(stack),
    ...running.servers,
  }
  const args = [...nodeArguments('activities/jobs/reconcile.ts'), ...process.argv.slice(2)]
  const program = spawn(process.execPath, args, { env: environmentWith(stack, overrides ?? {}), stdio: 'inherit' })
  program.on('exit', (code) => {
    process.exitCode = code ?? 1
  })
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
