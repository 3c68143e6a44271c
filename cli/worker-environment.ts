/** The configuration of the worker, for commands that work without the API. */
import type { StackConfig } from '../platform/config/stack.ts'
import { readStoredSecrets } from '../platform/embedded/secrets.ts'
import {
  defaultBillingProvider,
  environmentWith,
  generatedSecrets,
  isSet,
  type Variables,
} from './program-environment.ts'
import { readRunningStack } from './stack-state.ts'
import { usageError } from './svc/exit-codes.ts'

/** The variables of the worker, with those of the stack that runs in the data folder. Rejects when there is neither. */
export async function readWorkerEnvironment(stack: StackConfig): Promise<Variables> {
  const running = await readRunningStack(stack.dataDir)
  if (!running) {
    if (stack.databaseUrl) return environmentWith(stack, {})
    throw usageError(
      `No stack is running in ${stack.dataDir}. Start it first (npm start), or set DATABASE_URL and the other variables of the worker.`,
    )
  }
  const servers = Object.entries(running.servers).filter(([name]) => !isSet(stack.environment, name))
  return environmentWith(stack, {
    ...generatedSecrets(stack, await readStoredSecrets(stack.dataDir)),
    ...defaultBillingProvider(stack),
    ...Object.fromEntries(servers),
  })
}
