/** `npm start`: runs the whole service, with an embedded Postgres and Temporal unless others are configured. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readWorkerConfig } from '../platform/config/config.ts'
import { processEnvironment } from '../platform/config/environment.ts'
import type { StackConfig } from '../platform/config/stack.ts'
import { DataFolder } from '../platform/embedded/data-folder.ts'
import { explainFolderError } from '../platform/embedded/data-folder-errors.ts'
import { choosePortOnce } from '../platform/embedded/ports.ts'
import { startEmbeddedPostgres } from '../platform/embedded/postgres.ts'
import { provideSecrets, secretsFile } from '../platform/embedded/secrets.ts'
import { startEmbeddedTemporal } from '../platform/embedded/temporal.ts'
import { findTemporalCli } from '../platform/embedded/temporal-cli.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { endLocalRelays, listLocalRelays, relayFolderOf } from '../providers/relay/local-relays.ts'
import { drainSessions } from './live-sessions.ts'
import { formatWarning, showWarnings } from './log-warnings.ts'
import { type DemoAccount, ensureDemoAccount } from './plan-grants.ts'
import {
  defaultBillingProvider,
  defaultTrial,
  environmentWith,
  generatedSecrets,
  mailboxVariable,
  portVariables,
  siteEnvironment,
  type Variables,
} from './program-environment.ts'
import { Progress } from './progress.ts'
import { findVideoObstacle, formatReadyMessage } from './ready-message.ts'
import { chooseServicePorts, type ServicePorts } from './service-ports.ts'
import { runProgram, startProgram, waitUntilHealthy } from './service-programs.ts'
import { readState, removeRunningStack, updateState, writeRunningStack } from './stack-state.ts'
import { readCheckedStackConfig, refuseTakenPorts } from './start-checks.ts'
import { type RunningProgram, SupervisedProgram } from './supervised-program.ts'

/** One Ctrl-C arrives twice, from the terminal and through npm. A second signal after this time forces the end. */
const sameSignalMillis = 700
/** A program that crashes so many times right after its start ends the whole start. */
const crashesMax = 3

/** Where the other commands look for the stack without `SVC_DATA_DIR`, since npm runs them in the project's folder. */
const defaultDataDir = fileURLToPath(new URL('../.svc', import.meta.url))

const progress = new Progress()
const log = createLog('start', 'warn', { write: (line) => progress.print(formatWarning('start', line) ?? line) })
const life = new Lifecycle(log, 25_000)
const programs: SupervisedProgram[] = []
const stopping = new AbortController()
/** Set once the data folder is locked. */
let lockedDataDir: string | undefined

async function startStack(stack: StackConfig): Promise<void> {
  const folder = life.hold('data folder', await DataFolder.open(stack.dataDir), (opened) => opened.close())
  const dataDir = folder.path
  lockedDataDir = dataDir
  for (const name of folder.endedLeftovers) progress.print(`! Ended ${name}, which a killed start had left running`)
  await refuseTakenPorts(stack.environment, folder)
  const logs = join(dataDir, 'logs')
  await mkdir(logs, { recursive: true })

  const postgres = await providePostgres(stack, folder)
  const temporal = await provideTemporal(stack, folder)
  const isEmbedded = postgres.isEmbedded || temporal.isEmbedded
  const secrets = isEmbedded ? await provideSecrets(dataDir, stack.secrets) : undefined
  const ports = await chooseServicePorts(stack, dataDir, (text) => progress.print(text))
  const env = environmentWith(stack, {
    ...generatedSecrets(stack, secrets),
    ...(isEmbedded ? defaultBillingProvider(stack) : {}),
    ...(postgres.isEmbedded ? { ...mailboxVariable(stack), ...defaultTrial(stack) } : {}),
    ...postgres.variables,
    ...temporal.variables,
    ...portVariables(stack, ports),
    SVC_DATA_DIR: dataDir,
    // Without a load balancer there is nothing to wait for at the end.
    SVC_DRAIN_SECONDS: '0',
  })
  const config = readWorkerConfig(env)

  const onSpawn = recordIn(folder, 'migrate')
  const migrate = { file: 'db/migrate.ts', env, logFile: join(logs, 'migrate.log'), onSpawn }
  await progress.step(
    'Migrating the database',
    () => runProgram(migrate),
    () => 'The database is migrated',
  )

  life.hold(
    'relays',
    dataDir,
    withReport('local relays', () => endLocalRelays(dataDir)),
  )
  const localApi = `http://127.0.0.1:${ports.api}`
  await progress.step(
    'Starting the worker, the API and the site',
    () => startService(folder, logs, env, ports),
    () => 'The service is healthy',
  )

  const demo = postgres.isEmbedded && secrets && config.operatorPassword ? demoAccount(stack, secrets.demo) : undefined
  if (demo) await provideDemoAccount(dataDir, localApi, config.operatorPassword ?? '', demo)
  if (postgres.isEmbedded && config.operatorPassword) {
    const haveRelaysEnded = async () => (await listLocalRelays(relayFolderOf(dataDir))).length === 0
    const drain = () => drainSessions(localApi, config.operatorPassword ?? '', haveRelaysEnded)
    life.hold('sessions', drain, withReport('live sessions', drain))
  }
  life.hold('running.json', dataDir, removeRunningStack)
  const { apiUrl: api, siteUrl: site } = config
  const servers = { ...postgres.variables, ...temporal.variables }
  await writeRunningStack(dataDir, { pid: process.pid, api, site, temporalUi: config.temporal.uiUrl, servers })
  progress.print(`\nReady after ${progress.sinceStart}.`)
  progress.print(
    formatReadyMessage({
      api,
      site,
      mailbox: config.mail.mailbox,
      temporalUi: config.temporal.uiUrl,
      postgres: postgres.description,
      operatorPassword: stack.secrets.SVC_OPERATOR_PASSWORD ? 'as configured' : `in ${secretsFile(dataDir)}`,
      logs: `${logs}/ (api.log, worker.log, site.log; warnings appear here too)`,
      demo,
      dataDir: dataDir === defaultDataDir ? undefined : dataDir,
      videoObstacle: findVideoObstacle(config.relay.engine, stack.searchPath, process.platform),
    }),
  )
}

