/**
 * A Temporal server with its store in Postgres, as in production, unlike the embedded one. Needs `temporal-server` and
 * `temporal-sql-tool` on the PATH; see test/system/requirements.ts.
 */

import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Connection } from '@temporalio/client'
import { readStackConfig } from '../../platform/config/stack.ts'
import { ServerProcess } from '../../platform/embedded/server-process.ts'
import { findProgram } from '../../platform/find-program.ts'
import { findFreePort } from './ports.ts'

const readyMillisMax = 90_000
const services = ['frontend', 'history', 'matching', 'worker'] as const

export interface TemporalOnPostgres {
  /** Sends SIGKILL. */
  kill(): Promise<void>
}

/** The databases of its main store and of its list of workflows. */
export interface TemporalDatabases {
  readonly store: URL
  readonly visibility: URL
}

/** Creates the tables in two empty databases. */
export async function createTemporalSchema({ store, visibility }: TemporalDatabases): Promise<void> {
  const program = findProgram('temporal-sql-tool', readStackConfig().searchPath) ?? 'temporal-sql-tool'
  const run = (database: URL, ...command: string[]) =>
    promisify(execFile)(program, [
      '--plugin',
      'postgres12',
      '--endpoint',
      database.hostname,
      '--port',
      database.port,
      '--user',
      database.username,
      '--password',
      database.password,
      '--database',
      database.pathname.slice(1),
      ...command,
    ])
  for (const [database, schema] of [
    [store, 'temporal'],
    [visibility, 'visibility'],
  ] as const) {
    await run(database, 'setup-schema', '--version', '0.0')
    await run(database, 'update-schema', '--schema-name', `postgresql/v12/${schema}`)
  }
}

/**
 * Starts the server, and resolves when its namespace `default` exists.
 * @param dir of its configuration and log.
 * @param port on which it listens. Temporal stores ports as `smallint`, so it is below 32768.
 */
export async function startTemporalOnPostgres(
  databases: TemporalDatabases,
  dir: string,
  port: number,
): Promise<TemporalOnPostgres> {
  await mkdir(dir, { recursive: true })
  const ports = await Promise.all(
    services.map(async (name) => [name === 'frontend' ? port : await findFreePort(), await findFreePort()] as const),
  )
  await writeFile(join(dir, 'test.yaml'), JSON.stringify(configOf(databases, ports)))
  const server = await ServerProcess.start({
    executable: findProgram('temporal-server', readStackConfig().searchPath) ?? 'temporal-server',
    args: ['--root', dir, '--config', '.', '--env', 'test', '--allow-no-auth', 'start'],
    env: { HOME: dir },
    logFile: join(dir, 'temporal.log'),
  })
  const kill = () => server.end([['SIGKILL', 10_000]])
  try {
    await registerNamespace(server, `127.0.0.1:${port}`)
  } catch (error) {
    await kill()
    throw error
  }
  return { kill }
}

/** JSON is YAML. */
function configOf({ store, visibility }: TemporalDatabases, ports: readonly (readonly [number, number])[]) {
  const datastore = (database: URL) => ({
    sql: {
      pluginName: 'postgres12',
      databaseName: database.pathname.slice(1),
      connectAddr: database.host,
      connectProtocol: 'tcp',
      user: database.username,
      password: database.password,
      maxConns: 20,
      maxIdleConns: 20,
      maxConnLifetime: '1h',
    },
  })
  const rpc = ([grpcPort, membershipPort]: readonly [number, number] = [0, 0]) => ({
    rpc: { grpcPort, membershipPort, bindOnLocalHost: true },
  })
  return {
    log: { stdout: true, level: 'fatal' },
    persistence: {
      defaultStore: 'store',
      visibilityStore: 'visibility',
      numHistoryShards: 4,
      datastores: { store: datastore(store), visibility: datastore(visibility) },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: Object.fromEntries(services.map((name, index) => [name, rpc(ports[index])])),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: `127.0.0.1:${ports[0]?.[0]}`,
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
  }
}

async function registerNamespace(server: ServerProcess, address: string): Promise<void> {
  const deadline = Date.now() + readyMillisMax
  for (;;) {
    try {
      const connection = await Connection.connect({ address, connectTimeout: 2000 })
      try {
        await ensureNamespace(connection)
        return
      } finally {
        await connection.close()
      }
    } catch (error) {
      if (!server.isRunning) throw new Error(`Temporal ${await server.exited}:\n${server.readLastLines()}`)
      if (Date.now() > deadline)
        throw new Error(`Temporal is not ready: ${(error as Error).message}\n${server.readLastLines()}`)
    }
    await sleep(100)
  }
}

async function ensureNamespace({ workflowService }: Connection): Promise<void> {
  const { namespaces } = await workflowService.listNamespaces({})
  if (!namespaces.some(({ namespaceInfo }) => namespaceInfo?.name === 'default')) {
    const weekSeconds = 7 * 86_400
    await workflowService.registerNamespace({
      namespace: 'default',
      workflowExecutionRetentionPeriod: { seconds: weekSeconds as never },
    })
  }
  // A new namespace becomes visible to all services of the server after a delay.
  await workflowService.listWorkflowExecutions({ namespace: 'default' })
}
