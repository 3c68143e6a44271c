/** Migrations that change the type of a column while requests read it. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { connectPostgres } from '../../../db/connection.ts'
import { givePlan, startApi } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'

interface Summary {
  readonly user: { readonly id: string }
}

// Few connections share the statements of many requests.
const api = await startApi({ SVC_DATABASE_POOL: '2' })
const migrations = connectPostgres(api.services.config.database.url, 1)
atEnd(() => migrations.end({ timeout: 1 }))

const usersCount = 24
const users = await Promise.all(Array.from({ length: usersCount }, () => api.given.user()))
for (const { userId } of users) await givePlan(api.sql, userId)

async function changeTypes(count: number): Promise<void> {
  await migrations.unsafe(`alter table users alter plan_until type ${count % 2 === 0 ? 'timestamp' : 'timestamptz'}`)
  await migrations.unsafe(`alter table instances alter region type ${count % 2 === 0 ? 'varchar(80)' : 'text'}`)
}

test('signed-in users get their own accounts, no 401 and no 500 while the types of columns change', async () => {
  const wrong: unknown[] = []
  const statuses = new Set<number>()
  let isOver = false
  const ask = async ({ userId, bearer }: (typeof users)[number]) => {
    while (!isOver) {
      const account = await api.get<Summary>('/auth/session', { bearer })
      if (account.status === 200 && account.body.user.id !== userId) wrong.push(account.body)
      const relays = await api.get('/relay/active', { bearer })
      const started = await api.post('/relay/start', {}, { bearer, headers: { 'Idempotency-Key': randomUUID() } })
      for (const { status } of [account, relays, started]) statuses.add(status)
    }
  }
  const asking = users.map(ask)
  for (let count = 0; count < 8; count += 1) {
    await changeTypes(count)
    await sleep(20)
  }
  isOver = true
  await Promise.all(asking)
  expect(wrong).toEqual([])
  // 503 is an outage, after which clients try again. A start counts against the limit of its account.
  expect([...statuses].filter((status) => ![200, 201, 429, 503].includes(status))).toEqual([])
})

test('requests that only read are answered although their statements are outdated', async () => {
  const askAll = () => Promise.all(users.map(({ bearer }) => api.get('/auth/session', { bearer })))
  for (let count = 0; count < 2; count += 1) {
    await changeTypes(count)
    expect((await askAll()).map(({ status }) => status)).toEqual(Array(usersCount).fill(200))
  }
})
