import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { billingJobs } from '../../../activities/jobs/billing-jobs.ts'
import { createReminders } from '../../../activities/jobs/reminders.ts'
import { startApi, type TestApi } from '../../support/api.ts'

const minute = 60_000

test('who does not act is told ever more seldom, down to once in ten minutes', () => {
  let now = 0
  const reminders = createReminders(() => now)
  const toldAt: number[] = []
  for (; now < 60 * minute; now += 2000) {
    if (reminders.resting().includes('deaf')) continue
    toldAt.push(now)
    reminders.told('deaf')
  }
  const pauses = toldAt.slice(1).map((at, index) => (at - (toldAt[index] ?? 0)) / 1000)
  expect(pauses).toEqual([4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, 600])
})

test('who acted is told at once of what comes later, and begins anew', () => {
  let now = 0
  const reminders = createReminders(() => now)
  for (const at of [0, 4000, 12_000]) {
    now = at
    reminders.told('slow')
  }
  now += 16_000 - 1
  expect(reminders.resting()).toEqual(['slow'])
  now += minute + 1
  expect(reminders.resting()).toEqual([])
  reminders.told('slow')
  now += 4000
  expect(reminders.resting()).toEqual([])
})

let api: TestApi
beforeAll(async () => {
  api = await startApi()
})

test('actors that do not act keep the jobs from nobody, and one that could not be told is told in the next round', async () => {
  const { sql, log } = api.services
  const [deaf, away] = [(await api.given.user()).userId, (await api.given.user()).userId]
  for (const userId of [deaf, away]) {
    await sql`
      insert into billing_events (provider, event_key, type, action, fact, body, status, user_id, received_at)
      values ('sandbox', ${randomUUID()}, 'x', 'refund', ${sql.json({ key: 'x' })}, '', 'pending', ${userId}, now() - interval '1 hour')`
    await sql`update users set entitlement_due_at = now() - interval '1 hour' where id = ${userId}`
  }
  const told: string[] = []
  const wake = async (userId: string) => {
    told.push(userId)
    if (userId === away) throw new Error('nobody is there')
  }
  for (const job of billingJobs({
    sql,
    log,
    subscriptions: {
      wake,
      snapshot: async () => undefined,
      listRunning: async () => new Set<string>(),
      isRunning: async () => false,
    },
  })) {
    told.length = 0
    await job.run()
    expect(told.toSorted()).toEqual([deaf, away].toSorted())
    await job.run()
    expect(told.slice(2)).toEqual([away])
  }
})
