/** Api and worker as processes, with a Postgres and a Temporal that can be lost and restored from a backup. */
import { execFile } from 'node:child_process'
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../platform/embedded/postgres.ts'
import { createLog } from '../../platform/log.ts'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import { atEnd } from './at-end.ts'
import { testEnvironment } from './environment.ts'
import { makeFolder, removeFolder } from './folders.ts'
import { findFreePort } from './ports.ts'
import { findPostgresPrograms } from './postgres-programs.ts'
import { startProgram, untilWell } from './programs.ts'
import { operatorPassword } from './relays.ts'
import { createTemporalSchema, startTemporalOnPostgres, type TemporalOnPostgres } from './temporal-postgres.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const temporalDatabases = ['temporal', 'temporal_visibility'] as const

export interface ReplacedServers {
  readonly dataDir: string
  /** The environment of api and worker. */
  readonly environment: Readonly<Record<string, string>>
  /** A folder that does not exist, for a backup. */
  newFolder(): string
  /** Runs a script of deploy/. Rejects when it fails. @returns its output. */
  run(script: 'backup.sh' | 'restore.sh', folder: string): Promise<string>
  query<Result>(work: (sql: Database) => Promise<Result>): Promise<Result>
  /**
   * Kills all processes but the relays, replaces Postgres by an empty server, restores the folder, and starts
   * everything.
   */
  loseAndRestore(folder: string): Promise<void>
}

/** Starts everything, and ends it after the tests of the file. */
export async function startReplacedServers(variables: Readonly<Record<string, string>>): Promise<ReplacedServers> {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  await mkdir(dataDir)
  atEnd(async () => {
    await endLocalRelays(dataDir)
    await removeFolder(folder)
  })
  const postgres = await startReplaceablePostgres(folder)
  const urlOf = (name: string) => Object.assign(new URL(postgres.url), { pathname: `/${name}` })
  const databases = { store: urlOf('temporal'), visibility: urlOf('temporal_visibility') }
  const temporalPort = await findFreePort()
  await createTemporalSchema(databases)
  const startTemporal = () => startTemporalOnPostgres(databases, join(folder, 'temporal'), temporalPort)
  let temporal: TemporalOnPostgres = await startTemporal()
  atEnd(() => temporal.kill())

  const port = String(await findFreePort())
  const environment = testEnvironment({
    DATABASE_URL: postgres.url,
    TEMPORAL_ADDRESS: `127.0.0.1:${temporalPort}`,
    PORT: port,
    SVC_API_URL: `http://127.0.0.1:${port}`,
    SVC_DATA_DIR: dataDir,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    ...variables,
  })
  const programs = [startProgram('api', environment), startProgram('worker', environment)]
  const untilReady = async () => {
    await untilWell(`http://127.0.0.1:${port}`).catch((error: Error) => {
      throw new Error(`${error.message}\n${programs.map(({ output }) => output()).join('\n')}`)
    })
  }
  await untilReady()

  const searchPath = [findPostgresPrograms() ?? '', ...readStackConfig().searchPath].join(':')
  const scriptEnvironment = {
    PATH: searchPath,
    DATABASE_URL: postgres.url,
    TEMPORAL_DATABASE_URL: databases.store.href,
    TEMPORAL_VISIBILITY_DATABASE_URL: databases.visibility.href,
  }
  const run = async (script: string, target: string) =>
    (await promisify(execFile)(join(project, 'deploy', script), [target], { env: scriptEnvironment })).stdout
  let folders = 0
  return {
    dataDir,
    environment,
    newFolder: () => join(folder, `backup-${++folders}`),
    run,
    query: async (work) => {
      const sql = connectPostgres(postgres.url, 1)
      return work(sql).finally(() => sql.end({ timeout: 5 }))
    },
    loseAndRestore: async (target) => {
      for (const program of programs) await program.kill()
      await temporal.kill()
      await postgres.replace()
      await run('restore.sh', target)
      temporal = await startTemporal()
      for (const program of programs) program.start()
      await untilReady()
    },
  }
}

/** A Postgres with the databases of the service and of Temporal. */
async function startReplaceablePostgres(folder: string) {
  const log = createLog('postgres', 'silent')
  let server: EmbeddedPostgres
  let count = 0
  const start = async (port?: number) => {
    const dir = join(folder, `postgres-${++count}`)
    await mkdir(dir, { mode: 0o755 })
    // The same password, so that the URL stays.
    if (port !== undefined) await copyFile(join(folder, `postgres-${count - 1}`, 'password'), join(dir, 'password'))
    const options = { dir, log, settings: { fsync: 'off' } }
    server = await startEmbeddedPostgres(port === undefined ? options : { ...options, port: async () => port })
    const sql = connectPostgres(server.url, 1)
    for (const name of temporalDatabases) await sql.unsafe(`create database ${name}`)
    await sql.end({ timeout: 5 })
    return server
  }
  const { url, port } = await start()
  atEnd(() => server.stop())
  const replace = async () => {
    await server.stop()
    await start(port)
  }
  return { url, replace }
}
