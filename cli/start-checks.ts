/**
 * What `npm start` checks before it boots, builds or downloads anything: the variables of all programs, and the fixed
 * ports.
 */
import { access, constants, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findHostProblems } from '../platform/bindable-host.ts'
import { readWorkerConfig } from '../platform/config/config.ts'
import { ConfigError, type Environment } from '../platform/config/environment.ts'
import { readSiteConfig } from '../platform/config/site.ts'
import { readFixedPorts, readStackConfig, type StackConfig } from '../platform/config/stack.ts'
import type { DataFolder } from '../platform/embedded/data-folder.ts'
import { describeTakenPort, type FixedPort, isFreePort } from '../platform/embedded/ports.ts'
import { generateSecrets } from '../platform/embedded/secrets.ts'
import { listProcesses } from '../platform/processes.ts'
import { definedVariables, isSet, readCollecting, siteEnvironment, type Variables } from './program-environment.ts'

/** How long a program of a killed start may take to release its port. */
const releaseMillisMax = 10_000

/** Throws `ConfigError` with all problems of all programs, and with the fixed ports that are taken. */
export async function readCheckedStackConfig(env: Environment): Promise<StackConfig> {
  const configProblems = findConfigProblems(env)
  const hostProblems = configProblems.length > 0 ? [] : await findHostProblems(plannedWorkerConfig(env).regions)
  const problems = [...configProblems, ...hostProblems, ...(await findProgramProblems(env))]
  if (problems.length > 0) throw new ConfigError([...problems, ...(await findTakenPorts(readFixedPorts(env)))])
  return readStackConfig(env)
}

function findConfigProblems(env: Environment): string[] {
  const planned = plannedEnvironment(env)
  const problems = new Set<string>()
  readCollecting(problems, () => readStackConfig(env))
  readCollecting(problems, () => plannedWorkerConfig(env))
  readCollecting(problems, () => readSiteConfig(siteEnvironment(planned, '')))
  return [...new Set([...problems, ...findEqualPorts(env)])]
}

/** The Temporal CLI that a variable names. Without the variable the start looks for one, or installs it. */
async function findProgramProblems(env: Environment): Promise<string[]> {
  const path = env.SVC_TEMPORAL_CLI
  // A name without a folder is looked for on the PATH.
  if (!path?.includes('/') || isSet(env, 'TEMPORAL_ADDRESS')) return []
  const isProgram = await access(path, constants.X_OK).then(
    async () => (await stat(path)).isFile(),
    () => false,
  )
  return isProgram ? [] : [`SVC_TEMPORAL_CLI is ${path}, which is not a program: correct it, or unset it to use any`]
}

const plannedWorkerConfig = (env: Environment) => readWorkerConfig(plannedEnvironment(env))

/** The environment that the programs will have, with values of the same form for those that are known only later. */
function plannedEnvironment(env: Environment): Variables {
  const isEmbedded = !isSet(env, 'DATABASE_URL') || !isSet(env, 'TEMPORAL_ADDRESS')
  const { demo: _, ...secrets } = generateSecrets()
  const later = {
    DATABASE_URL: 'postgres://127.0.0.1/svc',
    TEMPORAL_ADDRESS: '127.0.0.1:7233',
    ...(isEmbedded ? { ...secrets, SVC_BILLING_PROVIDER: 'sandbox' } : {}),
  }
  const unset = Object.entries(later).filter(([name]) => !isSet(env, name))
  return definedVariables({ ...env, ...Object.fromEntries(unset) })
}

function findEqualPorts(env: Environment): string[] {
  const ports = readFixedPorts(env)
  return ports.flatMap(({ variable, port }, index) =>
    ports
      .slice(index + 1)
      .filter((other) => other.port === port)
      .map((other) => `${variable} and ${other.variable} are both ${port}: each server needs a port of its own`),
  )
}

/** @returns a line for each fixed port that another program listens on. */
async function findTakenPorts(ports: readonly FixedPort[]): Promise<string[]> {
  const lines: string[] = []
  // One after the other, since two variables may name the same port.
  for (const fixed of ports) if (!(await isFreePort(fixed.port))) lines.push(describeTakenPort(fixed))
  return lines
}

/**
 * Throws `ConfigError` with all fixed ports that are taken. Waits for the programs that a killed start had left
 * running.
 */
export async function refuseTakenPorts(env: Environment, folder: DataFolder): Promise<void> {
  const hasServers = await hasUnrecordedServers(folder)
  // The start of an embedded server ends a leftover one, and checks its port then.
  const ports = readFixedPorts(env).filter(({ variable }) => !hasServers || !variable.startsWith('SVC_EMBEDDED_'))
  const hasLeftovers = hasServers || folder.endedLeftovers.length > 0
  for (const deadline = Date.now() + (hasLeftovers ? releaseMillisMax : 0); ; await sleep(200)) {
    const taken = await findTakenPorts(ports)
    if (taken.length === 0) return
    if (Date.now() >= deadline) throw new ConfigError(taken)
  }
}

/** Whether a server of this folder runs that was killed before a record named it. */
async function hasUnrecordedServers({ path }: DataFolder): Promise<boolean> {
  const cluster = await realpath(join(path, 'postgres', 'data')).catch(() => path)
  const servers = await listProcesses((command) =>
    [` -D ${cluster}`, ` -D ${path}/`, ` --db-filename ${path}/`].some((argument) => command.includes(argument)),
  )
  return servers.length > 0
}
