/** The embedded Postgres: a new folder, restarts, failures. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startEmbeddedPostgres } from '../../../platform/embedded/postgres.ts'
import { createLog } from '../../../platform/log.ts'
import { findProcess, sendSignal } from '../../../platform/processes.ts'
import { makeFolder, removeFolder } from '../../support/folders.ts'

const log = createLog('test', 'silent')
/** The tests kill processes, but never the machine. */
const settings = { fsync: 'off' }

/** An address of this machine that others can reach. */
const outside = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address

async function started(dir: string) {
  const server = await startEmbeddedPostgres({ dir, log, settings })
  onTestFinished(() => server.stop())
  return server
}

async function query<T>(url: string, ask: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return await ask(sql)
  } finally {
    await sql.end()
  }
}

const readNumber = (url: string) => query(url, async (sql) => (await sql`select number from stored`)[0]?.number)

describe('on one folder, in this order', () => {
  let dir: string
  beforeAll(async () => {
    dir = await makeFolder()
  })
  afterAll(() => removeFolder(dir))

  test('a new folder gets a database named svc with durable commits, also after an initdb that was killed', async () => {
    await mkdir(join(dir, 'data.draft'))
    await writeFile(join(dir, 'data.draft', 'PG_VERSION'), '18\n')
    const server = await startEmbeddedPostgres({ dir, log })
    onTestFinished(() => server.stop())
    const [row] = await query(
      server.url,
      (sql) => sql`select current_database() as name, current_setting('fsync') as fsync,
        current_setting('server_encoding') as encoding, current_setting('synchronous_commit') as commits`,
    )
    expect(row).toEqual({ name: 'svc', fsync: 'on', encoding: 'UTF8', commits: 'on' })
    await query(server.url, (sql) => sql`create table stored as select 42 as number`)
    await server.stop()
    expect(await findProcess(server.pid)).toBeUndefined()
  })

  test('data survives a stop and a start, and a killed server and its stale pid file', async () => {
    const first = await started(dir)
    expect(await readNumber(first.url)).toBe(42)
    sendSignal(first.pid, 'SIGKILL')
    await first.exited
    expect(await readNumber((await started(dir)).url)).toBe(42)
  })

  test('a server that a killed start left running is shut down before the next one starts', async () => {
    const orphan = await started(dir)
    const next = await started(dir)
    expect(await orphan.exited).toBe('ended with code 0')
    expect(await readNumber(next.url)).toBe(42)
  })

  test('the server requires the password, which only the owner can read, and is not reachable from other machines', async () => {
    const { url, port } = await started(dir)
    const wrong = new URL(url)
    wrong.password = 'wrong'
    await expect(query(wrong.href, (sql) => sql`select 1`)).rejects.toThrow('password authentication failed')
    expect((await stat(join(dir, 'password'))).mode & 0o777).toBe(0o600)
    expect(new URL(url).password).toBe((await readFile(join(dir, 'password'), 'utf8')).trim())
    if (outside === undefined) return
    const [error] = await once(connect(port, outside), 'error')
    expect((error as NodeJS.ErrnoException).code).toBe('ECONNREFUSED')
  })

  test('a process that has the recycled pid of a pid file is not ended', async () => {
    const unrelated = spawn('sleep', ['60'])
    onTestFinished(() => void unrelated.kill())
    await once(unrelated, 'spawn')
    await writeFile(join(dir, 'data', 'postmaster.pid'), `${unrelated.pid}\n${dir}/data\n`)
    await started(dir)
    expect(unrelated.exitCode).toBeNull()
    expect(await findProcess(unrelated.pid ?? 0)).toMatchObject({ command: 'sleep 60' })
  })

  test('a server that cannot start is reported with its log', async () => {
    const start = startEmbeddedPostgres({ dir, log, settings: { ...settings, shared_buffers: 'plenty' } })
    await expect(start).rejects.toThrow(/invalid value for parameter "shared_buffers"/)
  })

  test('a missing password file is reported', async () => {
    await rm(join(dir, 'password'))
    await expect(startEmbeddedPostgres({ dir, log, settings })).rejects.toThrow(/password is missing/)
  })
})
