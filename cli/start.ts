/** `npm start`: the whole service with one command, on an embedded Postgres and Temporal unless others are named. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readConfig } from '../platform/config/config.ts'
import { readStackConfig, type StackConfig } from '../platform/config/stack.ts'
import { DataFolder } from '../platform/embedded/data-folder.ts'
import { explainFolderProblem } from '../platform/embedded/folder-problems.ts'
import { choosePortOnce } from '../platform/embedded/ports.ts'
import { startEmbeddedPostgres } from '../platform/embedded/postgres.ts'
import { endLocalRelays, localRelaysAreGone } from '../platform/embedded/processes.ts'
import { provideSecrets, secretsFile } from '../platform/embedded/secrets.ts'
import { startEmbeddedTemporal } from '../platform/embedded/temporal.ts'
import { findTemporalCli } from '../platform/embedded/temporal-cli.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { type DemoAccount, ensureDemoAccount } from './demo-account.ts'
import {
  billingUnlessSaid,
  environmentOf,
  missingSecrets,
  portsOf,
  siteEnvironmentOf,
  type Variables,
} from './environments.ts'
import { disconnectSessions } from './farewell.ts'
import { untilHealthy } from './health.ts'
import { Kept, type Running } from './kept.ts'
import { readState, remember, removeRunning, writeRunning } from './kept-files.ts'
import { readableLine, watchLog } from './log-watch.ts'
import { runProgram, startProgram } from './programs.ts'
import { Progress } from './progress.ts'
import { readyText } from './ready.ts'
import { chooseServicePorts, type ServicePorts } from './service-ports.ts'

/** Ctrl-C reaches us from the terminal and once more through npm: what follows that soon is the same wish. */
const sameWishMillis = 700
/** Three crashes right after their start mean that it won't get better by itself. */
const crashesMax = 3

const progress = new Progress()
const log = createLog('start', 'warn', { write: (line) => progress.note(readableLine('start', line) ?? line) })
const life = new Lifecycle(log, 25_000)
const kept: Kept[] = []
const asked = new AbortController()
let lockedFolder: string | undefined

async function bringUp(stack: StackConfig): Promise<void> {
  const folder = life.hold('data folder', await DataFolder.lock(stack.dataDir), (held) => held.release())
  const dataDir = folder.path
  lockedFolder = dataDir
  for (const name of folder.ended) progress.note(`! ${name} of a killed start was still running; ended it`)
  const logs = join(dataDir, 'logs')
  await mkdir(logs, { recursive: true })

  const postgres = await providePostgres(stack, folder)
  const temporal = await provideTemporal(stack, folder)
  const isEmbedded = postgres.isEmbedded || temporal.isEmbedded
  const secrets = isEmbedded ? await provideSecrets(dataDir, stack.secrets) : undefined
  const ports = await chooseServicePorts(stack, dataDir, (text) => progress.note(text))
  const env = environmentOf(stack, {
    ...missingSecrets(stack, secrets),
    ...(isEmbedded ? billingUnlessSaid(stack) : {}),
    ...postgres.variables,
    ...temporal.variables,
    ...portsOf(stack, ports),
    SVC_DATA_DIR: dataDir,
    // No load balancer is in front of it, and Ctrl-C is to be quick.
    SVC_DRAIN_SECONDS: '0',
  })
  const config = readConfig(env)

  const spawned = recordingIn(folder, 'migrate')
  const migrate = { file: 'db/migrate.ts', env, logFile: join(logs, 'migrate.log'), spawned }
  await progress.step(
    'Bringing the database up to date',
    () => runProgram(migrate),
    () => 'The database is up to date',
  )

  life.hold(
    'relays',
    dataDir,
    stopping('local relays', () => endLocalRelays(dataDir)),
  )
  const local = `http://127.0.0.1:${ports.api}`
  await progress.step(
    'Starting the worker, the API and the site',
    () => startService(folder, logs, env, ports),
    () => 'The service is healthy',
  )

  const demo = postgres.isEmbedded && secrets && config.operatorPassword ? demoAccount(stack, secrets.demo) : undefined
  if (demo) await provideDemoAccount(dataDir, local, config.operatorPassword ?? '', demo)
  if (postgres.isEmbedded && config.operatorPassword) {
    const disconnect = () => disconnectSessions(local, config.operatorPassword ?? '', () => localRelaysAreGone(dataDir))
    life.hold('sessions', disconnect, stopping('live sessions', disconnect))
  }
  life.hold('running.json', dataDir, removeRunning)
  const { apiUrl: api, siteUrl: site } = config
  const servers = { ...postgres.variables, ...temporal.variables }
  await writeRunning(dataDir, { pid: process.pid, api, site, temporalUi: config.temporal.uiUrl, servers })
  progress.note(`\nReady after ${progress.sinceStart}.`)
  progress.note(
    readyText({
      api,
      site,
      temporalUi: config.temporal.uiUrl,
      postgres: postgres.shown,
      operatorPassword: stack.secrets.SVC_OPERATOR_PASSWORD ? 'as you set it' : `in ${secretsFile(dataDir)}`,
      logs: `${logs}/api.log, worker.log, site.log (JSON lines; warnings are shown here)`,
      demo,
    }),
  )
}

