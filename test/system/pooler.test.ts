/** The service behind PgBouncer, in each mode that docs/operating.md names. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { runChecks } from '../../cli/doctor/check.ts'
import { openDatabase, postgresChecks } from '../../cli/doctor/postgres.ts'
import { readTarget } from '../../cli/doctor/target.ts'
import { connectPostgres, type Database, isOutage, requestLimits } from '../../db/connection.ts'
import { pipelinedTransaction } from '../../db/pipelined-transaction.ts'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import { Client, createEmptyDatabase, givePlan, signUp, statusAndCode } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { type PgBouncer, type PoolMode, startPgBouncer } from '../support/pgbouncer.ts'
import { findFreePort } from '../support/ports.ts'
import { startProgram, untilWell } from '../support/programs.ts'
import { connectSocket } from '../support/relay-sockets.ts'
import { eventually, type OneSession, shortTimes } from '../support/relays.ts'

const serverUrl = inject('postgresUrl')

async function givenPooler(
  mode: PoolMode,
  settings = {},
): Promise<{ pooler: PgBouncer; url: string; direct: Database }> {
  const database = await createEmptyDatabase()
  const direct = connectPostgres(database.url, 2)
  atEnd(async () => {
    await direct.end({ timeout: 5 })
    await database.drop()
  })
  const pooler = await startPgBouncer(mode, serverUrl, settings)
  return { pooler, url: pooler.urlOf(database.url), direct }
}

/** Api and worker, which migrate the database through the pooler. */
async function startPrograms(databaseUrl: string) {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-pooler-'))
  atEnd(async () => {
    await endLocalRelays(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
  })
  const port = await findFreePort()
  const environment = testEnvironment({
    ...shortTimes,
    PORT: String(port),
    SVC_API_URL: `http://127.0.0.1:${port}`,
    DATABASE_URL: databaseUrl,
    SVC_DATA_DIR: dataDir,
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
  })
  const programs = [startProgram('api', environment), startProgram('worker', environment)]
  return { client: new Client(`http://127.0.0.1:${port}`), environment, programs }
}

async function examine(environment: Readonly<Record<string, string>>) {
  const target = await readTarget(environment)
  const database = openDatabase(target.databaseUrl)
  try {
    return (await runChecks(postgresChecks(target, database))).find(({ name }) => name === 'postgres')
  } finally {
    await database.sql?.end({ timeout: 5 })
  }
}

describe.each(['session', 'transaction'] as const)('behind a pooler in %s mode', (mode) => {
  test('an account signs up, starts a relay, watches it and stops it, and an outage of the pooler is over when it returns', async () => {
    const { pooler, url, direct } = await givenPooler(mode)
    const { client, programs } = await startPrograms(url)
    await untilWell(client.url)
    const { userId, bearer } = await signUp(client)
    await givePlan(direct, userId)
    const watcher = await connectSocket(client.url, { bearer })
    const key = { 'Idempotency-Key': randomUUID() }
    const started = await client.post<OneSession>('/relay/start', {}, { bearer, headers: key })
    expect(started.status).toBe(201)
    await watcher.message(({ session }) => session.state === 'active')

    await pooler.stop()
    expect(statusAndCode(await client.get('/relay/active', { bearer }))).toEqual([503, 'temporarily_unavailable'])
    await pooler.start()
    await eventually(
      async () => (await client.get('/relay/active', { bearer })).status,
      (status) => status === 200,
    )

    const stopped = await client.post<OneSession>(
      '/relay/stop',
      { connection_id: 'default', immediate: true },
      { bearer },
    )
    expect(stopped.body.session.state).toBe('stopped')
    await watcher.message(({ session }) => session.state === 'stopped')
    const lines = programs.flatMap(({ output }) => output().split('\n')).filter(Boolean)
    expect(lines.filter((line) => /"level":(50|60)/.test(line) && !/ECONN|CONNECTION_|08P01/.test(line))).toEqual([])
  })

  test('concurrent statements and transactions have the limits of their own pool and never those of another', async () => {
    const { url } = await givenPooler(mode)
    const pools = [requestLimits, { ...requestLimits, statementMillisMax: 9_000 }].map((limits) => ({
      limits,
      sql: connectPostgres(url, 5, limits),
    }))
    onTestFinished(async () => void (await Promise.all(pools.map(({ sql }) => sql.end({ timeout: 5 })))))
    const ask = async ({ sql, limits }: (typeof pools)[number], number: number) => {
      const wanted = `${limits.statementMillisMax}ms`
      const read = (tx: Pick<Database, 'unsafe'>) =>
        tx.unsafe<{ limit: string; number: number }[]>(
          `select setting || 'ms' as limit, $1::int as number from pg_settings where name = 'statement_timeout'`,
          [number],
        )
      const inTransaction = await sql.begin((tx) => read(tx))
      const pipelined = await pipelinedTransaction(sql, async (tx) => await read(tx as Database))
      const [alone] = await sql<{ number: number }[]>`select ${number}::int as number`
      return [...inTransaction, ...pipelined, alone].filter(
        (row) => row?.number !== number || ('limit' in row && row.limit !== wanted),
      )
    }
    const wrong = await Promise.all(
      pools.flatMap((pool) => Array.from({ length: 60 }, (_, number) => ask(pool, number))),
    )
    expect(wrong.flat()).toEqual([])
    // What one client leaves behind would be the setting of the next one.
    const plain = connectPostgres(url, 1)
    onTestFinished(() => plain.end({ timeout: 5 }))
    const [{ source } = { source: '' }] = await plain<{ source: string }[]>`
      select source from pg_settings where name = 'statement_timeout'`
    expect(source).toBe(mode === 'session' ? 'session' : 'default')
  })

  test('the doctor names what the mode lacks', async () => {
    const { url } = await givenPooler(mode)
    const found = await examine(testEnvironment({ DATABASE_URL: url }))
    if (mode === 'session') expect(found?.detail).not.toContain('pooler')
    else
      expect(found).toMatchObject({
        detail: expect.stringContaining('the pooler passes no NOTIFY on'),
        fix: expect.stringContaining('alter role … set statement_timeout'),
      })
  })
})

test('api and worker refuse a pooler that shares connections when their URL does not say so', async () => {
  const { url } = await givenPooler('transaction')
  const undeclared = url.replace(/\?pgbouncer=true$/, '')
  const { programs, environment } = await startPrograms(undeclared)
  for (const { output } of programs)
    await eventually(output, (text) => /shares its connections.*Add pgbouncer=true to it/.test(text))
  expect(await examine(environment)).toMatchObject({
    status: 'fail',
    fix: expect.stringContaining('Add pgbouncer=true'),
  })
})

test('api and worker refuse a pooler that shares connections after each statement', async () => {
  const { url } = await givenPooler('statement')
  const { programs } = await startPrograms(`${url}?pgbouncer=true`)
  for (const { output } of programs) await eventually(output, (text) => /statement pooling mode/.test(text))
})

test('a pooler without a free connection is an outage, and one that refuses the user is none', async () => {
  const { pooler } = await givenPooler('transaction', { max_client_conn: '1' })
  const url = pooler.urlOf(serverUrl)
  const only = connectPostgres(url, 1)
  onTestFinished(() => only.end({ timeout: 5 }))
  const refusalOf = async (refusedUrl: string) => {
    const sql = connectPostgres(refusedUrl, 1)
    const error: unknown = await sql`select 1`.catch((refusal: unknown) => refusal)
    await sql.end({ timeout: 0 })
    return { text: String(error), isOutage: isOutage(error) }
  }
  const stranger = new URL(url)
  stranger.username = 'stranger'
  // The pooler may still count a connection that has ended: one that found it listening, or one that it refused.
  const refusal = await eventually(
    () => refusalOf(stranger.href),
    ({ text }) => !text.includes('max_client_conn'),
  )
  expect(refusal).toMatchObject({ isOutage: false })
  const connected = () =>
    only`select 1`.then(
      () => true,
      () => false,
    )
  await eventually(connected, (isConnected) => isConnected)
  expect(await refusalOf(url)).toMatchObject({ text: expect.stringContaining('max_client_conn'), isOutage: true })
})
