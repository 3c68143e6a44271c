import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { reconcile } from '../../../activities/jobs/billing-reconciliation.ts'
import { billingReconciliationJobs } from '../../../activities/jobs/billing-reconciliation-jobs.ts'
import { reportOf } from '../../../activities/jobs/reconciliation-report.ts'
import { createWorkerMetrics } from '../../../activities/worker/metrics.ts'
import { findCustomerId } from '../../../db/billing-customers.ts'
import { claimInboxWakes } from '../../../db/subscription-wakes.ts'
import type { BillingEvent } from '../../../domain/billing-event.ts'
import { createLog } from '../../../platform/log.ts'
import { createListedSubscription } from '../../../providers/billing/payload.ts'
import {
  type BillingProvider,
  BillingProviderError,
  type ListedSubscription,
} from '../../../providers/billing/provider.ts'
import { newAccount, startBillingDatabase } from '../../support/billing-database.ts'
import { testEnvironment } from '../../support/environment.ts'

const sql = await startBillingDatabase()
const logged: string[] = []
const log = createLog('worker', 'debug', { write: (line) => void logged.push(line) })

const [start, end] = [Date.parse('2026-03-01T10:00:00Z'), Date.parse('2126-04-01T10:00:00Z')]

type Told = Partial<Omit<BillingEvent, 'key' | 'provider'>>

/** A subscription as its provider lists it: an active plan, unless the test says otherwise. */
const inList = (userRef: string | null, told: Told = {}): ListedSubscription =>
  createListedSubscription(userRef, {
    provider: 'stripe',
    subscriptionId: `sub_${randomUUID()}`,
    kind: 'plan',
    action: 'activate',
    at: start,
    periodStart: start,
    periodEnd: end,
    ...told,
  })

const round = (list: readonly ListedSubscription[], more: { dryRun?: boolean } = {}) =>
  reconcile({ sql, log, provider: { name: 'stripe', list: async () => [...list] }, ...more })

interface Row {
  readonly status: string
  readonly quantity?: number
  readonly periodEnd?: number | null
}