interface Provided {
  isEmbedded: boolean
  variables: Variables
  /** How it is named to a person. */
  shown: string
}

async function providePostgres(stack: StackConfig, folder: DataFolder): Promise<Provided> {
  if (stack.databaseUrl) return { isEmbedded: false, variables: {}, shown: 'the one of DATABASE_URL' }
  const port = choosePortOnce({
    what: 'the embedded Postgres',
    variable: 'SVC_EMBEDDED_PG_PORT',
    explicit: stack.embedded.postgresPort,
    preferred: [],
  })
  const dir = join(folder.path, 'postgres')
  const spawned = recordingIn(folder, 'postgres')
  const { url, port: chosen } = await progress.step(
    'Starting Postgres',
    () => keep('postgres', () => startEmbeddedPostgres({ dir, port, spawned, log })),
    (postgres) => `Postgres is ready on 127.0.0.1:${postgres.port}`,
  )
  const shown = `127.0.0.1:${chosen}, database svc, user postgres, password in ${join(dir, 'password')}`
  return { isEmbedded: true, variables: { DATABASE_URL: url }, shown }
}

async function provideTemporal(stack: StackConfig, folder: DataFolder): Promise<Provided> {
  if (stack.temporalAddress) return { isEmbedded: false, variables: {}, shown: stack.temporalAddress }
  const { searchPath, cacheDir, temporalNamespace: namespace, embedded } = stack
  const search = { explicit: embedded.temporalCli, searchPath, dataDir: folder.path, cacheDir }
  const executable = await progress.step(
    'Looking for the Temporal CLI',
    (say) => findTemporalCli({ ...search, progress: say }),
    (path) => `Temporal CLI: ${path}`,
  )
  const port = choosePortOnce({
    what: 'the embedded Temporal',
    variable: 'SVC_EMBEDDED_TEMPORAL_PORT',
    explicit: embedded.temporalPort,
    preferred: [7233],
  })
  const uiPort = choosePortOnce({
    what: 'the web UI of the embedded Temporal',
    variable: 'SVC_EMBEDDED_TEMPORAL_UI_PORT',
    explicit: embedded.temporalUiPort,
    preferred: [8233],
  })
  const dir = join(folder.path, 'temporal')
  const options = { executable, dir, port, uiPort, namespace, log, spawned: recordingIn(folder, 'temporal') }
  const { address, uiUrl } = await progress.step(
    'Starting Temporal',
    () => keep('temporal', () => startEmbeddedTemporal(options)),
    (temporal) => `Temporal is ready on ${temporal.address}`,
  )
  const variables = { TEMPORAL_ADDRESS: address, SVC_TEMPORAL_UI_URL: stack.temporalUiUrl ?? uiUrl ?? '' }
  return { isEmbedded: true, variables, shown: address }
}