interface Server {
  isEmbedded: boolean
  variables: Variables
  /** For the user. */
  description: string
}

async function providePostgres(stack: StackConfig, folder: DataFolder): Promise<Server> {
  if (stack.databaseUrl) return { isEmbedded: false, variables: {}, description: 'as configured by DATABASE_URL' }
  const port = choosePortOnce({
    server: 'the embedded Postgres',
    variable: 'SVC_EMBEDDED_PG_PORT',
    explicit: stack.embedded.postgresPort,
    preferred: [],
  })
  const dir = join(folder.path, 'postgres')
  const onSpawn = recordIn(folder, 'postgres')
  const { url, port: chosen } = await progress.step(
    'Starting Postgres',
    () => supervise('postgres', () => startEmbeddedPostgres({ dir, port, onSpawn, log })),
    (postgres) => `Postgres is ready on 127.0.0.1:${postgres.port}`,
  )
  const description = `127.0.0.1:${chosen}, database svc, user postgres, password in ${join(dir, 'password')}`
  return { isEmbedded: true, variables: { DATABASE_URL: url }, description }
}

async function provideTemporal(stack: StackConfig, folder: DataFolder): Promise<Server> {
  if (stack.temporalAddress) return { isEmbedded: false, variables: {}, description: stack.temporalAddress }
  const { searchPath, cacheDir, temporalNamespace: namespace, embedded } = stack
  const search = { explicit: embedded.temporalCli, searchPath, dataDir: folder.path, cacheDir }
  const executable = await progress.step(
    'Looking for the Temporal CLI',
    (update) => findTemporalCli({ ...search, progress: update }),
    (path) => `Temporal CLI: ${path}`,
  )
  const port = choosePortOnce({
    server: 'the embedded Temporal',
    variable: 'SVC_EMBEDDED_TEMPORAL_PORT',
    explicit: embedded.temporalPort,
    preferred: [7233],
  })
  const uiPort = choosePortOnce({
    server: 'the web UI of the embedded Temporal',
    variable: 'SVC_EMBEDDED_TEMPORAL_UI_PORT',
    explicit: embedded.temporalUiPort,
    preferred: [8233],
  })
  const dir = join(folder.path, 'temporal')
  const options = { executable, dir, port, uiPort, namespace, log, onSpawn: recordIn(folder, 'temporal') }
  const { address, uiUrl } = await progress.step(
    'Starting Temporal',
    () => supervise('temporal', () => startEmbeddedTemporal(options)),
    (temporal) => `Temporal is ready on ${temporal.address}`,
  )
  const variables = { TEMPORAL_ADDRESS: address, SVC_TEMPORAL_UI_URL: stack.temporalUiUrl ?? uiUrl ?? '' }
  return { isEmbedded: true, variables, description: address }
}

