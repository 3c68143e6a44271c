import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { connectPostgres, type Database, isOutage } from '../../db/connection.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { passageTo } from '../support/relays.ts'

// Its own, since other tests' connections must not be the ones that are broken.
const database = await createEmptyDatabase()
const { url } = database
const direct = connectPostgres(url, 1)
afterAll(async () => {
  await direct.end({ timeout: 1 })
  await database.drop()
})
const poolSize = 8

const questions: Record<string, (sql: Database) => Promise<unknown>> = {
  'a query': (sql) => sql`select 1 as one`,
  'a query with arrays': (sql) => sql`select ${[1, 2]}::int[] as numbers, ${'text'}::text as words`,
  'a transaction': (sql) =>
    sql.begin(async (tx) => {
      await tx`select ${1}::int as one`
      await tx`select pg_sleep(0.002)`
      await tx`select 2 as two`
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
    const until = Date.now() + 1000
    const askers = Array.from({ length: poolSize }, async () => {
      while (Date.now() < until) {
        await questions[what]?.(sql).then(
          () => {
            answers += 1
          },
          (error: unknown) => failures.push(error),
        )
      }
    })
    while (Date.now() < until) {
      await breakers[how]?.(passage)
      await sleep(50)
    }
    // None is left unanswered, and none ended the process.
    await Promise.all(askers)
    expect(answers).toBeGreaterThan(0)
    expect(failures.length).toBeGreaterThan(0)
    expect(failures.filter((error) => !isOutage(error))).toEqual([])
    const after = await Promise.all(
      Array.from({ length: poolSize }, () => sql`select pg_sleep(0.05), pg_backend_pid() as pid`),
    )
    expect(new Set(after.map(([row]) => row?.pid)).size).toBe(poolSize)
    await sql.end({ timeout: 1 })
  },
)
