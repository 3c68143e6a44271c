/** The pool of connections: lost connections, servers that do not answer, transactions and reservations. */
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { commandLimits, connectPostgres, type Database, isOutage } from '../../db/connection.ts'
import { pipelinedTransaction } from '../../db/pipelined-transaction.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { eventually, passageTo } from '../support/relays.ts'

// A separate server, since the tests break its connections.
const database = await createEmptyDatabase()
const { url } = database
const direct = connectPostgres(url, 1)
afterAll(async () => {
  await direct.end({ timeout: 1 })
  await database.drop()
})
const poolSize = 8

const questions: Record<string, (sql: Database) => Promise<unknown>> = {
  'a query': (sql) => sql`select 1 as answer`,
  'a query with arrays': (sql) => sql`select ${[1, 2]}::int[] as numbers, ${'text'}::text as words`,
  'a transaction': (sql) =>
    sql.begin(async (tx) => {
      await tx`select ${1}::int as one`
      await tx`select pg_sleep(0.002)`
      await tx`select 2 as two`
    }),
  'a pipelined transaction': (sql) =>
    pipelinedTransaction(sql, async (tx, commitWith) => {
      await Promise.all([tx`select ${1}::int as one`, tx`select pg_sleep(0.002)`])
      await commitWith(tx`select 2 as two`, tx`select ${[3]}::int[] as three`)
    }),
}

const breakers: Record<string, (passage: Awaited<ReturnType<typeof passageTo>>) => Promise<unknown>> = {
  'the network breaks': async (passage) => {
    await passage.block()
    await passage.open()
  },
  'the server ends it': () => direct`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'relay-control-plane' and datname = current_database() and pid <> pg_backend_pid()`,
}

const cases = Object.keys(questions).flatMap((what) => Object.keys(breakers).map((how) => [what, how] as const))

test.each(cases)(
  '%s whose connection is lost because %s fails as an outage, and the pool is whole again',
  async (what, how) => {
    const passage = await passageTo(url)
    const sql = connectPostgres(passage.url, poolSize)
    const failures: unknown[] = []
    let answers = 0
    let breaks = 0
    const isSeen = () => answers > 0 && failures.length > poolSize && breaks >= 5
    const askers = Array.from({ length: poolSize }, async () => {
      while (!isSeen()) {
        await questions[what]?.(sql).then(
          () => {
            answers += 1
          },
          (error: unknown) => failures.push(error),
        )
      }
    })
    while (!isSeen()) {
      await breakers[how]?.(passage)
      breaks += 1
      await sleep(50)
    }
    // All queries settle, and the process survives.
    await Promise.all(askers)
    expect(failures.filter((error) => !isOutage(error))).toEqual([])
    // A connection that was being opened for a reservation, which got another one, may still wait for its next attempt.
    await eventually(
      () => Promise.all(Array.from({ length: poolSize }, () => sql`select pg_sleep(0.05), pg_backend_pid() as pid`)),
      (after) => new Set(after.map(([row]) => row?.pid)).size === poolSize,
    )
    await sql.end({ timeout: 1 })
  },
)

test('queries one after the other use one connection, whose statements are prepared', async () => {
  const sql = connectPostgres(url, poolSize)
  await Promise.all(Array.from({ length: poolSize }, () => sql`select pg_sleep(0.05)`))
  const pids = new Set<number>()
  for (let count = 0; count < 20; count += 1) {
    const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
    pids.add(row?.pid ?? 0)
  }
  expect(pids.size).toBe(1)
  await sql.end({ timeout: 1 })
})

/** A short timeout, to keep the tests short. */
const shortLimits = { ...commandLimits, answerMillisMax: 1000 }

async function silentDatabase(connectionsMax: number) {
  const passage = await passageTo(url)
  const sql = connectPostgres(passage.url, connectionsMax, shortLimits)
  onTestFinished(() => sql.end({ timeout: 1 }))
  return { passage, sql }
}

async function expectTimeout(work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  expect(error).toMatchObject({ code: 'QUERY_TIMEOUT' })
  expect(isOutage(error)).toBe(true)
}

