/** The recorder of billing events: repetitions that arrive together are stored once. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createBillingEventRecorder } from '../../api/billing-event-recorder.ts'
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import { startApi } from '../support/api.ts'

const { sql, given } = await startApi()

const eventFor = (userRef: string, key = randomUUID()): ReceivedBillingEvent => ({
  provider: 'sandbox',
  key,
  type: 'note',
  userRef,
  event: null,
  problem: null,
  body: Buffer.from('{}'),
})
const stored = (key: string) => sql`select from billing_events where event_key = ${key}`

test('repetitions that arrive together are stored once, and only one of them is new', async () => {
  const record = createBillingEventRecorder(sql)
  const { userId } = await given.user()
  const event = eventFor(userId)
  const results = await Promise.all(Array.from({ length: 50 }, () => record(event)))
  expect(results.filter((recorded) => recorded !== undefined)).toHaveLength(1)
  expect(await stored(event.key)).toHaveLength(1)
  expect(await record(event)).toBeUndefined()
})

test('events with the same key of different providers are different events', async () => {
  const record = createBillingEventRecorder(sql)
  const { userId } = await given.user()
  const event = eventFor(userId)
  const results = await Promise.all([record(event), record({ ...event, provider: 'stripe' })])
  expect(new Set(results.map((recorded) => recorded?.id)).size).toBe(2)
})

test('repetitions of an event that could not be stored fail, and a later one is stored', async () => {
  const record = createBillingEventRecorder(sql)
  const { userId } = await given.user()
  const key = randomUUID()
  const refused = { ...eventFor(userId, key), type: 'a text that Postgres refuses: \0' }
  const results = await Promise.allSettled([record(refused), record(refused), record(refused)])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(await record(eventFor(userId, key))).toBeDefined()
  expect(await stored(key)).toHaveLength(1)
})
