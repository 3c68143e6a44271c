/** The spans of statements in traces. */
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { withStatementSpans } from '../../db/statement-spans.ts'
import type { Span } from '../../platform/tracing.ts'
import { createDatabase } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'

interface RecordedSpan {
  readonly texts: string[]
  readonly failures: string[]
  isEnded: boolean
}

let sql: Database
let spans: RecordedSpan[] = []
let isTracing = true

const startChildSpan = (): Span | undefined => {
  if (!isTracing) return undefined
  const span: RecordedSpan = { texts: [], failures: [], isEnded: false }
  spans.push(span)
  return {
    setName: () => {},
    setAttribute: (name, value) => void (name === 'db.query.text' && span.texts.push(String(value))),
    fail: (kind) => void span.failures.push(kind),
    end: () => {
      span.isEnded = true
    },
  }
}

beforeAll(async () => {
  const database = await createDatabase()
  const pool = connectPostgres(database.url, 2)
  atEnd(async () => {
    await pool.end({ timeout: 5 })
    await database.drop()
  })
  sql = withStatementSpans(pool, { startChildSpan })
})

beforeEach(() => {
  spans = []
  isTracing = true
})

test('a statement with fragments is one span with its text, without its parameters', async () => {
  const secret = 'a secret'
  const rows = await sql`select ${secret} as value, ${sql`1 + ${1}`} as sum`
  expect(rows[0]).toEqual({ value: secret, sum: 2 })
  expect(spans).toEqual([{ texts: ['select $1 as value, 1 + $2 as sum'], failures: [], isEnded: true }])
})

test('the statements of a reserved connection are spans, as those of a start', async () => {
  const reserved = await sql.reserve()
  await Promise.all([reserved`begin`.execute(), reserved`select 1`])
  await reserved`commit`
  reserved.release()
  expect(spans.map(({ texts, isEnded }) => [...texts, isEnded])).toEqual([
    ['begin', true],
    ['select 1', true],
    ['commit', true],
  ])
})

test('the statements of a transaction and of its savepoints are spans', async () => {
  const result = await sql.begin(async (tx) => {
    await tx`select 1`
    return tx.savepoint(async (inner) => (await inner`select 2 as two`)[0])
  })
  expect(result).toEqual({ two: 2 })
  expect(spans.map(({ texts }) => texts)).toEqual([['select 1'], ['select 2 as two']])
})

test('a statement that fails rejects as before, and its span has the code of the error', async () => {
  await expect(sql`select 1 / ${0}::int`).rejects.toMatchObject({ code: '22012' })
  expect(spans).toMatchObject([{ failures: ['22012'], isEnded: true }])
})

test('a transaction that fails is rolled back', async () => {
  await sql`create table traced (id int)`
  const failing = sql.begin(async (tx) => {
    await tx`insert into traced values (1)`
    throw new Error('rolled back')
  })
  await expect(failing).rejects.toThrow('rolled back')
  expect(await sql`select from traced`).toHaveLength(0)
})

test('outside of a span a statement runs without one', async () => {
  isTracing = false
  expect(await sql`select 1 as answer`).toEqual([{ answer: 1 }])
  expect(spans).toEqual([])
})