/** What the actor wrote of the subscription. */
async function believe(userId: string, { event }: ListedSubscription, { status, quantity = 1, periodEnd = end }: Row) {
  await sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status, quantity, period_end)
    values ('stripe', ${event.subscriptionId}, ${event.kind}, ${userId}, ${status}, ${quantity},
      ${periodEnd === null ? null : new Date(periodEnd)})`
}

const eventsOf = (userId: string) => sql`
  select provider, event_key, type, action, user_ref, subscription_id, event, octet_length(body) as bytes, status, occurred_at
  from billing_events where user_id = ${userId} order by seq`

/** All that a round may touch. */
const everything = async () => [
  await sql`select * from billing_events order by seq`,
  await sql`select * from subscriptions`,
]

test('the customers that the list names are recorded, the last one of each subscription, and none in a dry run', async () => {
  const userId = await newAccount(sql)
  const many = Array.from({ length: 1200 }, (_, index) => ({ ...inList(null), customerId: `cus_${index}` }))
  const one = { ...inList(userId), customerId: 'cus_before' }
  await believe(userId, one, { status: 'active' })
  await round([one], { dryRun: true })
  expect(await findCustomerId(sql, 'stripe', userId)).toBeUndefined()
  await round([...many, one, inList(null)])
  await round([{ ...one, customerId: 'cus_now' }])
  expect(await findCustomerId(sql, 'stripe', userId)).toBe('cus_now')
  const [counted] = await sql`select count(*)::int as rows from billing_customers where customer_id like 'cus_%'`
  expect(counted).toEqual({ rows: many.length + 1 })
})

test('a subscription that no webhook told of becomes an event for its account, as if the provider had sent it', async () => {
  const userId = await newAccount(sql)
  const one = inList(userId.toUpperCase())
  const done = await round([one])
  expect(done).toMatchObject({ listed: 1, applied: 1, held: 0, unknown: [] })
  expect(done.changes).toEqual([
    {
      subscriptionId: one.event.subscriptionId,
      kind: 'plan',
      userId,
      ours: 'nothing',
      theirs: 'active × 1 until 2126-04-01T10:00:00.000Z',
      became: 'told',
    },
  ])
  expect(await eventsOf(userId)).toEqual([
    {
      provider: 'stripe',
      eventKey: one.event.key,
      type: 'reconciliation',
      action: 'activate',
      userRef: userId,
      subscriptionId: one.event.subscriptionId,
      event: one.event,
      bytes: 0,
      status: 'pending',
      occurredAt: new Date(start),
    },
  ])
})

test.each([
  ['active', {}, { status: 'active' }],
  ['active, with a period that the list leaves out', { periodEnd: null }, { status: 'active' }],
  ['add-ons', { kind: 'addon', quantity: 2 }, { status: 'active', quantity: 2 }],
  ['add-ons whose number is not told', { kind: 'addon', quantity: null }, { status: 'active', quantity: 2 }],
  ['cancelled', { action: 'cancelled' }, { status: 'cancelled' }],
  ['cancelled, and over by now', { action: 'cancelled', periodEnd: start + 1 }, { status: 'ended' }],
  ['past due', { action: 'payment_failed', periodEnd: null }, { status: 'past_due' }],
  ['ended', { action: 'downgrade', periodEnd: null }, { status: 'ended', periodEnd: start }],
] as const)('one that we believe the same of is left alone: %s', async (_what, told, row) => {
  const userId = await newAccount(sql)
  const one = inList(userId, told)
  await believe(userId, one, row)
  expect(await round([one])).toMatchObject({ listed: 1, changes: [], applied: 0 })
  expect(await eventsOf(userId)).toEqual([])
})

test.each([
  ['another status', {}, { status: 'ended' }, 'ended × 1 until 2126-04-01T10:00:00.000Z'],
  ['a failure that was settled', {}, { status: 'past_due' }, 'past_due × 1 until 2126-04-01T10:00:00.000Z'],
  [
    'another number of add-ons',
    { kind: 'addon', quantity: 3 },
    { status: 'active' },
    'active × 1 until 2126-04-01T10:00:00.000Z',
  ],
  ['another period', {}, { status: 'active', periodEnd: end - 1 }, 'active × 1 until 2126-04-01T09:59:59.999Z'],
  ['a period that we lack', {}, { status: 'active', periodEnd: null }, 'active × 1'],
  ['a lost cancellation', { action: 'cancelled' }, { status: 'active' }, 'active × 1 until 2126-04-01T10:00:00.000Z'],
  ['a lost failure', { action: 'payment_failed' }, { status: 'active', periodEnd: null }, 'active × 1'],
  ['a lost end', { action: 'downgrade' }, { status: 'active', periodEnd: null }, 'active × 1'],
] as const)('what differs is told: %s', async (_what, told, row, ours) => {
  const userId = await newAccount(sql)
  const one = inList(userId, told)
  await believe(userId, one, row)
  const { changes, applied } = await round([one])
  expect([changes.length, changes[0]?.ours, applied]).toEqual([1, ours, 1])
  expect(await eventsOf(userId)).toMatchObject([{ event: one.event, status: 'pending' }])
})

test('a second round changes nothing, before the actor has taken its events as after it', async () => {
  const users = await Promise.all([1, 2, 3].map(() => newAccount(sql)))
  const list = users.map((userId) => inList(userId))
  expect(await round(list)).toMatchObject({ applied: 3 })
  const seen = await everything()
  expect(await round(list)).toMatchObject({ applied: 0, changes: list.map(() => ({ became: 'repeated' })) })
  expect(await everything()).toEqual(seen)
  for (const [index, one] of list.entries()) await believe(users[index] ?? '', one, { status: 'active' })
  await sql`update billing_events set status = 'applied' where user_id = any(${users})`
  expect(await round(list)).toMatchObject({ applied: 0, changes: [] })
})

test('what the actor was told and sees otherwise is not told again and again, until something else was told', async () => {
  const userId = await newAccount(sql)
  const one = inList(userId)
  const again = () => {
    const { key: _, ...told } = one.event
    return createListedSubscription(userId, { ...told, at: told.at + 3_600_000 * (1 + Math.random()) })
  }
  await believe(userId, one, { status: 'ended' })
  await round([one])
  expect((await round([again()])).changes).toMatchObject([{ became: 'repeated' }])
  expect(await eventsOf(userId)).toHaveLength(1)
  await sql`
    insert into billing_events (provider, event_key, type, action, user_id, subscription_id, event, body, status)
    select provider, ${randomUUID()}, 'x', 'downgrade', user_id, subscription_id,
      event || '{"key": "evt_1", "action": "downgrade"}', '', 'applied' from billing_events where user_id = ${userId}`
  expect((await round([again()])).changes).toMatchObject([{ became: 'told' }])
})

test('a difference that remains after its account was judged is counted and logged in every round, and makes no further event', async () => {
  const userId = await newAccount(sql)
  const one = inList(userId)
  const registry = new Registry()
  const provider = { name: 'stripe', list: async () => [one] } as unknown as BillingProvider
  const [job] = billingReconciliationJobs({ sql, log, metrics: createWorkerMetrics(registry), provider })
  const counted = async (outcome: string) =>
    (await registry.getSingleMetric('svc_billing_reconciliation_differences_total')?.get())?.values.find(
      ({ labels }) => labels.outcome === outcome,
    )?.value
  await believe(userId, one, { status: 'ended' })
  await job?.run()
  expect([await counted('corrected'), await counted('unsettled')]).toEqual([1, 0])
  await sql`update billing_events set status = 'applied' where user_id = ${userId}`
  await job?.run()
  expect([await counted('corrected'), await counted('unsettled')]).toEqual([1, 1])
  expect(await eventsOf(userId)).toHaveLength(1)
  expect(logged.at(-1)).toContain(one.event.subscriptionId)
  const done = await round([one])
  expect(done).toMatchObject({ applied: 0, unsettled: 1, changes: [{ became: 'unsettled' }] })
  expect(reportOf(done, { provider: 'stripe', dryRun: false })).toContain('Not to be settled by reconciliation: 1.')
})

test('an event that is kept already is not counted as a new one, whatever came after it', async () => {
  const userId = await newAccount(sql)
  const one = inList(userId)
  await round([one])
  await sql`
    insert into billing_events (provider, event_key, type, action, user_ref, user_id, subscription_id, event, body, status)
    select provider, ${randomUUID()}, 'x', 'downgrade', user_ref, user_id, subscription_id,
      event || '{"key": "evt_1", "action": "downgrade"}', '', 'pending' from billing_events where user_id = ${userId}`
  expect(await round([one])).toMatchObject({ applied: 0, changes: [{ became: 'repeated' }] })
})

test('a subscription that the list gives to another account moves there, and the account that had it is judged again', async () => {
  const [holder, named] = [await newAccount(sql), await newAccount(sql)]
  const first = inList(holder)
  expect(await round([first])).toMatchObject({ applied: 1 })
  await believe(holder, first, { status: 'active' })
  const { key: _, ...content } = first.event
  const moved = createListedSubscription(named, { ...content, at: content.at + 1000 })
  const done = await round([moved])
  expect(done.changes).toEqual([
    {
      subscriptionId: first.event.subscriptionId,
      kind: 'plan',
      userId: named,
      ours: `active × 1 until 2126-04-01T10:00:00.000Z of account ${holder}`,
      theirs: 'active × 1 until 2126-04-01T10:00:00.000Z',
      became: 'told',
    },
  ])
  expect([await eventsOf(holder), await eventsOf(named)]).toMatchObject([
    [],
    [{ event: first.event }, { event: moved.event }],
  ])
  expect(await claimInboxWakes(sql, -1, 1000)).toEqual(expect.arrayContaining([holder, named]))
})

test('a listed subscription that names no account of ours is compared with the account that has it, and stays there', async () => {
  const userId = await newAccount(sql)
  const first = inList(userId)
  await round([first])
  await believe(userId, first, { status: 'active' })
  const { key: _, ...content } = first.event
  for (const [index, userRef] of [null, randomUUID()].entries()) {
    const over = createListedSubscription(userRef, {
      ...content,
      action: 'downgrade',
      at: content.at + 1000 + index,
      quantity: index,
    })
    expect(await round([over])).toMatchObject({ unknown: [], changes: [{ userId, became: 'told' }] })
    expect(await eventsOf(userId)).toHaveLength(2 + index)
  }
})

test('an empty list changes nothing, and neither does what is missing from a list', async () => {
  const userId = await newAccount(sql)
  const [missing, other] = [inList(userId), inList(await newAccount(sql), { action: 'downgrade' })]
  await believe(userId, missing, { status: 'active' })
  const seen = await everything()
  for (const list of [[], [other]]) expect(await round(list)).toMatchObject({ changes: [], applied: 0, unknown: [] })
  expect(await everything()).toEqual(seen)
})

test('a list that fails changes nothing, and the job says so', async () => {
  const seen = await everything()
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
  expect(await everything()).toEqual(seen)
})

test('whose a subscription is, our own books tell when the list does not', async () => {
  const userId = await newAccount(sql)
  for (const userRef of [null, 'not an account of ours']) {
    const one = inList(userRef)
    await believe(userId, one, { status: 'past_due' })
    expect((await round([one])).changes).toMatchObject([{ userId, became: 'told' }])
  }
})

test('one that nobody is known to have is named while it goes on, and passed over once it has ended', async () => {
  const [nobodys, gone] = [inList(null), inList(randomUUID())]
  const over = [inList(null, { action: 'downgrade' }), inList(null, { action: 'cancelled', periodEnd: start + 1 })]
  const seen = await everything()
  const done = await round([nobodys, gone, ...over])
  expect(done).toMatchObject({ listed: 4, changes: [], applied: 0 })
  expect(done.unknown).toEqual([nobodys.event.subscriptionId, gone.event.subscriptionId])
  expect(logged.join('')).toContain(nobodys.event.subscriptionId)
  expect(await everything()).toEqual(seen)
})

test('one that ended before we heard of it is nothing to its account', async () => {
  const userId = await newAccount(sql)
  expect(await round([inList(userId, { action: 'downgrade' })])).toMatchObject({ changes: [], unknown: [] })
})

test('plan and add-ons under one id are two', async () => {
  const userId = await newAccount(sql)
  const plan = inList(userId)
  const addon = inList(userId, { kind: 'addon', quantity: 1, subscriptionId: plan.event.subscriptionId })
  await believe(userId, plan, { status: 'active' })
  expect((await round([plan, addon])).changes).toMatchObject([{ kind: 'addon', ours: 'nothing' }])
})

test('a dry run says what would be told, and tells nothing', async () => {
  const userId = await newAccount(sql)
  const list = [inList(userId)]
  expect(await round(list, { dryRun: true })).toMatchObject({ applied: 0, changes: [{ became: 'told' }] })
  expect(await eventsOf(userId)).toEqual([])
  expect(await round(list)).toMatchObject({ applied: 1 })
})

test('no more than fifty are told in a round, the others in the next ones, and the log calls for somebody', async () => {
  const users: string[] = []
  for (let count = 0; count < 60; count += 1) users.push(await newAccount(sql))
  const list = users.map((userId) => inList(userId))
  expect(await round(list)).toMatchObject({ applied: 50, held: 10 })
  expect(logged.at(-1)).toContain('"level":"error"')
  expect(await round(list)).toMatchObject({ applied: 10, held: 0 })
  expect(await round(list)).toMatchObject({ applied: 0, held: 0 })
})

test('more than one batch is compared, each with its own row', async () => {
  const userId = await newAccount(sql)
  const list = Array.from({ length: 1001 }, (_, index) => inList(userId, { kind: 'addon', quantity: index % 4 }))
  const rows = list.map(({ event }) => ({ id: event.subscriptionId, quantity: event.quantity ?? 0 }))
  await sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status, quantity, period_end)
    select 'stripe', id, 'addon', ${userId}, 'active', quantity, ${new Date(end)}
    from unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ quantity }) => quantity)}::int[]) as r (id, quantity)`
  expect(await round(list)).toMatchObject({ listed: 1001, changes: [] })
  const last = list.at(-1)
  await sql`update subscriptions set status = 'ended' where subscription_id = ${last?.event.subscriptionId ?? ''}`
  expect((await round(list)).changes.map(({ subscriptionId }) => subscriptionId)).toEqual([last?.event.subscriptionId])
})

