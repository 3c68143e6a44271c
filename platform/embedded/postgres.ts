/**
 * A Postgres server that runs beside the service, for `npm start` and tests. Its data survives restarts and crashes.
 */
import { randomBytes } from 'node:crypto'
import { access, chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { writeFileAtomically } from '../atomic-file.ts'
import type { Logger } from '../log.ts'
import { endProcess, findProcess, listProcesses, type Signals, workingFolderOf } from '../processes.ts'
import { findFreePort } from './ports.ts'
import { findPostgresPaths, type PostgresPaths } from './postgres-paths.ts'
import { type OnSpawn, ServerProcess } from './server-process.ts'

const user = 'postgres'
const database = 'svc'
const readyMillisMax = 60_000

/**
 * Fast shutdown, then immediate shutdown without a checkpoint, then kill. The next start recovers from the last two.
 */
const shutdown: Signals = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 3000],
  ['SIGKILL', 2000],
]

/** Settings for a small machine. Those that affect durability keep their defaults. */
const defaultSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '128MB',
  max_wal_size: '256MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  huge_pages: 'off',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
}

export interface EmbeddedPostgres {
  /** The URL of the database `svc`, with the password. */
  url: string
  port: number
  pid: number
  /** Resolves when the server has ended for any reason, with the exit code or the signal as text. */
  exited: Promise<string>
  stop(): Promise<void>
}

export interface EmbeddedPostgresOptions {
  /** The folder of the cluster, the password and the log. */
  dir: string
  /** Called after a leftover server has released its port. The default is any free port. */
  port?: () => Promise<number>
  /** Called for initdb too. */
  onSpawn?: OnSpawn
  log: Logger
  /** Override {@link defaultSettings}. */
  settings?: Readonly<Record<string, string>>
}

/**
 * Starts the server of a folder, and creates its cluster when there is none. Shuts down a server of the same folder
 * that a killed start left running. Rejects with the last lines of the log when the server is not ready within 60 s.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dir, log, onSpawn } = options
  const paths = await findPostgresPaths(dir)
  const password = await providePassword(dir, paths.data)
  const logFile = join(dir, 'postgres.log')
  await endLeftovers(paths.data, log)
  const syncArgs = options.settings?.fsync === 'off' ? ['--no-sync'] : []
  if (!(await exists(join(paths.data, 'PG_VERSION')))) await createCluster(paths, password, logFile, syncArgs, onSpawn)

  const port = await (options.port ?? findFreePort)()
  const settings = { ...defaultSettings, ...options.settings, port: String(port) }
  const args = ['-D', paths.data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const server = await ServerProcess.start({
    executable: paths.postgres,
    args,
    env: cleanEnv,
    logFile,
    runAs: paths.runAs,
    onSpawn,
  })
  const urlOf = (name: string) => `postgres://${user}:${password}@127.0.0.1:${port}/${name}`
  try {
    await untilReady(server, urlOf('postgres'))
  } catch (error) {
    await server.end(shutdown)
    throw error
  }
  return { url: urlOf(database), port, pid: server.pid, exited: server.exited, stop: () => server.end(shutdown) }
}

/** Nothing is inherited: PG* variables and the locale of the caller are meant for other programs. */
const cleanEnv = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' }

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

async function providePassword(dir: string, data: string): Promise<string> {
  const file = join(dir, 'password')
  const stored = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  // A full disk may have left an empty file.
  if (stored.trim() !== '') return stored.trim()
  if (await exists(join(data, 'PG_VERSION'))) {
    throw new Error(
      `${file} is missing, and the database can't be opened without it. Restore it, or remove ${dir} to start with an empty database.`,
    )
  }
  const password = randomBytes(24).toString('base64url')
  await writeFileAtomically(file, `${password}\n`)
  return password
}

/** Creates the cluster in a draft folder and renames it when it is complete, since initdb may be killed at any time. */
async function createCluster(
  { initdb, data, runAs }: PostgresPaths,
  password: string,
  logFile: string,
  syncArgs: readonly string[],
  onSpawn: OnSpawn | undefined,
): Promise<void> {
  const draft = `${data}.draft`
  const passwordFile = `${data}.initdb`
  await rm(draft, { recursive: true, force: true })
  await mkdir(draft, { mode: 0o700 })
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (runAs) for (const path of [draft, passwordFile]) await chown(path, runAs.uid, runAs.gid)
  try {
    const args = ['-D', draft, '-U', user, '--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--no-instructions']
    const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    const process = await ServerProcess.start({
      executable: initdb,
      args: [...args, ...locale, ...syncArgs],
      env: cleanEnv,
      logFile,
      runAs,
      onSpawn,
    })
    const end = await process.exited
    if (end !== 'ended with code 0') throw new Error(`initdb ${end}:\n${process.readLastLines()}`)
    await rename(draft, data)
  } finally {
    await rm(passwordFile, { force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

/**
 * Shuts down servers and initdb processes that a killed start left running on this cluster, and removes their pid file.
 */
async function endLeftovers(data: string, log: Logger): Promise<void> {
  const pidFile = join(data, 'postmaster.pid')
  const [pid] = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n')
  const leftovers = await listProcesses(
    (command) => command.includes(` -D ${data} `) || command.includes(` -D ${data}.draft `),
  )
  // The pid file also names a server that was started with other arguments. Its pid may belong to another program by
  // now.
  const recorded = pid ? await findProcess(Number(pid)) : undefined
  const isServer =
    recorded?.command.includes('postgres') &&
    (recorded.command.includes(data) || (await workingFolderOf(recorded.pid)) === data)
  if (recorded && isServer) leftovers.push(recorded)
  for (const leftover of leftovers) {
    if (await endProcess(leftover, shutdown))
      log.warn({ leftover: leftover.pid }, 'ended a Postgres server that a killed start had left running')
  }
  await rm(pidFile, { force: true })
}

/** Waits until the server accepts connections, and creates the database when it is missing. */
async function untilReady(server: ServerProcess, url: string): Promise<void> {
  const deadline = Date.now() + readyMillisMax
  for (;;) {
    try {
      await ensureDatabase(url)
      return
    } catch (error) {
      if (!server.isRunning) throw new Error(`Postgres ${await server.exited}:\n${server.readLastLines()}`)
      if (!isStartingUp(error)) throw error
      if (Date.now() > deadline)
        throw new Error(`Postgres is not ready after ${readyMillisMax / 1000} s:\n${server.readLastLines()}`)
    }
    await sleep(50)
  }
}

async function ensureDatabase(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {} })
  try {
    const found = await sql`select 1 from pg_database where datname = ${database}`
    if (found.length === 0) await sql`create database ${sql(database)}`
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Refused connections, and SQLSTATE 57P03 (`cannot_connect_now`), which the server sends during recovery. */
const isStartingUp = (error: unknown): boolean =>
  ['ECONNREFUSED', 'ECONNRESET', 'CONNECTION_CLOSED', 'CONNECT_TIMEOUT', '57P03'].includes(
    (error as { code?: string }).code ?? '',
  )
