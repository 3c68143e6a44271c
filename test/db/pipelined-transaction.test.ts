/** Transactions whose begin and commit are sent with their statements. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { commandLimits, connectPostgres, isOutage } from '../../db/connection.ts'
import { pipelinedTransaction } from '../../db/pipelined-transaction.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { eventually, passageTo } from '../support/relays.ts'
import { countRoundTrips } from '../support/round-trips.ts'

const database = await createEmptyDatabase()
const { url } = database
const sql = connectPostgres(url, 2)
await sql`create table numbers (number int primary key, note text not null default '')`
afterAll(async () => {
  await sql.end({ timeout: 1 })
  await database.drop()
})
beforeEach(async () => void (await sql`truncate numbers`))

const numbers = async () => (await sql`select number from numbers order by number`).map(({ number }) => number)

test('is committed at its end, and returns the result', async () => {
  const result = await pipelinedTransaction(sql, async (tx) => {
    await tx`insert into numbers values (1)`
    return 'done'
  })
  expect([result, await numbers()]).toEqual(['done', [1]])
})

test('is committed with its last statements, which return their rows', async () => {
  const rows = await pipelinedTransaction(sql, async (tx, commitWith) => {
    await tx`insert into numbers values (1)`
    return commitWith(tx`insert into numbers values (2) returning number`, tx`insert into numbers values (3)`)
  })
  expect([...(rows[0] as Iterable<unknown>)]).toEqual([{ number: 2 }])
  expect(await numbers()).toEqual([1, 2, 3])
})

test.each([1, 2000])('takes two round trips, with statements of %i letters', async (length) => {
  const roundTrips = await countRoundTrips(url)
  const counted = connectPostgres(roundTrips.url, 1)
  onTestFinished(() => counted.end({ timeout: 1 }))
  const text = 'x'.repeat(length)
  const insertTwice = () =>
    pipelinedTransaction(counted, async (tx, commitWith) => {
      await Promise.all([tx`select ${text}::text`, tx`select ${1}::int`])
      const insert = () => tx`insert into numbers select count(*), ${text} from numbers`
      await commitWith(insert(), insert())
    })
  // The statements are not prepared before.
  await insertTwice()
  const before = roundTrips.count()
  await insertTwice()
  expect(roundTrips.count() - before).toBe(2)
  expect(await numbers()).toEqual([0, 1, 2, 3])
})

test('stores nothing when its function throws, and its connection serves the next one', async () => {
  const failed = pipelinedTransaction(sql, async (tx) => {
    await tx`insert into numbers values (1)`
    throw new Error('refused')
  })
  await expect(failed).rejects.toThrow('refused')
  expect(await numbers()).toEqual([])
  for (let count = 0; count < 5; count += 1) await pipelinedTransaction(sql, async (tx) => tx`select 1`)
})

test.each([0, 1])('stores nothing when statement %i of those that are sent with the commit fails', async (position) => {
  const failed = pipelinedTransaction(sql, async (tx, commitWith) => {
    await tx`insert into numbers values (1)`
    const statements = [tx`insert into numbers values (2)`, tx`insert into numbers values (3)`]
    statements[position] = tx`insert into numbers values (1)`
    await commitWith(...statements)
  })
  await expect(failed).rejects.toMatchObject({ code: '23505' })
  expect(await numbers()).toEqual([])
})

test('fails when a statement failed whose error was ignored', async () => {
  const failed = pipelinedTransaction(sql, async (tx, commitWith) => {
    await tx`insert into numbers values (1)`
    await tx`select 1 / 0`.catch(() => {})
    await commitWith(tx`select 1`)
  })
  await expect(failed).rejects.toThrow()
  expect(await numbers()).toEqual([])
})

test('more of them than connections wait for each other, and all are committed', async () => {
  const increments = Array.from({ length: 30 }, () =>
    pipelinedTransaction(sql, async (tx, commitWith) => {
      await tx`lock table numbers in exclusive mode`
      const [{ next = 0 } = {}] = await tx<{ next: number }[]>`select count(*)::int + 1 as next from numbers`
      await commitWith(tx`insert into numbers values (${next})`)
    }),
  )
  await Promise.all(increments)
  expect(await numbers()).toHaveLength(30)
})

test('stores nothing and fails as an outage when its connection is lost, also with statements that wait', async () => {
  const passage = await passageTo(url)
  const unreliable = connectPostgres(passage.url, 2, { ...commandLimits, answerMillisMax: 5000 })
  const failed = pipelinedTransaction(unreliable, async (tx) => {
    await tx`insert into numbers values (1)`
    await Promise.all([tx`select pg_sleep(5)`, tx`select 1`, tx`select 2`])
  }).catch((error: unknown) => error)
  await eventually(
    () => sql`select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
    (rows) => rows.length > 0,
  )
  await passage.block()
  expect(isOutage(await failed)).toBe(true)
  await passage.open()
  await sleep(50)
  expect(await pipelinedTransaction(unreliable, async (tx) => (await tx`select 1 as answer`).length)).toBe(1)
  expect(await numbers()).toEqual([])
  await unreliable.end({ timeout: 1 })
})
