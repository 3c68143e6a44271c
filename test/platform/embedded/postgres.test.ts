import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { expect, onTestFinished, test } from 'vitest'
import { startEmbeddedPostgres } from '../../../platform/embedded/postgres.ts'
import { commandOf, sendSignal } from '../../../platform/embedded/processes.ts'
import { createLog } from '../../../platform/log.ts'
import { temporaryFolder } from '../../support/folders.ts'

const log = createLog('test', 'silent')
/** What these tests kill are processes, never the machine. */
const settings = { fsync: 'off' }

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

const keepNumber = (url: string) => query(url, (sql) => sql`create table kept as select 42 as number`)
const keptNumber = (url: string) => query(url, async (sql) => (await sql`select number from kept`)[0]?.number)

test('a new folder becomes a database named svc that syncs what it commits', async () => {
  const server = await startEmbeddedPostgres({ dir: await temporaryFolder(), log })
  onTestFinished(() => server.stop())
  const [row] = await query(
    server.url,
    (sql) => sql`select current_database() as name, current_setting('fsync') as fsync,
      current_setting('server_encoding') as encoding, current_setting('synchronous_commit') as commits`,
  )
  expect(row).toEqual({ name: 'svc', fsync: 'on', encoding: 'UTF8', commits: 'on' })
})

test('data survive a stop and a start', async () => {
  const dir = await temporaryFolder()
  const first = await startEmbeddedPostgres({ dir, log, settings })
  await keepNumber(first.url)
  await first.stop()
  expect(await commandOf(first.pid)).toBeUndefined()
  expect(await keptNumber((await started(dir)).url)).toBe(42)
})

test('data survive a killed server, whose stale pid file is no obstacle', async () => {
  const dir = await temporaryFolder()
  const first = await startEmbeddedPostgres({ dir, log, settings })
  await keepNumber(first.url)
  sendSignal(first.pid, 'SIGKILL')
  await first.exited
  expect(await keptNumber((await started(dir)).url)).toBe(42)
})

test('a server that a killed supervisor left running is shut down before the next one starts', async () => {
  const dir = await temporaryFolder()
  const orphan = await startEmbeddedPostgres({ dir, log, settings })
  await keepNumber(orphan.url)
  const next = await started(dir)
  expect(await orphan.exited).toBe('ended with code 0')
  expect(await keptNumber(next.url)).toBe(42)
})

test('a stale pid file that names a stranger by now costs the stranger nothing', async () => {
  const dir = await temporaryFolder()
  await (await startEmbeddedPostgres({ dir, log, settings })).stop()
  const stranger = spawn('sleep', ['60'])
  onTestFinished(() => void stranger.kill())
  await once(stranger, 'spawn')
  await writeFile(join(dir, 'data', 'postmaster.pid'), `${stranger.pid}\n${dir}/data\n`)
  await started(dir)
  expect(stranger.exitCode).toBeNull()
  expect(await commandOf(stranger.pid ?? 0)).toBe('sleep 60')
})

test('an initdb that was killed half way leaves nothing the next start could trip over', async () => {
  const dir = await temporaryFolder()
  await mkdir(join(dir, 'data.half'))
  await writeFile(join(dir, 'data.half', 'PG_VERSION'), '18\n')
  const server = await started(dir)
  expect(await query(server.url, async (sql) => (await sql`select 1 as one`)[0]?.one)).toBe(1)
})

test('nobody without the password gets in, and only the owner may read it', async () => {
  const dir = await temporaryFolder()
  const { url } = await started(dir)
  const wrong = new URL(url)
  wrong.password = 'wrong'
  await expect(query(wrong.href, (sql) => sql`select 1`)).rejects.toThrow('password authentication failed')
  expect((await stat(join(dir, 'password'))).mode & 0o777).toBe(0o600)
  expect(new URL(url).password).toBe((await readFile(join(dir, 'password'), 'utf8')).trim())
})

test('a lost password is named instead of shutting the owner out in silence', async () => {
  const dir = await temporaryFolder()
  await (await startEmbeddedPostgres({ dir, log, settings })).stop()
  await rm(join(dir, 'password'))
  await expect(startEmbeddedPostgres({ dir, log, settings })).rejects.toThrow(/password is gone/)
})

const outside = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address

test.skipIf(outside === undefined)('the server is not reachable from other machines', async () => {
  const { port } = await started(await temporaryFolder())
  const socket = connect(port, outside ?? '')
  const [error] = await once(socket, 'error')
  expect((error as NodeJS.ErrnoException).code).toBe('ECONNREFUSED')
})

test('a server that can not start says why in its own words', async () => {
  const dir = await temporaryFolder()
  const start = startEmbeddedPostgres({ dir, log, settings: { ...settings, shared_buffers: 'plenty' } })
  await expect(start).rejects.toThrow(/invalid value for parameter "shared_buffers"/)
})
