/** The Temporal CLI's development server beside the service, with a file store or in memory. */
import { mkdir, realpath } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import type { Logger } from '../log.ts'
import { searchAttributes } from '../temporal.ts'
import { freePort } from './ports.ts'
import { endProcess, listProcesses, type ProcessEntry, type Signals } from './processes.ts'
import { ServerProcess, type Spawned } from './server-process.ts'

const readyMillisMax = 60_000

const shutdown: Signals = [
  ['SIGTERM', 8000],
  ['SIGKILL', 2000],
]

/** Four times faster than the store as it comes, and still safe against a killed process. */
const fileStore = (file: string) => [
  ...['--db-filename', file],
  ...['--sqlite-pragma', 'journal_mode=wal'],
  ...['--sqlite-pragma', 'synchronous=1'],
]

export interface EmbeddedTemporal {
  /** host:port of its gRPC frontend. */
  address: string
  /** Null without a UI. */
  uiUrl: string | null
  pid: number
  /** Resolves when the server has ended, asked for or not, with what is known about it. */
  exited: Promise<string>
  stop(): Promise<void>
}

export interface EmbeddedTemporalOptions {
  /** The Temporal CLI. */
  executable: string
  /** The folder of its store and log; null keeps everything in memory and no log. */
  dir: string | null
  /** Asked once a server that was left over has freed its port. Any free one when left out. */
  port?: () => Promise<number>
  /** Left out: no web UI. */
  uiPort?: () => Promise<number>
  spawned?: Spawned
  namespace?: string
  log: Logger
}

/** Starts it and waits until it serves the namespace with its search attributes. Rejects after 60 s. */
export async function startEmbeddedTemporal(options: EmbeddedTemporalOptions): Promise<EmbeddedTemporal> {
  const { executable, namespace = 'default', log } = options
  if (options.dir !== null) await mkdir(options.dir, { recursive: true })
  const dir = options.dir === null ? null : await realpath(options.dir)
  if (dir !== null) await endLeftovers(join(dir, 'temporal.db'), log)
  const port = await (options.port ?? freePort)()
  const uiPort = await options.uiPort?.()
  const args = [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--log-level', 'error'],
    ...['--namespace', namespace],
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort)]),
    ...searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
    ...(dir === null ? [] : fileStore(join(dir, 'temporal.db'))),
  ]
  const server = await ServerProcess.start({
    executable,
    args,
    // A home of its own: the caller's CLI configuration and TEMPORAL_* variables point at other servers.
    env: { HOME: dir ?? tmpdir() },
    logFile: dir === null ? null : join(dir, 'temporal.log'),
    spawned: options.spawned,
  })
  const address = `127.0.0.1:${port}`
  try {
    await untilServing(server, port, namespace)
  } catch (error) {
    await server.end(shutdown)
    throw error
  }
  log.debug({ address, pid: server.pid }, 'temporal is ready')
  return {
    address,
    uiUrl: uiPort === undefined ? null : `http://localhost:${uiPort}`,
    pid: server.pid,
    exited: server.exited,
    stop: () => server.end(shutdown),
  }
}

/** Two servers on one store would overwrite each other's work. */
async function endLeftovers(file: string, log: Logger): Promise<void> {
  const usesFile = ({ command }: ProcessEntry) => command.includes(` start-dev `) && command.includes(` ${file} `)
  for (const leftover of (await listProcesses()).filter(usesFile)) {
    await endProcess(leftover.pid, usesFile, shutdown)
    log.warn({ leftover: leftover.pid }, 'ended a Temporal server that a killed start had left behind')
  }
}

async function untilServing(server: ServerProcess, port: number, namespace: string): Promise<void> {
  const deadline = Date.now() + readyMillisMax
  let last: unknown
  while (Date.now() < deadline) {
    if (!server.running) throw new Error(`Temporal ${await server.exited}:\n${server.lastWords()}`)
    try {
      if ((await isListening(port)) && (await serves(`127.0.0.1:${port}`, namespace))) return
    } catch (error) {
      last = error
    }
    await sleep(50)
  }
  throw new Error(`Temporal is not ready after ${readyMillisMax / 1000} s: ${(last as Error | undefined)?.message}`)
}

/** Asked before gRPC is: its client waits a whole second after a refused connection. */
const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    const answer = (listening: boolean) => {
      socket.destroy()
      resolve(listening)
    }
    socket.once('connect', () => answer(true)).once('error', () => answer(false))
  })

/** The namespace comes up before its search attributes do: both must be there. */
async function serves(address: string, namespace: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 1000 })
  try {
    await connection.workflowService.describeNamespace({ namespace })
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    return searchAttributes.every((name) => Object.hasOwn(customAttributes, name))
  } finally {
    await connection.close()
  }
}
