/**
 * The stack under measurement: an embedded Postgres, an embedded Temporal, and programs of the service as child
 * processes.
 */
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import { startProgram } from '../cli/service-programs.ts'
import { connectPostgres, type Database, type QueryLimits } from '../db/connection.ts'
import { migrate } from '../db/migrations.ts'
import { type Config, readConfig } from '../platform/config/config.ts'
import { readStackConfig } from '../platform/config/stack.ts'
import { rateLimitDefaults } from '../platform/config/values.ts'
import { findFreePort } from '../platform/embedded/ports.ts'
import { startEmbeddedPostgres } from '../platform/embedded/postgres.ts'
import { startEmbeddedTemporal } from '../platform/embedded/temporal.ts'
import { findTemporalCli } from '../platform/embedded/temporal-cli.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { connectTemporal } from '../platform/temporal.ts'

export const region = 'bench'

/**
 * With room for the sessions of all measurements. What a start costs is measured in regions of the default capacity
 * too.
 */
export const largeRegion = { region, display_name: 'Bench', provider: 'local', capacity: 100_000 }

export interface RunningProgram {
  readonly url: string
  readonly pid: number
  /** Its configuration, as it reads it. */
  readonly config: Config
  /** Resolves when it has ended, with the reason. */
  readonly ended: Promise<string>
  stop(): Promise<void>
}

export interface Stack {
  readonly sql: Database
  readonly temporal: Client
  readonly life: Lifecycle
  /** The process ids of the two servers. */
  readonly serverPids: { readonly postgres: number; readonly temporal: number }
  /** Starts a program with its own variables. `life.stop()` stops it at the latest. */
  start(file: string, variables?: Readonly<Record<string, string>>): Promise<RunningProgram>
  /** The configuration that all programs share. */
  readonly config: Config
}

export const logProgress = (text: string): void => console.error(`[bench] ${text}`)

/** Starts both servers in a temporary folder. `life.stop()` stops everything and removes the folder. */
export async function startStack(): Promise<Stack> {
  const log = createLog('bench', 'warn')
  const life = new Lifecycle(log, 30_000)
  try {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'relay-bench-')))
    life.hold('folder', folder, (it) => rm(it, { recursive: true, force: true, maxRetries: 5 }))
    // Accessible to the unprivileged user of the embedded Postgres when this process is root.
    await chmod(folder, 0o755)
    const { embedded, searchPath, dataDir, cacheDir, environment } = readStackConfig()
    const cli = { explicit: embedded.temporalCli, searchPath, dataDir, cacheDir, progress: logProgress }
    const executable = await findTemporalCli(cli)
    const postgres = await startEmbeddedPostgres({ dir: join(folder, 'postgres'), log })
    life.hold('Postgres', postgres, (it) => it.stop())
    const temporal = await startEmbeddedTemporal({ executable, dir: join(folder, 'temporal'), log })
    life.hold('Temporal', temporal, (it) => it.stop())

    const shared = {
      PATH: environment.PATH ?? '',
      HOME: environment.HOME ?? '',
      NODE_ENV: 'production',
      LOG_LEVEL: 'info',
      DATABASE_URL: postgres.url,
      TEMPORAL_ADDRESS: temporal.address,
      SVC_DATA_DIR: join(folder, 'relays'),
      SVC_JWT_SECRET: randomBytes(48).toString('base64'),
      SVC_RELAY_AUTH_SECRET: randomBytes(48).toString('base64'),
      OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      SVC_BILLING_PROVIDER: 'sandbox',
      SVC_BILLING_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
      SVC_JWT_TTL_SECONDS: '900',
      // The same in every program, so that all accept the tokens of one.
      SVC_API_URL: 'http://127.0.0.1:8080',
      SVC_RATE_LIMITS: unreachableRateLimits,
      SVC_REGIONS: JSON.stringify([largeRegion]),
    }
    const config = readConfig(shared)
    const sql = life.hold('connections', connectPostgres(config.database.url, 4, unlimited), (it) =>
      it.end({ timeout: 5 }),
    )
    await migrate(sql)
    const { client } = life.hold('Temporal client', connectTemporal(config.temporal), (it) => it.close())
    const serverPids = { postgres: postgres.pid, temporal: temporal.pid }
    return { sql, temporal: client, life, serverPids, config, start: createStarter(life, folder, shared) }
  } catch (error) {
    await life.stop()
    throw error
  }
}

/** Filling and cleaning large tables takes as long as the machine needs. */
const unlimited: QueryLimits = {
  statementMillisMax: 0,
  lockMillisMax: 0,
  idleTransactionMillisMax: 0,
  answerMillisMax: null,
}

/** Requests are counted as in production, and the limits are never reached. */
const unreachableRateLimits = Object.keys(rateLimitDefaults)
  .map((name) => `${name}=9999999`)
  .join(',')

const createStarter =
  (life: Lifecycle, folder: string, shared: Readonly<Record<string, string>>): Stack['start'] =>
  async (file, variables = {}) => {
    const port = await findFreePort()
    const env = { ...shared, PORT: String(port), ...variables }
    const program = await startProgram({ file, env, logFile: join(folder, `${file.replaceAll('/', '-')}.log`) })
    life.hold(file, program, (it) => it.stop())
    return {
      url: `http://127.0.0.1:${port}`,
      pid: program.pid,
      config: readConfig(env),
      stop: () => program.stop(),
      ended: program.exited.then((how) => `${file} ${how}:\n${program.readLastLines()}`),
    }
  }

/** Polls a condition. Rejects when it is not met within the limit. */
export async function waitUntil(what: string, isDone: () => Promise<boolean>, secondsMax = 300): Promise<void> {
  const deadline = Date.now() + secondsMax * 1000
  while (!(await isDone())) {
    if (Date.now() > deadline) throw new Error(`not met after ${secondsMax} s: ${what}`)
    await sleep(50)
  }
}

/** Resolves once the program answers a path with 200. Rejects with the last lines of its log when it ends instead. */
export const waitUntilAnswering = ({ url, ended }: RunningProgram, path: string): Promise<void> =>
  Promise.race([
    waitUntil(`${path} is answered`, () =>
      fetch(url + path).then(
        (answer) => answer.ok,
        () => false,
      ),
    ),
    ended.then((how) => Promise.reject(new Error(how))),
  ])
