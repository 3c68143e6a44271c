/** The comparison of stored subscriptions with the list of the billing provider, and the events that it makes. */
import { randomUUID } from 'node:crypto'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { reconcile } from '../../../activities/billing/reconciliation.ts'
import { billingReconciliationJobs } from '../../../activities/billing/reconciliation-jobs.ts'
import { createWorkerMetrics } from '../../../activities/worker/metrics.ts'
import { findCustomerId } from '../../../db/billing/customers.ts'
import { claimInboxWakes } from '../../../db/billing/subscription-wakes.ts'
import type { BillingEvent } from '../../../domain/billing/event.ts'
import { createLog } from '../../../platform/log.ts'
import { createListedSubscription } from '../../../providers/billing/payload.ts'
import {
  type BillingProvider,
  BillingProviderError,
  type ListedSubscription,
} from '../../../providers/billing/provider.ts'
import { newAccount, startBillingDatabase } from '../../support/billing-database.ts'

const sql = await startBillingDatabase()
const logged: string[] = []
const log = createLog('worker', 'debug', { write: (line) => void logged.push(line) })

const [start, end] = [Date.parse('2026-03-01T10:00:00Z'), Date.parse('2126-04-01T10:00:00Z')]

type ListedFields = Partial<Omit<BillingEvent, 'key' | 'provider'>>

/** An entry of the provider's list: an active plan by default. */
const listEntry = (userRef: string | null, fields: ListedFields = {}): ListedSubscription =>
  createListedSubscription(userRef, {
    provider: 'stripe',
    subscriptionId: `sub_${randomUUID()}`,
    kind: 'plan',
    action: 'activate',
    at: start,
    periodStart: start,
    periodEnd: end,
    ...fields,
  })

const run = (list: readonly ListedSubscription[], more: { dryRun?: boolean } = {}) =>
  reconcile({ sql, log, provider: { name: 'stripe', list: async () => [...list] }, ...more })

interface Row {
  readonly status?: string
  readonly quantity?: number
  readonly addons?: number
  readonly periodEnd?: number | null
}