/** Starts in the reverse order of the stop: requests in flight may need the worker, and those of the site the api. */
async function startService(folder: DataFolder, logs: string, env: Variables, ports: ServicePorts): Promise<void> {
  const api = `http://127.0.0.1:${ports.api}`
  const definitions = [
    { name: 'worker', file: 'activities/worker/worker.ts', env },
    { name: 'api', file: 'api/server.ts', env },
    { name: 'site', file: 'web/server.ts', env: siteEnvironment(env, api) },
  ]
  let readLastLines = () => ''
  for (const { name, ...program } of definitions) {
    const logFile = join(logs, `${name}.log`)
    const stopWarnings = await showWarnings(name, logFile, (text) => progress.print(text))
    life.hold(`${name} log`, stopWarnings, (stop) => stop())
    await supervise(name, async () => {
      const running = await startProgram({ ...program, logFile, onSpawn: recordIn(folder, name) })
      void running.exited.then(() => {
        readLastLines = running.readLastLines
      })
      return running
    })
  }
  const services = programs.slice(-definitions.length)
  const findCrashLoop = () => {
    const crashed = services.find(({ failures }) => failures >= crashesMax)
    return crashed && `${crashed.name} ${crashed.lastEnd}, ${crashed.failures} times in a row:\n${readLastLines()}`
  }
  await waitUntilHealthy(`${api}/health`, findCrashLoop)
  await waitUntilHealthy(`http://127.0.0.1:${ports.site}/livez`, findCrashLoop)
}

async function provideDemoAccount(
  dataDir: string,
  api: string,
  operatorPassword: string,
  demo: DemoAccount,
): Promise<void> {
  const { demoAccountReady = false } = await readState(dataDir)
  const ensure = () => ensureDemoAccount(api, operatorPassword, demo, demoAccountReady)
  await progress.step('Checking the demo account', ensure, () => `Demo account: ${demo.email}`)
  if (!demoAccountReady) await updateState(dataDir, { demoAccountReady: true })
}

const demoAccount = ({ demo }: StackConfig, generated: DemoAccount): DemoAccount => ({
  email: demo.email ?? generated.email,
  password: demo.password ?? generated.password,
})

/** Records the process for the next start. The program runs also when that fails, as on a full disk. */
const recordIn = (folder: DataFolder, name: string) => (pid: number) =>
  folder
    .recordProcess(name, pid)
    .catch((error: Error) => progress.print(`! ${name} (process ${pid}) could not be recorded: ${error.message}`))

/** Starts a program and keeps it running. Registered before the start, so that a stop during the start ends it too. */
async function supervise<T extends RunningProgram>(name: string, start: () => Promise<T>): Promise<T> {
  stopping.signal.throwIfAborted()
  const program = new SupervisedProgram<T>({ name, start, notify: (text) => progress.print(`! ${text}`) })
  programs.push(program as unknown as SupervisedProgram)
  life.hold(
    name,
    program,
    withReport(name, () => program.stop()),
  )
  return program.start()
}

/** Prints that something was stopped, unless `stop` resolves with 0. */
const withReport = (name: string, stop: () => Promise<unknown>) => async () => {
  const startedAt = performance.now()
  const result = await stop()
  if (result !== 0) progress.print(`✔ ${name} stopped (${Math.round(performance.now() - startedAt)} ms)`)
}

function stopOnSignals(): void {
  let firstAt: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (firstAt !== undefined && Date.now() - firstAt > sameSignalMillis) void killAll()
      firstAt ??= Date.now()
      stopping.abort()
    })
  }
  // The reader of the output may end before this process does.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

/** npm sends a signal only to the shell between npm and this process, and the shell ends without passing it on. */
function stopWithNpm({ environment }: StackConfig): void {
  if (environment.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid !== shell) stopping.abort()
  }, 250)
  timer.unref()
}

/** Kills everything. The next start removes the lock. */
async function killAll(): Promise<void> {
  progress.print('Killing all processes.')
  const relays = lockedDataDir ? endLocalRelays(lockedDataDir, [['SIGKILL', 1000]]) : undefined
  const all = Promise.allSettled([relays, ...programs.map((program) => program.kill())])
  await Promise.race([all, new Promise((resolve) => setTimeout(resolve, 2000))])
  process.exit(130)
}

const untilStopping = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))
stopOnSignals()
try {
  const stack = await readCheckedStackConfig(processEnvironment())
  stopWithNpm(stack)
  await Promise.race([startStack(stack), untilStopping])
  await untilStopping
  progress.end()
  progress.print('\nStopping …')
} catch (error) {
  progress.end()
  const { message } = lockedDataDir ? await explainFolderError(error, lockedDataDir) : (error as Error)
  console.error(`\n✖ ${message}`)
  process.exitCode = 1
  stopping.abort()
}
await life.stop()
process.exit()
