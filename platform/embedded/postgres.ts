/** A real Postgres server beside the service, for one command set-ups and tests. Its data survive restarts and kills. */
import { randomBytes } from 'node:crypto'
import { access, chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import type { Logger } from '../log.ts'
import { freePort } from './ports.ts'
import { findPostgresPlace, type PostgresPlace } from './postgres-place.ts'
import { endProcess, folderOf, listProcesses, type ProcessEntry, type Signals } from './processes.ts'
import { ServerProcess, type Spawned } from './server-process.ts'
import { writeWhole } from './whole-file.ts'

const user = 'postgres'
const database = 'svc'
const readyMillisMax = 60_000

/** Fast shutdown, then without a checkpoint, then by force: the next start recovers from either. */
const shutdown: Signals = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 3000],
  ['SIGKILL', 2000],
]

/** Right for a small machine; whatever decides over durability stays as Postgres has it. */
const smallServer = {
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
  /** Of the database `svc`, password included. */
  url: string
  port: number
  pid: number
  /** Resolves when the server has ended, asked for or not, with what is known about it. */
  exited: Promise<string>
  stop(): Promise<void>
}

export interface EmbeddedPostgresOptions {
  /** Everything is kept below it: cluster, password, log. */
  dir: string
  /** Asked once a server that was left over has freed its port. Any free one when left out. */
  port?: () => Promise<number>
  /** Called for initdb too. */
  spawned?: Spawned
  log: Logger
  /** Over {@link smallServer}. */
  settings?: Readonly<Record<string, string>>
}

/**
 * Starts the server of `dir`, making the cluster first when there is none. A server of this very folder that a killed
 * supervisor left behind is shut down first. Rejects with the server's last words when it doesn't get ready in 60 s.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dir, log, spawned } = options
  const place = await findPostgresPlace(dir)
  const password = await keptPassword(dir, place.data)
  const logFile = join(dir, 'postgres.log')
  await endLeftover(place.data, log)
  const more = options.settings?.fsync === 'off' ? ['--no-sync'] : []
  if (!(await exists(join(place.data, 'PG_VERSION')))) await makeCluster(place, password, logFile, more, spawned)

  const port = await (options.port ?? freePort)()
  const settings = { ...smallServer, ...options.settings, port: String(port) }
  const args = ['-D', place.data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const server = await ServerProcess.start({
    executable: place.postgres,
    args,
    env: plainEnv,
    logFile,
    runAs: place.runAs,
    spawned,
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

/** Nothing of the caller's environment: PG* variables and locales there are meant for other programs. */
const plainEnv = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' }

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

async function keptPassword(dir: string, data: string): Promise<string> {
  const file = join(dir, 'password')
  const kept = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  // An empty one is what a full disk left of it.
  if (kept.trim() !== '') return kept.trim()
  if (await exists(join(data, 'PG_VERSION'))) {
    throw new Error(
      `${file} is gone, and the database can't be opened without it. Put it back, or remove ${dir} to begin anew.`,
    )
  }
  const password = randomBytes(24).toString('base64url')
  await writeWhole(file, `${password}\n`)
  return password
}

/** Made beside its place and moved there when whole, so that a killed initdb leaves nothing half. */
async function makeCluster(
  { initdb, data, runAs }: PostgresPlace,
  password: string,
  logFile: string,
  more: readonly string[],
  spawned: Spawned | undefined,
): Promise<void> {
  const half = `${data}.half`
  const passwordFile = `${data}.initdb`
  await rm(half, { recursive: true, force: true })
  await mkdir(half, { mode: 0o700 })
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (runAs) for (const path of [half, passwordFile]) await chown(path, runAs.uid, runAs.gid)
  try {
    const args = ['-D', half, '-U', user, '--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--no-instructions']
    const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    const making = await ServerProcess.start({
      executable: initdb,
      args: [...args, ...locale, ...more],
      env: plainEnv,
      logFile,
      runAs,
      spawned,
    })
    const end = await making.exited
    if (end !== 'ended with code 0') throw new Error(`initdb ${end}:\n${making.lastWords()}`)
    await rename(half, data)
  } finally {
    await rm(passwordFile, { force: true })
    await rm(half, { recursive: true, force: true })
  }
}

/** Shuts down a live server of this folder, or an initdb, and removes the pid file of a dead one. */
async function endLeftover(data: string, log: Logger): Promise<void> {
  // By the command line too: a server that was only just started has no pid file yet, and initdb never has one.
  const isOnData = ({ command }: ProcessEntry) =>
    command.includes(` -D ${data} `) || command.includes(` -D ${data}.half `)
  for (const leftover of (await listProcesses()).filter(isOnData)) {
    if (await endProcess(leftover.pid, isOnData, shutdown))
      log.warn({ leftover: leftover.pid }, 'ended a Postgres that a killed start had left behind')
  }
  const pidFile = join(data, 'postmaster.pid')
  const pid = Number((await readFile(pidFile, 'utf8').catch(() => '')).split('\n')[0])
  if (!Number.isInteger(pid) || pid <= 0) return
  // Its pid may belong to another program by now, even to another Postgres.
  const isThisServer = async ({ command }: ProcessEntry) =>
    command.includes('postgres') && (command.includes(data) || (await folderOf(pid)) === data)
  if (await endProcess(pid, isThisServer, shutdown))
    log.warn({ leftover: pid }, 'ended a Postgres that a killed start had left behind')
  else log.warn({ leftover: pid }, 'removed the pid file of a Postgres that was killed')
  await rm(pidFile, { force: true })
}

/** Waits until it takes connections, and makes the database if it is missing. */
async function untilReady(server: ServerProcess, url: string): Promise<void> {
  const deadline = Date.now() + readyMillisMax
  for (;;) {
    try {
      await ensureDatabase(url)
      return
    } catch (error) {
      if (!server.running) throw new Error(`Postgres ${await server.exited}:\n${server.lastWords()}`)
      if (!isStartingUp(error)) throw error
      if (Date.now() > deadline)
        throw new Error(`Postgres is not ready after ${readyMillisMax / 1000} s:\n${server.lastWords()}`)
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

/** Refused connections and SQLSTATE 57P03, `cannot_connect_now`, e.g. while it recovers. */
const isStartingUp = (error: unknown): boolean =>
  ['ECONNREFUSED', 'ECONNRESET', 'CONNECTION_CLOSED', 'CONNECT_TIMEOUT', '57P03'].includes(
    (error as { code?: string }).code ?? '',
  )
