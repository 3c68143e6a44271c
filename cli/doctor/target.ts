/**
 * What the doctor examines: the stack that runs in the data folder, or else the service that the environment
 * configures.
 */
import { type Config, readDatabaseUrl, readTemporalConfig, readWorkerConfig } from '../../platform/config/config.ts'
import type { Environment } from '../../platform/config/environment.ts'
import { readSiteConfig } from '../../platform/config/site.ts'
import { readStackConfig, type StackConfig } from '../../platform/config/stack.ts'
import type { TemporalConfig } from '../../platform/temporal.ts'
import { isSet, mailboxVariable, readCollecting, siteEnvironment, type Variables } from '../program-environment.ts'
import { type RunningStack, readRunningStack, readState } from '../stack-state.ts'
import { readWorkerEnvironment } from '../worker-environment.ts'

export interface Target {
  readonly stack: StackConfig
  /** The `npm start` of the data folder; undefined when none runs, and the environment names the servers. */
  readonly running: RunningStack | undefined
  /** The variables of the api and the worker; empty when there is neither a stack nor a `DATABASE_URL`. */
  readonly environment: Environment
  /** Undefined when a variable of the api or the worker is missing or wrong. */
  readonly config: Config | undefined
  /** Undefined when their own variables are missing or wrong. */
  readonly databaseUrl: string | undefined
  readonly temporal: TemporalConfig | undefined
  /** The addresses at which this machine reaches the api and the site. */
  readonly apiUrl: string | undefined
  readonly siteUrl: string | undefined
  /** What is wrong with the configuration of the programs, one line each. */
  readonly configProblems: readonly string[]
}

/** @param api the address of the API, where it is another one. */
export async function readTarget(env: Environment, api?: string): Promise<Target> {
  const problems = new Set<string>()
  const read = <Value>(reader: () => Value) => readCollecting(problems, reader)
  // With a wrong variable the stack of the data folder is examined all the same.
  const stack = read(() => readStackConfig(env)) ?? readStackConfig(localVariables(env))
  const running = await readRunningStack(stack.dataDir)
  const ports = running ? await readState(stack.dataDir) : {}
  const hasDatabase = isSet(env, 'DATABASE_URL')
  const environment = running ? await readStackEnvironment(stack, problems) : hasDatabase ? env : {}
  if (!running && !hasDatabase)
    problems.add(
      `no stack is running in ${stack.dataDir}, and DATABASE_URL is not set: run npm start, or set the variables of the service`,
    )
  const isConfigured = Object.keys(environment).length > 0
  const readIfConfigured = <Value>(reader: () => Value) => (isConfigured ? read(reader) : undefined)
  const config = readIfConfigured(() => readWorkerConfig(environment))
  const site = readIfConfigured(() => readSiteConfig(siteEnvironment(environment, config?.apiUrl ?? '')))
  return {
    stack,
    running,
    environment,
    config,
    databaseUrl: readIfConfigured(() => readDatabaseUrl(environment)),
    temporal: readIfConfigured(() => readTemporalConfig(environment)),
    apiUrl: api ?? localUrl(ports.apiPort) ?? config?.apiUrl,
    siteUrl: localUrl(ports.sitePort) ?? site?.siteUrl,
    configProblems: [...problems],
  }
}

/** Empty when the secrets of the data folder cannot be read. */
async function readStackEnvironment(stack: StackConfig, problems: Set<string>): Promise<Variables> {
  const { apiPort, sitePort } = await readState(stack.dataDir)
  try {
    return {
      ...mailboxVariable(stack),
      ...(apiPort === undefined ? {} : { PORT: String(apiPort) }),
      ...(sitePort === undefined ? {} : { SVC_SITE_PORT: String(sitePort) }),
      ...(await readWorkerEnvironment(stack)),
    }
  } catch (error) {
    problems.add((error as Error).message)
    return {}
  }
}

const localUrl = (port: number | undefined): string | undefined =>
  port === undefined ? undefined : `http://127.0.0.1:${port}`

/** The variables that find the data folder and the programs of this machine. */
const localVariables = ({ SVC_DATA_DIR, HOME, PATH, XDG_CACHE_HOME }: Environment): Environment => ({
  SVC_DATA_DIR,
  HOME,
  PATH,
  XDG_CACHE_HOME,
})