describe('a server that does not answer', () => {
  test.each(Object.entries(questions))(
    'fails %s after a time on connections that were open, and is asked again on new ones',
    async (_, ask) => {
      const { passage, sql } = await silentDatabase(2)
      await Promise.all([ask(sql), ask(sql)])
      passage.silence()
      // More queries than connections: some are queued on a connection, others wait for one.
      await Promise.all(Array.from({ length: 8 }, () => expectTimeout(ask(sql))))
      passage.answer()
      // All previous connections are closed, including idle ones.
      await Promise.all(Array.from({ length: 4 }, () => ask(sql)))
    },
  )

  test('fails queries after a time that arrive while there is no connection', async () => {
    const { passage, sql } = await silentDatabase(2)
    passage.silence()
    await Promise.all(Array.from({ length: 6 }, () => expectTimeout(sql`select 1`)))
    // The driver waits before it reconnects, and these queries wait too.
    await expectTimeout(sql`select 1`)
    passage.answer()
    expect(await sql`select ${[1]}::int[] as numbers`).toEqual([{ numbers: [1] }])
  })

  test('does not delay later queries, since idle connections are replaced', async () => {
    const { passage, sql } = await silentDatabase(4)
    await Promise.all(Array.from({ length: 4 }, () => sql`select pg_sleep(0.05)`))
    passage.silence()
    await expectTimeout(sql`select 1`)
    passage.answer()
    for (let query = 0; query < 8; query += 1) expect(await sql`select 1 as answer`).toEqual([{ answer: 1 }])
  })

  test('does not fail a query that is answered in time while the event loop is blocked', async () => {
    const { sql } = await silentDatabase(1)
    await sql`select 1`
    const answer = sql`select 1 as answer, pg_sleep(0.05)`.execute()
    // Sent before the loop is blocked, so that the answer waits for this process.
    await sleep(20)
    const until = Date.now() + 2 * shortLimits.answerMillisMax
    while (Date.now() < until);
    expect(await answer).toMatchObject([{ answer: 1 }])
  })
})

test('a transaction with a lost connection does not use a later connection', async () => {
  const passage = await passageTo(url)
  const sql = connectPostgres(passage.url, 1)
  onTestFinished(() => sql.end({ timeout: 1 }))
  await direct`create table if not exists lost_writes (n int)`
  let resume = () => {}
  const resumed = new Promise<void>((resolve) => {
    resume = resolve
  })
  let rest: Promise<unknown> | undefined
  const lost = sql.begin(async (tx) => {
    await tx`insert into lost_writes values (1)`
    rest = resumed.then(() => tx`insert into lost_writes values (2)`)
    await rest
  })
  await eventually(
    () => rest !== undefined,
    (isWriting) => isWriting,
  )
  await passage.block()
  await passage.open()
  await expect(lost).rejects.toSatisfy(isOutage)
  // The pool's only connection is a new one.
  await sql`select 1`
  resume()
  await expect(rest).rejects.toSatisfy(isOutage)
  expect(await direct`select n from lost_writes`).toEqual([])
})

test('all queries of a transaction with a lost connection settle', async () => {
  const passage = await passageTo(url)
  const sql = connectPostgres(passage.url, 1)
  onTestFinished(() => sql.end({ timeout: 1 }))
  let settled: PromiseSettledResult<unknown>[] = []
  const [backend] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  const lost = sql.begin(async (tx) => {
    // The first query runs, and the others wait for it.
    settled = await Promise.allSettled([tx`select pg_sleep(${10}::int)`, tx`select 1`, tx`select 2`])
  })
  await eventually(
    () => direct`select 1 from pg_stat_activity where pid = ${backend?.pid ?? 0} and wait_event = 'PgSleep'`,
    (rows) => rows.length === 1,
  )
  await passage.block()
  await expect(lost).rejects.toSatisfy(isOutage)
  await eventually(
    () => settled.map((query) => query.status),
    (statuses) => statuses.join() === 'rejected,rejected,rejected',
  )
})

