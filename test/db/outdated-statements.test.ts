/** Statements that Postgres refuses because the schema changed, and the connections on which something failed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { connectPostgres, type Database, isOutage, isStatementOutdated } from '../../db/connection.ts'
import { pipelinedTransaction } from '../../db/pipelined-transaction.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { eventually } from '../support/relays.ts'

const database = await createEmptyDatabase()
const direct = connectPostgres(database.url, 1)
await direct`create table owners (id int primary key, name text not null)`
await direct`insert into owners select id, 'owner ' || id from generate_series(1, 24) id`
afterAll(async () => {
  await direct.end({ timeout: 1 })
  await database.drop()
})

function poolOf(connectionsMax: number): Database {
  const sql = connectPostgres(database.url, connectionsMax)
  onTestFinished(() => sql.end({ timeout: 1 }))
  return sql
}

const changeType = (type: string) => direct.unsafe(`alter table owners alter name type ${type}`)
beforeEach(async () => void (await changeType('text')))

const ownerOf = (sql: Database, id: number) => sql`select id, name from owners where id = ${id}`
const errorOf = (work: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(work).then(
    () => undefined,
    (e) => e,
  )

test('no query gets the row of another one while the type of a column changes', async () => {
  const sql = poolOf(4)
  const wrong: unknown[] = []
  let refused = 0
  let isOver = false
  const askers = Array.from({ length: 24 }, async (_, index) => {
    const id = index + 1
    while (!isOver) {
      const rows = await ownerOf(sql, id).catch((error: unknown) => {
        if (!isStatementOutdated(error)) wrong.push(error)
        refused += 1
      })
      if (rows && (rows.length !== 1 || rows[0]?.id !== id || rows[0].name !== `owner ${id}`)) wrong.push([id, rows])
    }
  })
  for (let change = 0; change < 40 || refused === 0; change += 1) {
    await changeType(change % 2 === 0 ? 'varchar(40)' : 'text')
    await sleep(5)
  }
  isOver = true
  await Promise.all(askers)
  expect(wrong).toEqual([])
})

test('a refused statement fails as an outage once, and is prepared again on all connections', async () => {
  const sql = poolOf(4)
  const askAll = () =>
    Promise.all(Array.from({ length: 4 }, () => sql`select name, pg_sleep(0.02) from owners limit 1`))
  await askAll()
  await changeType('varchar(40)')
  const error = await errorOf(askAll())
  expect([isOutage(error), isStatementOutdated(error)]).toEqual([true, true])
  expect((await askAll()).map((rows) => rows.length)).toEqual([1, 1, 1, 1])
})

test.each([
  ['forgotten by a pooler', 'deallocate all', 'deallocate all'],
  [
    'compared with another type',
    'alter table owners alter id type text',
    'alter table owners alter id type int using id::int',
  ],
])('a statement that is %s is prepared again', async (_, change, undo) => {
  const sql = poolOf(1)
  onTestFinished(async () => void (await direct.unsafe(undo)))
  await ownerOf(sql, 1)
  await (change === undo ? sql : direct).unsafe(change)
  expect(isStatementOutdated(await errorOf(ownerOf(sql, 1)))).toBe(true)
  expect(await ownerOf(sql, 1)).toHaveLength(1)
})

test('a query that fails after its first rows leaves none of them to the next one', async () => {
  const sql = poolOf(1)
  expect(await errorOf(sql`select 1 / (5 - n) from generate_series(1, 10) n`)).toMatchObject({ code: '22012' })
  expect([...(await sql`select 1 as answer`)]).toEqual([{ answer: 1 }])
})

test('a query with a value that cannot be sent fails alone', async () => {
  const sql = poolOf(1)
  await ownerOf(sql, 1)
  const missing = undefined as unknown as number
  const settled = await Promise.allSettled([ownerOf(sql, 1), ownerOf(sql, missing), ownerOf(sql, 2), ownerOf(sql, 3)])
  expect(settled.map((result) => (result.status === 'fulfilled' ? result.value[0]?.id : result.reason.code))).toEqual([
    1,
    'UNDEFINED_VALUE',
    2,
    3,
  ])
})

describe('a connection that is inside of a transaction is not used by others', () => {
  const ids = async (sql: Database) =>
    (await Promise.all(Array.from({ length: 3 }, () => ownerOf(sql, 1)))).map((rows) => rows[0]?.id)

  test('after it is released with an aborted transaction', async () => {
    const sql = poolOf(1)
    const reserved = await sql.reserve()
    await reserved`begin`
    await errorOf(reserved`select 1 / 0`)
    reserved.release()
    expect(await ids(sql)).toEqual([1, 1, 1])
  })

  test('after it is released while a statement runs', async () => {
    const sql = poolOf(1)
    const reserved = await sql.reserve()
    const running = errorOf(reserved`select pg_sleep(1)`)
    await eventually(
      () => direct`select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
      (rows) => rows.length === 1,
    )
    const waiting = errorOf(reserved`select 1`)
    reserved.release()
    expect([isOutage(await running), isOutage(await waiting), await ids(sql)]).toEqual([true, true, [1, 1, 1]])
  })

  test('after a statement of the pool began one', async () => {
    const sql = poolOf(1)
    expect(await errorOf(sql`begin`)).toMatchObject({ code: 'UNSAFE_TRANSACTION' })
    await sql`update owners set name = 'owner 1' where id = 1`
    expect(
      await direct`select 1 from pg_stat_activity where state like 'idle in%' and datname = current_database()`,
    ).toHaveLength(0)
  })

  test('after its pool has ended', async () => {
    const sql = poolOf(1)
    const reserved = await sql.reserve()
    const [row] = await reserved<{ pid: number }[]>`select pg_backend_pid() as pid`
    const ended = sql.end()
    reserved.release()
    await ended
    await eventually(
      () => direct`select 1 from pg_stat_activity where pid = ${row?.pid ?? 0}`,
      (rows) => rows.length === 0,
    )
    expect(isOutage(await errorOf(sql.reserve()))).toBe(true)
  })
})

describe.each<[string, (sql: Database, run: (tx: Database) => Promise<unknown>) => Promise<unknown>]>([
  ['a transaction', (sql, run) => sql.begin((tx) => run(tx as unknown as Database))],
  ['a pipelined transaction', (sql, run) => pipelinedTransaction(sql, (tx) => run(tx as Database))],
])('%s', (_, transaction) => {
  test('whose statements are outdated is rolled back, and its connection serves the next one', async () => {
    const sql = poolOf(1)
    const read = () => transaction(sql, async (tx) => (await Promise.all([ownerOf(tx, 1), ownerOf(tx, 2)])).flat())
    await read()
    for (const type of ['varchar(40)', 'text', 'varchar(40)']) {
      await changeType(type)
      expect(isOutage(await errorOf(read()))).toBe(true)
      expect(await read()).toHaveLength(2)
    }
  })

  test('executes nothing of what is left of it after it was rolled back', async () => {
    const sql = poolOf(1)
    let late: Promise<unknown> = Promise.resolve()
    const failed = transaction(sql, async (tx) => {
      await tx`select 1`
      const write = async () => {
        await tx`select 1`
        for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
        await tx`update owners set name = 'lost' where id = 1`
      }
      late = errorOf(write())
      await tx`select 1 / 0`
    })
    expect(await errorOf(failed)).toMatchObject({ code: '22012' })
    await late
    expect(await ownerOf(direct, 1)).toMatchObject([{ name: 'owner 1' }])
  })
})