/** What ends last is held first: requests in flight may still need the worker, and the site's the api. */
async function startService(folder: DataFolder, logs: string, env: Variables, ports: ServicePorts): Promise<void> {
  const api = `http://127.0.0.1:${ports.api}`
  const programs = [
    { name: 'worker', file: 'activities/worker/worker.ts', env },
    { name: 'api', file: 'api/server.ts', env },
    { name: 'site', file: 'web/server.ts', env: siteEnvironmentOf(env, api) },
  ]
  let lastWords = () => ''
  for (const { name, ...program } of programs) {
    const logFile = join(logs, `${name}.log`)
    const unwatch = await watchLog(name, logFile, (text) => progress.note(text))
    life.hold(`${name} log`, unwatch, (stop) => stop())
    await keep(name, async () => {
      const running = await startProgram({ ...program, logFile, spawned: recordingIn(folder, name) })
      void running.exited.then(() => {
        lastWords = running.lastWords
      })
      return running
    })
  }
  const services = kept.slice(-programs.length)
  const giveUp = () => {
    const broken = services.find((one) => one.failures >= crashesMax)
    return broken && `${broken.name} ${broken.lastEnd}, ${broken.failures} times in a row:\n${lastWords()}`
  }
  await untilHealthy(`${api}/health`, giveUp)
  await untilHealthy(`http://127.0.0.1:${ports.site}/livez`, giveUp)
}

async function provideDemoAccount(
  dataDir: string,
  api: string,
  operatorPassword: string,
  demo: DemoAccount,
): Promise<void> {
  const { demoAccountReady = false } = await readState(dataDir)
  const ensure = () => ensureDemoAccount(api, operatorPassword, demo, demoAccountReady)
  await progress.step('Making sure of the demo account', ensure, () => `Demo account: ${demo.email}`)
  if (!demoAccountReady) await remember(dataDir, { demoAccountReady: true })
}

const demoAccount = ({ demo }: StackConfig, made: DemoAccount): DemoAccount => ({
  email: demo.email ?? made.email,
  password: demo.password ?? made.password,
})

/** Writes down the process for the next start. Without a record, as on a full disk, it runs all the same. */
const recordingIn = (folder: DataFolder, name: string) => (pid: number) =>
  folder
    .record(name, pid)
    .catch((error: Error) => progress.note(`! ${name} (process ${pid}) could not be recorded: ${error.message}`))

/** Holds it before it is started, so that a stop in the middle of its start finds it too. */
async function keep<T extends Running>(name: string, start: () => Promise<T>): Promise<T> {
  asked.signal.throwIfAborted()
  const program = new Kept<T>({ name, start, notice: (text) => progress.note(`! ${text}`) })
  kept.push(program as unknown as Kept)
  life.hold(
    name,
    program,
    stopping(name, () => program.stop()),
  )
  return program.start()
}

const stopping = (name: string, stop: () => Promise<unknown>) => async () => {
  const began = performance.now()
  const outcome = await stop()
  if (outcome !== 0) progress.note(`✔ ${name} stopped (${Math.round(performance.now() - began)} ms)`)
}

function listenToSignals(): void {
  let firstAt: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (firstAt !== undefined && Date.now() - firstAt > sameWishMillis) void force()
      firstAt ??= Date.now()
      asked.abort()
    })
  }
  // Whoever read our output may be gone before us.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

/** npm passes a signal on to the shell between it and us, which dies of it without a word to us. */
function listenForTheEndOfNpm({ environment }: StackConfig): void {
  if (environment.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid !== shell) asked.abort()
  }, 250)
  timer.unref()
}

/** What is left of the locks the next start clears away. */
async function force(): Promise<void> {
  progress.note('Ending everything at once.')
  const relays = lockedFolder ? endLocalRelays(lockedFolder, [['SIGKILL', 1000]]) : undefined
  const all = Promise.allSettled([relays, ...kept.map((one) => one.kill())])
  await Promise.race([all, new Promise((resolve) => setTimeout(resolve, 2000))])
  process.exit(130)
}

const untilAsked = new Promise<void>((resolve) => asked.signal.addEventListener('abort', () => resolve()))
listenToSignals()
try {
  const stack = readStackConfig()
  listenForTheEndOfNpm(stack)
  await Promise.race([bringUp(stack), untilAsked])
  await untilAsked
  progress.end()
  progress.note('\nStopping …')
} catch (error) {
  progress.end()
  const explained = lockedFolder ? await explainFolderProblem(error, lockedFolder) : (error as Error)
  console.error(`\n✖ ${explained.message}`)
  process.exitCode = 1
  asked.abort()
}
await life.stop()
process.exit()
