/** Runs a program that needs the configuration of the worker. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readStackConfig, type StackConfig } from '../platform/config/stack.ts'
import { readStoredSecrets } from '../platform/embedded/secrets.ts'
import { nodeArguments } from '../platform/launcher.ts'
import { defaultBillingProvider, environmentWith, generatedSecrets, type Variables } from './program-environment.ts'
import { readRunningStack } from './stack-state.ts'
import { usageError } from './svc/exit-codes.ts'

/**
 * Uses the variables of the worker where they are set, and otherwise those of the stack that runs in the data folder.
 * @param file of the program, below the project's folder.
 * @returns the exit code of the program.
 */
export async function runWithWorkerEnvironment(file: string, args: readonly string[]): Promise<number> {
  const stack = readStackConfig()
  const env = await readWorkerEnvironment(stack)
  const program = spawn(process.execPath, [...nodeArguments(file), ...args], { env, stdio: 'inherit' })
  const [code] = (await once(program, 'exit')) as [number | null]
  return code ?? 1
}

/** The variables of the worker, with those of the stack that runs in the data folder. Rejects when there is neither. */
export async function readWorkerEnvironment(stack: StackConfig): Promise<Variables> {
  const running = await readRunningStack(stack.dataDir)
  if (!running) {
    if (stack.databaseUrl) return environmentWith(stack, {})
    throw usageError(
      `No stack is running in ${stack.dataDir}. Start it first (npm start), or set DATABASE_URL and the other variables of the worker.`,
    )
  }
  const isSet = (name: string) => Boolean(stack.environment[name] || stack.environment[`${name}_FILE`])
  const servers = Object.entries(running.servers).filter(([name]) => !isSet(name))
  return environmentWith(stack, {
    ...generatedSecrets(stack, await readStoredSecrets(stack.dataDir)),
    ...defaultBillingProvider(stack),
    ...Object.fromEntries(servers),
  })
}