test('a transaction whose process stops in the middle is ended, and its locks are free', async () => {
  const sql = connectPostgres(url, 1, { ...commandLimits, idleTransactionMillisMax: 200 })
  onTestFinished(() => sql.end({ timeout: 1 }))
  const stopped = pipelinedTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(1)`
    // Waits until the server has ended the transaction.
    await direct`select pg_advisory_lock(1), pg_advisory_unlock(1)`
    await tx`select 1`
  })
  await expect(stopped).rejects.toSatisfy(isOutage)
  expect(await sql`select 1 as answer`).toEqual([{ answer: 1 }])
})

test('a connection can be reserved after failed attempts during an outage', async () => {
  const passage = await passageTo(url)
  await passage.block()
  const sql = connectPostgres(passage.url, 1)
  onTestFinished(() => sql.end({ timeout: 1 }))
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await expect(sql.reserve()).rejects.toSatisfy(isOutage)
    await sleep(20)
  }
  await passage.open()
  const reserve = async (): Promise<Awaited<ReturnType<Database['reserve']>>> =>
    sql.reserve().catch((error: unknown) => {
      if (isOutage(error)) return reserve()
      throw error
    })
  const reserved = await reserve()
  expect(await reserved`select 1 as answer`).toEqual([{ answer: 1 }])
  await passage.block()
  await passage.open()
  await expect(reserved`select 1`).rejects.toSatisfy(isOutage)
  // Releasing a lost reservation does not affect the next query.
  reserved.release()
  const rows = await eventually(
    () => sql`select 2 as two`.catch(() => []),
    (found) => found.length === 1,
  )
  expect([...rows]).toEqual([{ two: 2 }])
})

test('a query whose connection the server ends fails with the reason of the server', async () => {
  const sql = connectPostgres(url, 1)
  onTestFinished(() => sql.end({ timeout: 1 }))
  await expect(sql`select pg_terminate_backend(pg_backend_pid())`).rejects.toMatchObject({ code: '57P01' })
  expect(await sql`select 1 as answer`).toEqual([{ answer: 1 }])
})

test('a query fails as an outage when the server closes each connection before it answers', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.on('error', () => {}).on('data', () => socket.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const closing = new URL(url)
  closing.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const sql = connectPostgres(closing.href, 1)
  onTestFinished(() => sql.end({ timeout: 1 }))
  await expect(sql`select 1`).rejects.toSatisfy(isOutage)
  expect(connections).toBe(1)
})

test('a transaction that begins behind as many queries as a connection takes at once has it to itself', async () => {
  const sql = connectPostgres(url, 1)
  onTestFinished(() => sql.end({ timeout: 1 }))
  await sql`select 1`
  // The driver's default of `max_pipeline`.
  const queriesMax = 100
  const queries = Array.from({ length: queriesMax }, () => sql`select 1 as answer`.execute())
  const transaction = sql.begin(async (tx) => [await tx`select txid_current()`, await tx`select txid_current()`])
  const [[first], [second]] = (await transaction) as unknown as [[object], [object]]
  expect(first).toEqual(second)
  expect((await Promise.all(queries)).length).toBe(queriesMax)
})

test.each([
  ['a query', (sql: Database) => sql`select pg_sleep(10)`],
  ['a transaction', (sql: Database) => sql.begin((tx) => tx`select pg_sleep(10)`)],
])('a pool ends after %s whose connection was lost, and while it is lost', async (_, ask) => {
  for (const isEnding of [false, true]) {
    const passage = await passageTo(url)
    const sql = connectPostgres(passage.url, 1)
    const [backend] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
    const lost = expect(ask(sql)).rejects.toSatisfy(isOutage)
    await eventually(
      () => direct`select 1 from pg_stat_activity where pid = ${backend?.pid ?? 0} and wait_event = 'PgSleep'`,
      (rows) => rows.length === 1,
    )
    const ended = isEnding ? sql.end() : undefined
    await passage.block()
    await lost
    await (ended ?? sql.end())
  }
})