/** Stores a subscription as its account's workflow does. */
async function storeSubscription(
  userId: string,
  { event }: ListedSubscription,
  { status = 'active', quantity = 1, addons = 0, periodEnd = end }: Row,
) {
  await sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status, quantity, addons, period_end)
    values ('stripe', ${event.subscriptionId}, ${event.kind}, ${userId}, ${status}, ${quantity}, ${addons},
      ${periodEnd === null ? null : new Date(periodEnd)})`
}

const eventsOf = (userId: string) => sql`
  select provider, event_key, type, action, user_ref, subscription_id, event, octet_length(body) as bytes, status, occurred_at
  from billing_events where user_id = ${userId} order by seq`

/** All rows that reconciliation may change. */
const readRows = async () => [
  await sql`select * from billing_events order by seq`,
  await sql`select * from subscriptions`,
]

test('the last listed customer of each subscription is recorded, except in a dry run', async () => {
  const userId = await newAccount(sql)
  const many = Array.from({ length: 1200 }, (_, index) => ({ ...listEntry(null), customerId: `cus_${index}` }))
  const entry = { ...listEntry(userId), customerId: 'cus_before' }
  await storeSubscription(userId, entry, { status: 'active' })
  await run([entry], { dryRun: true })
  expect(await findCustomerId(sql, 'stripe', userId)).toBeUndefined()
  await run([...many, entry, listEntry(null)])
  await run([{ ...entry, customerId: 'cus_now' }])
  expect(await findCustomerId(sql, 'stripe', userId)).toBe('cus_now')
  const [counted] = await sql`select count(*)::int as rows from billing_customers where customer_id like 'cus_%'`
  expect(counted).toEqual({ rows: many.length + 1 })
})

test('a listed subscription without any webhook becomes an event of its account', async () => {
  const userId = await newAccount(sql)
  const entry = listEntry(userId.toUpperCase())
  const result = await run([entry])
  expect(result).toMatchObject({ listed: 1, corrected: 1, held: 0, unknown: [] })
  expect(result.differences).toEqual([
    {
      subscriptionId: entry.event.subscriptionId,
      kind: 'plan',
      userId,
      stored: 'none',
      listed: 'active × 1 until 2126-04-01T10:00:00.000Z',
      outcome: 'corrected',
    },
  ])
  expect(await eventsOf(userId)).toEqual([
    {
      provider: 'stripe',
      eventKey: entry.event.key,
      type: 'reconciliation',
      action: 'activate',
      userRef: userId,
      subscriptionId: entry.event.subscriptionId,
      event: entry.event,
      bytes: 0,
      status: 'pending',
      occurredAt: new Date(start),
    },
  ])
})

test.each([
  ['active', {}, { status: 'active' }],
  ['active, without a listed period', { periodEnd: null }, { status: 'active' }],
  ['add-ons', { kind: 'addon', quantity: 2 }, { status: 'active', quantity: 2 }],
  ['add-ons without a listed number', { kind: 'addon', quantity: null }, { status: 'active', quantity: 2 }],
  ['a plan with add-ons', { addons: 2 }, { addons: 2 }],
  ['cancelled', { action: 'cancelled' }, { status: 'cancelled' }],
  ['cancelled and ended', { action: 'cancelled', periodEnd: start + 1 }, { status: 'ended' }],
  ['past due', { action: 'payment_failed', periodEnd: null }, { status: 'past_due' }],
  ['ended', { action: 'downgrade', periodEnd: null }, { status: 'ended', periodEnd: start }],
] as const)('an equal subscription is not changed: %s', async (_what, fields, row) => {
  const userId = await newAccount(sql)
  const entry = listEntry(userId, fields)
  await storeSubscription(userId, entry, row)
  expect(await run([entry])).toMatchObject({ listed: 1, differences: [], corrected: 0 })
  expect(await eventsOf(userId)).toEqual([])
})

test.each([
  ['another status', {}, { status: 'ended' }, 'ended × 1 until 2126-04-01T10:00:00.000Z'],
  ['a settled failure', {}, { status: 'past_due' }, 'past_due × 1 until 2126-04-01T10:00:00.000Z'],
  [
    'another number of add-ons',
    { kind: 'addon', quantity: 3 },
    { status: 'active' },
    'active × 1 until 2126-04-01T10:00:00.000Z',
  ],
  ['add-ons beside the plan', { addons: 2 }, {}, 'active × 1 until 2126-04-01T10:00:00.000Z'],
  ['no more add-ons beside the plan', {}, { addons: 1 }, 'active × 1 with 1 add-ons until 2126-04-01T10:00:00.000Z'],
  ['another period', {}, { status: 'active', periodEnd: end - 1 }, 'active × 1 until 2126-04-01T09:59:59.999Z'],
  ['an unknown period', {}, { status: 'active', periodEnd: null }, 'active × 1'],
  ['a lost cancellation', { action: 'cancelled' }, { status: 'active' }, 'active × 1 until 2126-04-01T10:00:00.000Z'],
  ['a lost failure', { action: 'payment_failed' }, { status: 'active', periodEnd: null }, 'active × 1'],
  ['a lost end', { action: 'downgrade' }, { status: 'active', periodEnd: null }, 'active × 1'],
] as const)('a difference becomes an event: %s', async (_what, fields, row, stored) => {
  const userId = await newAccount(sql)
  const entry = listEntry(userId, fields)
  await storeSubscription(userId, entry, row)
  const { differences, corrected } = await run([entry])
  expect([differences.length, differences[0]?.stored, corrected]).toEqual([1, stored, 1])
  expect(await eventsOf(userId)).toMatchObject([{ event: entry.event, status: 'pending' }])
})

test('a second run changes nothing, before and after the workflow applies the events', async () => {
  const users = await Promise.all([1, 2, 3].map(() => newAccount(sql)))
  const list = users.map((userId) => listEntry(userId))
  expect(await run(list)).toMatchObject({ corrected: 3 })
  const before = await readRows()
  expect(await run(list)).toMatchObject({ corrected: 0, differences: list.map(() => ({ outcome: 'repeated' })) })
  expect(await readRows()).toEqual(before)
  for (const [index, entry] of list.entries()) await storeSubscription(users[index] ?? '', entry, { status: 'active' })
  await sql`update billing_events set status = 'applied' where user_id = any(${users})`
  expect(await run(list)).toMatchObject({ corrected: 0, differences: [] })
})

test('an equal event is not recorded again until another event of the subscription arrives', async () => {
  const userId = await newAccount(sql)
  const entry = listEntry(userId)
  const again = () => {
    const { key: _, ...fields } = entry.event
    return createListedSubscription(userId, { ...fields, at: fields.at + 3_600_000 * (1 + Math.random()) })
  }
  await storeSubscription(userId, entry, { status: 'ended' })
  await run([entry])
  expect((await run([again()])).differences).toMatchObject([{ outcome: 'repeated' }])
  expect(await eventsOf(userId)).toHaveLength(1)
  await sql`
    insert into billing_events (provider, event_key, type, action, user_id, subscription_id, event, body, status)
    select provider, ${randomUUID()}, 'x', 'downgrade', user_id, subscription_id,
      event || '{"key": "evt_1", "action": "downgrade"}', '', 'applied' from billing_events where user_id = ${userId}`
  expect((await run([again()])).differences).toMatchObject([{ outcome: 'corrected' }])
})

test('a difference that remains after the event is applied is logged and counted in each run', async () => {
  const userId = await newAccount(sql)
  const entry = listEntry(userId)
  const registry = new Registry()
  const provider = { name: 'stripe', list: async () => [entry] } as unknown as BillingProvider
  const [job] = billingReconciliationJobs({ sql, log, metrics: createWorkerMetrics(registry), provider })
  const counted = async (outcome: string) =>
    (await registry.getSingleMetric('svc_billing_reconciliation_differences_total')?.get())?.values.find(
      ({ labels }) => labels.outcome === outcome,
    )?.value
  await storeSubscription(userId, entry, { status: 'ended' })
  await job?.run()
  expect([await counted('corrected'), await counted('unsettled')]).toEqual([1, 0])
  await sql`update billing_events set status = 'applied' where user_id = ${userId}`
  await job?.run()
  expect([await counted('corrected'), await counted('unsettled')]).toEqual([1, 1])
  expect(await eventsOf(userId)).toHaveLength(1)
  expect(logged.at(-1)).toContain(entry.event.subscriptionId)
  const result = await run([entry])
  expect(result).toMatchObject({ corrected: 0, unsettled: 1, differences: [{ outcome: 'unsettled' }] })
})

test('an event that is recorded already is not counted as a correction', async () => {
  const userId = await newAccount(sql)
  const entry = listEntry(userId)
  await run([entry])
  await sql`
    insert into billing_events (provider, event_key, type, action, user_ref, user_id, subscription_id, event, body, status)
    select provider, ${randomUUID()}, 'x', 'downgrade', user_ref, user_id, subscription_id,
      event || '{"key": "evt_1", "action": "downgrade"}', '', 'pending' from billing_events where user_id = ${userId}`
  expect(await run([entry])).toMatchObject({ corrected: 0, differences: [{ outcome: 'repeated' }] })
})

test('a subscription listed with another account moves there, and the workflows of both accounts are woken', async () => {
  const [owner, named] = [await newAccount(sql), await newAccount(sql)]
  const first = listEntry(owner)
  expect(await run([first])).toMatchObject({ corrected: 1 })
  await storeSubscription(owner, first, { status: 'active' })
  const { key: _, ...content } = first.event
  const moved = createListedSubscription(named, { ...content, at: content.at + 1000 })
  const result = await run([moved])
  expect(result.differences).toEqual([
    {
      subscriptionId: first.event.subscriptionId,
      kind: 'plan',
      userId: named,
      stored: `active × 1 until 2126-04-01T10:00:00.000Z of account ${owner}`,
      listed: 'active × 1 until 2126-04-01T10:00:00.000Z',
      outcome: 'corrected',
    },
  ])
  expect([await eventsOf(owner), await eventsOf(named)]).toMatchObject([
    [],
    [{ event: first.event }, { event: moved.event }],
  ])
  expect(await claimInboxWakes(sql, -1, 1000)).toEqual(expect.arrayContaining([owner, named]))
})

test('a subscription listed without a known account stays with its owner', async () => {
  const userId = await newAccount(sql)
  const first = listEntry(userId)
  await run([first])
  await storeSubscription(userId, first, { status: 'active' })
  const { key: _, ...content } = first.event
  for (const [index, userRef] of [null, randomUUID()].entries()) {
    const ended = createListedSubscription(userRef, {
      ...content,
      action: 'downgrade',
      at: content.at + 1000 + index,
      quantity: index,
    })
    expect(await run([ended])).toMatchObject({ unknown: [], differences: [{ userId, outcome: 'corrected' }] })
    expect(await eventsOf(userId)).toHaveLength(2 + index)
  }
})

test('subscriptions that the list lacks are not changed', async () => {
  const userId = await newAccount(sql)
  const [missing, other] = [listEntry(userId), listEntry(await newAccount(sql), { action: 'downgrade' })]
  await storeSubscription(userId, missing, { status: 'active' })
  const before = await readRows()
  for (const list of [[], [other]])
    expect(await run(list)).toMatchObject({ differences: [], corrected: 0, unknown: [] })
  expect(await readRows()).toEqual(before)
})

test('a failing list changes nothing, and the job fails', async () => {
  const before = await readRows()
  const failing = {
    name: 'stripe',
    list: async () => {
      throw new BillingProviderError('stripe answered 500')
    },
  } as unknown as BillingProvider
  await expect(reconcile({ sql, log, provider: failing })).rejects.toThrow(BillingProviderError)
  const metrics = createWorkerMetrics(new Registry())
  const [job] = billingReconciliationJobs({ sql, log, metrics, provider: failing })
  await expect(job?.run()).rejects.toThrow('stripe answered 500')
  expect(await readRows()).toEqual(before)
})

test('the stored owner applies if the list names no account', async () => {
  const userId = await newAccount(sql)
  for (const userRef of [null, 'not an account of ours']) {
    const entry = listEntry(userRef)
    await storeSubscription(userId, entry, { status: 'past_due' })
    expect((await run([entry])).differences).toMatchObject([{ userId, outcome: 'corrected' }])
  }
})

test('a subscription without a known account is reported unless it has ended', async () => {
  const [unnamed, deleted] = [listEntry(null), listEntry(randomUUID())]
  const ended = [
    listEntry(null, { action: 'downgrade' }),
    listEntry(null, { action: 'cancelled', periodEnd: start + 1 }),
  ]
  const before = await readRows()
  const result = await run([unnamed, deleted, ...ended])
  expect(result).toMatchObject({ listed: 4, differences: [], corrected: 0 })
  expect(result.unknown).toEqual([unnamed.event.subscriptionId, deleted.event.subscriptionId])
  expect(logged.join('')).toContain(unnamed.event.subscriptionId)
  expect(await readRows()).toEqual(before)
})

test('a subscription that ended before its first webhook is not a difference', async () => {
  const userId = await newAccount(sql)
  expect(await run([listEntry(userId, { action: 'downgrade' })])).toMatchObject({ differences: [], unknown: [] })
})

test('a plan and add-ons with the same id are two subscriptions', async () => {
  const userId = await newAccount(sql)
  const plan = listEntry(userId)
  const addon = listEntry(userId, { kind: 'addon', quantity: 1, subscriptionId: plan.event.subscriptionId })
  await storeSubscription(userId, plan, { status: 'active' })
  expect((await run([plan, addon])).differences).toMatchObject([{ kind: 'addon', stored: 'none' }])
})

test('a dry run reports corrections without recording them', async () => {
  const userId = await newAccount(sql)
  const list = [listEntry(userId)]
  expect(await run(list, { dryRun: true })).toMatchObject({ corrected: 0, differences: [{ outcome: 'corrected' }] })
  expect(await eventsOf(userId)).toEqual([])
  expect(await run(list)).toMatchObject({ corrected: 1 })
})

test('a run corrects at most fifty subscriptions and logs an error if more differ', async () => {
  const users: string[] = []
  for (let count = 0; count < 60; count += 1) users.push(await newAccount(sql))
  const list = users.map((userId) => listEntry(userId))
  expect(await run(list)).toMatchObject({ corrected: 50, held: 10 })
  expect(logged.at(-1)).toContain('"level":"error"')
  expect(await run(list)).toMatchObject({ corrected: 10, held: 0 })
  expect(await run(list)).toMatchObject({ corrected: 0, held: 0 })
})

test('several batches are compared, each entry with its own row', async () => {
  const userId = await newAccount(sql)
  const list = Array.from({ length: 1001 }, (_, index) => listEntry(userId, { kind: 'addon', quantity: index % 4 }))
  const rows = list.map(({ event }) => ({ id: event.subscriptionId, quantity: event.quantity ?? 0 }))
  await sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status, quantity, period_end)
    select 'stripe', id, 'addon', ${userId}, 'active', quantity, ${new Date(end)}
    from unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ quantity }) => quantity)}::int[]) as r (id, quantity)`
  expect(await run(list)).toMatchObject({ listed: 1001, differences: [] })
  const last = list.at(-1)
  await sql`update subscriptions set status = 'ended' where subscription_id = ${last?.event.subscriptionId ?? ''}`
  expect((await run(list)).differences.map(({ subscriptionId }) => subscriptionId)).toEqual([
    last?.event.subscriptionId,
  ])
})
