/**
 * The development server of the Temporal CLI, which runs beside the service. It stores its data in a file or in memory.
 */
import { mkdir, realpath } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, isGrpcServiceError } from '@temporalio/client'
import type { Logger } from '../log.ts'
import { endProcess, listProcesses, type Signals } from '../processes.ts'
import { searchAttributes } from '../temporal.ts'
import { findFreePort } from './ports.ts'
import { type OnSpawn, ServerProcess } from './server-process.ts'

const readyMillisMax = 60_000

/**
 * The store of the development server is one SQLite connection, which can stay interrupted until the server is started
 * again: each call is then answered with `interrupted (9)`. No process ends, so no supervisor notices.
 */
const defaultWatch: WatchTimes = { everyMillis: 5_000, replyMillisMax: 5_000, failingMillisMax: 30_000 }

interface WatchTimes {
  readonly everyMillis: number
  readonly replyMillisMax: number
  /** For how long the server may answer with errors only. */
  readonly failingMillisMax: number
}

const shutdown: Signals = [
  ['SIGTERM', 8000],
  ['SIGKILL', 2000],
]

/** Four times faster than the default pragmas, and still safe when the process is killed. */
const fileStoreArgs = (file: string) => [
  '--db-filename',
  file,
  '--sqlite-pragma',
  'journal_mode=wal',
  '--sqlite-pragma',
  'synchronous=1',
]

export interface EmbeddedTemporal {
  /** `host:port` of the gRPC frontend. */
  address: string
  /** Null without a UI. */
  uiUrl: string | null
  pid: number
  /** Resolves when the server has ended for any reason, with the exit code or the signal as text. */
  exited: Promise<string>
  stop(): Promise<void>
}

export interface EmbeddedTemporalOptions {
  /** The Temporal CLI. */
  executable: string
  /** The folder of the store and the log. Null: a store in memory and no log. */
  dir: string | null
  /** Called after a leftover server has released its port. The default is any free port. */
  port?: () => Promise<number>
  /** Undefined: no web UI. */
  uiPort?: () => Promise<number>
  onSpawn?: OnSpawn
  namespace?: string
  /** How the running server is checked. */
  watch?: WatchTimes
  log: Logger
}

/**
 * Starts the server and waits until the namespace and its search attributes exist. Rejects after 60 s. Kills the server
 * when it has answered with errors only for half a minute, so that its supervisor starts it again.
 */
export async function startEmbeddedTemporal(options: EmbeddedTemporalOptions): Promise<EmbeddedTemporal> {
  const { executable, namespace = 'default', log } = options
  if (options.dir !== null) await mkdir(options.dir, { recursive: true })
  const dir = options.dir === null ? null : await realpath(options.dir)
  if (dir !== null) await endLeftovers(join(dir, 'temporal.db'), log)
  const port = await (options.port ?? findFreePort)()
  const uiPort = await options.uiPort?.()
  const args = [
    'server',
    'start-dev',
    '--ip',
    '127.0.0.1',
    '--port',
    String(port),
    '--log-level',
    'error',
    '--namespace',
    namespace,
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort)]),
    ...searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
    ...(dir === null ? [] : fileStoreArgs(join(dir, 'temporal.db'))),
  ]
  const server = await ServerProcess.start({
    executable,
    args,
    // Nothing is inherited: the CLI configuration in the caller's home and TEMPORAL_* variables refer to other servers.
    env: { HOME: dir ?? tmpdir() },
    logFile: dir === null ? null : join(dir, 'temporal.log'),
    onSpawn: options.onSpawn,
  })
  const address = `127.0.0.1:${port}`
  try {
    await waitUntilReady(server, port, namespace)
  } catch (error) {
    await server.end(shutdown)
    throw error
  }
  log.debug({ address, pid: server.pid }, 'temporal is ready')
  endWhenFailing(server, { address, namespace, watch: options.watch ?? defaultWatch, log }).catch((error: unknown) =>
    log.error({ err: error }, 'the embedded Temporal is no longer watched'),
  )
  return {
    address,
    uiUrl: uiPort === undefined ? null : `http://localhost:${uiPort}`,
    pid: server.pid,
    exited: server.exited,
    stop: () => server.end(shutdown),
  }
}

/** Two servers with one store would overwrite each other's data. */
async function endLeftovers(file: string, log: Logger): Promise<void> {
  for (const leftover of await listProcesses(
    (command) => command.includes(' start-dev ') && command.includes(` ${file} `),
  )) {
    if (await endProcess(leftover, shutdown))
      log.warn({ leftover: leftover.pid }, 'ended a Temporal server that a killed start had left running')
  }
}

async function waitUntilReady(server: ServerProcess, port: number, namespace: string): Promise<void> {
  const deadline = Date.now() + readyMillisMax
  let last: unknown
  while (Date.now() < deadline) {
    if (!server.isRunning) throw new Error(`Temporal ${await server.exited}:\n${server.readLastLines()}`)
    try {
      if ((await isListening(port)) && (await hasNamespace(`127.0.0.1:${port}`, namespace))) return
    } catch (error) {
      last = error
    }
    await sleep(50)
  }
  throw new Error(`Temporal is not ready after ${readyMillisMax / 1000} s: ${(last as Error | undefined)?.message}`)
}

/** Checked before gRPC is used, since a gRPC client waits for a second after a refused connection. */
const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    const settle = (listening: boolean) => {
      socket.destroy()
      resolve(listening)
    }
    socket.once('connect', () => settle(true)).once('error', () => settle(false))
  })

/** Whether the namespace has its search attributes, which are created after the namespace itself. */
async function hasNamespace(address: string, namespace: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 1000 })
  try {
    await connection.workflowService.describeNamespace({ namespace })
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    return searchAttributes.every((name) => Object.hasOwn(customAttributes, name))
  } finally {
    await connection.close()
  }
}

const grpcDeadlineExceeded = 4

interface Watched {
  readonly address: string
  readonly namespace: string
  readonly watch: WatchTimes
  readonly log: Logger
}

/** A server that does not answer is left alone: it may be paused, or slow. Its store is safe when it is killed. */
async function endWhenFailing(server: ServerProcess, { address, namespace, watch, log }: Watched): Promise<void> {
  // Without the retries that are the default.
  const connection = Connection.lazy({ address, interceptors: [] })
  let failingSince: number | undefined
  while (server.isRunning) {
    const reply = await describe(connection, namespace, watch.replyMillisMax)
    if (reply === 'answered') failingSince = undefined
    if (reply instanceof Error) failingSince ??= Date.now()
    if (failingSince !== undefined && Date.now() - failingSince > watch.failingMillisMax) {
      log.error({ err: reply }, 'the embedded Temporal answers with errors only and is killed')
      await server.end([['SIGKILL', 2000]])
    }
    await Promise.race([server.exited, sleep(watch.everyMillis, undefined, { ref: false })])
  }
  await connection.close()
}

/** @returns the error that the server answered with. */
async function describe(
  connection: Connection,
  namespace: string,
  replyMillisMax: number,
): Promise<'answered' | 'unanswered' | Error> {
  try {
    const call = () => connection.workflowService.describeNamespace({ namespace })
    await connection.withDeadline(Date.now() + replyMillisMax, call)
    return 'answered'
  } catch (error) {
    return isGrpcServiceError(error) && error.code !== grpcDeadlineExceeded ? error : 'unanswered'
  }
}