test('the report reads like a page: what differs, what happens, and whom nobody knows', async () => {
  const userId = await newAccount(sql)
  const [one, nobodys] = [
    inList(userId, { subscriptionId: 'sub_in_the_report' }),
    inList(null, { subscriptionId: 'sub_of_nobody' }),
  ]
  await believe(userId, one, { status: 'past_due', periodEnd: null })
  const report = reportOf(await round([one, nobodys], { dryRun: true }), { provider: 'stripe', dryRun: true })
  expect(report).toBe(`Subscriptions at stripe: 2. Different from ours: 1.

subscription       kind  account                               ours          theirs                                     what happens
sub_in_the_report  plan  ${userId}  past_due × 1  active × 1 until 2126-04-01T10:00:00.000Z  would be told

Nobody is known to have: sub_of_nobody.
A dry run: nothing is told.
`)
})

test('the program says the same to whoever runs it, and changes nothing in a dry run', async () => {
  const own = await startBillingDatabase()
  const userId = await newAccount(own)
  await own`
    insert into sandbox_subscriptions (id, user_id, kind, quantity, status, period_start, period_end)
    values ('sub_lost', ${userId}, 'plan', 1, 'active', ${new Date(start)}, ${new Date(end)})`
  const { host, port, database } = own.options
  const env = {
    ...process.env,
    ...testEnvironment({
      DATABASE_URL: `postgres://${own.options.user}:${own.options.pass}@${host[0]}:${port[0]}/${database}`,
    }),
  }
  const cwd = fileURLToPath(new URL('../../..', import.meta.url))
  const run = (...more: string[]) =>
    promisify(execFile)(process.execPath, ['--import', 'tsx', 'activities/jobs/reconcile.ts', ...more], { cwd, env })
  const dry = await run('--dry-run')
  expect(dry.stdout).toMatch(/sub_lost.*would be told/)
  expect(await own`select from billing_events`).toHaveLength(0)
  const { stdout } = await run()
  expect(stdout).toMatch(/sub_lost.*is told/)
  expect(await own`select from billing_events where status = 'pending'`).toHaveLength(1)
}, 60_000)
