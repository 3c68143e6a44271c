/** The write of an entitlement: only with the events that it is based on. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { listInboxEvents, recordEventIn } from '../../../db/billing/events.ts'
import { replaceEvent } from '../../../db/billing/replays.ts'
import { claimInboxWakes } from '../../../db/billing/subscription-wakes.ts'
import { entitlementVersion } from '../../../db/billing/subscriptions.ts'
import { recordEvent } from '../../../db/transactions/record-billing-event.ts'
import { type WriteOutcome, writeEntitlement } from '../../../db/transactions/write-entitlement.ts'
import type { AccountEntitlement } from '../../../domain/billing/entitlement.ts'
import type { ReceivedBillingEvent } from '../../../domain/billing/received-event.ts'
import { startApi } from '../../support/api.ts'
import { eventually } from '../../support/relays.ts'

const { sql, given } = await startApi()

const eventFor = (userId: string): ReceivedBillingEvent => {
  const key = randomUUID()
  return {
    provider: 'sandbox',
    key,
    type: 'payment.recovered',
    userRef: userId,
    event: {
      key,
      action: 'payment_recovery',
      provider: 'sandbox',
      subscriptionId: `sub_${key}`,
      kind: 'plan',
      at: Date.now(),
      quantity: null,
      invoiceId: null,
      amount: null,
      periodStart: null,
      periodEnd: null,
    },
    problem: null,
    body: Buffer.from('{}'),
  }
}

const free: AccountEntitlement = {
  planTier: 'free',
  planStatus: 'none',
  addons: 0,
  periodStart: null,
  periodEnd: null,
  endsAt: null,
  graceEndsAt: null,
  changesAt: null,
  subscriptions: [],
}

/** A paid account whose workflow has read these events and is about to end the plan. */
async function prepareDowngrade(read: readonly ReceivedBillingEvent[] = []) {
  const { userId } = await given.user()
  await sql`update users set plan_tier = 'paid', plan_status = 'past_due' where id = ${userId}`
  for (const event of read) await recordEvent(sql, { ...event, userRef: userId })
  const ids = (await listInboxEvents(sql, userId, 0, 10)).map(({ id }) => id)
  const version = (await entitlementVersion(sql, userId)) ?? -1
  const write = (): Promise<WriteOutcome> =>
    writeEntitlement(sql, {
      userId,
      version,
      eventIds: ids,
      entitlement: free,
      at: Date.now(),
      addonNoticeSeconds: 1800,
      trialSeconds: 0,
    })
  return { userId, ids, write }
}

const tierOf = async (userId: string) => (await sql`select plan_tier from users where id = ${userId}`)[0]?.planTier
const eventsOf = async (userId: string) =>
  sql<{ id: string; status: string; receivedAt: Date }[]>`
    select id, status, received_at from billing_events where user_id = ${userId} order by seq`

const replay = (id: string, event: ReceivedBillingEvent) => sql.begin((tx) => replaceEvent(tx, id, event))

/** Reads the account's inbox as its workflow does, and writes the free tier. */
async function writeFree(userId: string): Promise<WriteOutcome> {
  const version = (await entitlementVersion(sql, userId)) ?? -1
  const eventIds = (await listInboxEvents(sql, userId, 0, 10)).map(({ id }) => id)
  return writeEntitlement(sql, {
    userId,
    version,
    eventIds,
    entitlement: free,
    at: Date.now(),
    addonNoticeSeconds: 1800,
    trialSeconds: 0,
  })
}

/** Resolves when this many statements of this file wait for a lock. */
const untilWaiting = (count: number) =>
  eventually(
    async () =>
      (await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).length,
    (waiting) => waiting >= count,
  )

describe('an entitlement', () => {
  test('is written once, with the events that it is based on', async () => {
    const { userId, write } = await prepareDowngrade([eventFor('')])
    expect(await write()).toEqual({ type: 'written', surplusEndsAt: null, disconnectedRelays: 0 })
    expect([await tierOf(userId), (await eventsOf(userId)).map(({ status }) => status)]).toEqual(['free', ['applied']])
    expect(await write()).toEqual({ type: 'outdated' })
    expect(await sql`select from audit_entries where user_id = ${userId} and action = 'plan_changed'`).toHaveLength(1)
  })

  test('is not written when an event was accepted after the inbox was read', async () => {
    const { userId, write } = await prepareDowngrade()
    await recordEvent(sql, eventFor(userId))
    expect(await write()).toEqual({ type: 'outdated' })
    expect([await tierOf(userId), (await eventsOf(userId)).map(({ status }) => status)]).toEqual(['paid', ['pending']])
  })

  test('waits for an event that is being accepted, and is then not written', async () => {
    const { userId, write } = await prepareDowngrade()
    let written: Promise<WriteOutcome> | undefined
    await sql.begin(async (tx) => {
      await recordEventIn(tx, eventFor(userId))
      written = write()
      await untilWaiting(1)
    })
    expect(await written).toEqual({ type: 'outdated' })
    expect(await tierOf(userId)).toBe('paid')
  })

  test('is written when the transaction that accepts an event is rolled back', async () => {
    const { userId, write } = await prepareDowngrade()
    let written: Promise<WriteOutcome> | undefined
    const failing = sql.begin(async (tx) => {
      await recordEventIn(tx, eventFor(userId))
      written = write()
      await untilWaiting(1)
      throw new Error('the process is killed')
    })
    await expect(failing).rejects.toThrow('the process is killed')
    expect(await written).toMatchObject({ type: 'written' })
    expect(await tierOf(userId)).toBe('free')
  })

  test('stores each subscription with millisecond precision, and thousands of them in one statement', async () => {
    const { userId } = await given.user()
    const [periodStart, periodEnd] = [Date.UTC(2026, 0, 1) + 123, Date.UTC(9999, 0, 1) - 1]
    const subscription = {
      provider: 'sandbox',
      kind: 'addon',
      status: 'active',
      quantity: 3,
      addons: 0,
      periodStart,
      periodEnd,
    } as const
    const many = Array.from({ length: 10_000 }, (_, index) => ({ ...subscription, subscriptionId: `sub_${index}'"\\` }))
    const write = async (subscriptions: AccountEntitlement['subscriptions']) => {
      const version = (await entitlementVersion(sql, userId)) ?? -1
      const entitlement = { ...free, subscriptions }
      return writeEntitlement(sql, {
        userId,
        version,
        eventIds: [],
        entitlement,
        at: Date.now(),
        addonNoticeSeconds: 1800,
        trialSeconds: 0,
      })
    }
    expect(await write(many)).toMatchObject({ type: 'written' })
    // cmin counts the statements of the transaction that wrote a row.
    expect(await sql`select distinct cmin from subscriptions where user_id = ${userId}`).toHaveLength(1)
    const ended = {
      ...subscription,
      kind: 'plan',
      subscriptionId: 'sub_1',
      status: 'ended',
      addons: 2,
      periodStart: null,
      periodEnd: null,
    }
    expect(await write([...many, { ...ended, kind: 'plan', status: 'ended' }])).toMatchObject({ type: 'written' })
    const rows = await sql`
      select subscription_id as "subscriptionId", kind, provider, status, quantity, addons, period_start as "periodStart",
        period_end as "periodEnd"
      from subscriptions where user_id = ${userId} order by kind desc, length(subscription_id), subscription_id`
    const dated = { ...subscription, periodStart: new Date(periodStart), periodEnd: new Date(periodEnd) }
    expect(rows.slice(0, 2)).toEqual([ended, { ...dated, subscriptionId: `sub_0'"\\` }])
    expect(rows).toHaveLength(10_001)
  })

  test('of a deleted account is not written', async () => {
    const request = {
      userId: randomUUID(),
      version: 0,
      eventIds: [],
      entitlement: free,
      at: 0,
      addonNoticeSeconds: 0,
      trialSeconds: 0,
    }
    expect(await writeEntitlement(sql, request)).toEqual({ type: 'gone' })
  })
})

describe('an event that arrives while an entitlement is being written', () => {
  test('waits for the write, and counts as received after it', async () => {
    const { userId, ids, write } = await prepareDowngrade([eventFor('')])
    let working: Promise<unknown> | undefined
    const writtenAt = await sql.begin(async (tx) => {
      // The last table of the write, so that the write waits while it holds all its locks.
      await tx`select from billing_events where id = any(${ids}::uuid[]) for update`
      const written = write()
      await untilWaiting(1)
      const accepted = recordEvent(sql, eventFor(userId))
      await untilWaiting(2)
      working = Promise.all([written, accepted])
      await sleep(20)
      return (await tx<{ at: Date }[]>`select clock_timestamp() as at`)[0]?.at
    })
    expect(await working).toMatchObject([{ type: 'written' }, { status: 'pending' }])
    const [, late] = await eventsOf(userId)
    expect(late?.receivedAt.getTime()).toBeGreaterThanOrEqual(writtenAt?.getTime() ?? Number.POSITIVE_INFINITY)
    expect(await tierOf(userId)).toBe('free')
  })

  test('does not wait for writes of other accounts', async () => {
    const { ids, write } = await prepareDowngrade([eventFor('')])
    const other = await given.user()
    let written: Promise<WriteOutcome> | undefined
    await sql.begin(async (tx) => {
      await tx`select from billing_events where id = any(${ids}::uuid[]) for update`
      written = write()
      await untilWaiting(1)
      expect(await recordEvent(sql, eventFor(other.userId))).toMatchObject({ userId: other.userId })
    })
    expect(await written).toMatchObject({ type: 'written' })
  })

  test('waits as a replay too, without a deadlock', async () => {
    const event = eventFor('')
    const { userId, ids, write } = await prepareDowngrade([event])
    const all = Array.from({ length: 20 }, (_, index) =>
      index === 7 ? write() : replay(ids[0] ?? '', { ...event, userRef: userId }),
    )
    const [outcome] = (await Promise.all(all)).splice(7, 1)
    const isWritten = (outcome as WriteOutcome).type === 'written'
    expect(await tierOf(userId)).toBe(isWritten ? 'free' : 'paid')
    expect(await eventsOf(userId)).toMatchObject([{ status: 'pending' }])
  })
})

describe('an event that is replaced after its account was read', () => {
  const replaced = (event: ReceivedBillingEvent, userId: string) => ({
    'as the same event with other content': {
      ...event,
      userRef: userId,
      event: event.event && { ...event.event, at: 1 },
    },
    'as parked': { ...event, userRef: userId, event: null, problem: 'type: Invalid option' },
    'as ignored': { ...event, userRef: null, event: null },
  })

  test.each(['as the same event with other content', 'as parked', 'as ignored'] as const)(
    '%s: the judgement that knows the former content is not written, and the account waits for another one',
    async (what) => {
      const event = eventFor('')
      const { userId, ids, write } = await prepareDowngrade([event])
      await replay(ids[0] ?? '', replaced(event, userId)[what])
      expect(await write()).toEqual({ type: 'outdated' })
      expect(await tierOf(userId)).toBe('paid')
      expect(await claimInboxWakes(sql, -1, 100)).toContain(userId)
      expect(await writeFree(userId)).toMatchObject({ type: 'written' })
      expect(await claimInboxWakes(sql, -1, 100)).not.toContain(userId)
    },
  )

  test("as another account's: both accounts wait until they are evaluated again", async () => {
    const event = eventFor('')
    const { userId, ids, write } = await prepareDowngrade([event])
    expect(await write()).toMatchObject({ type: 'written' })
    const other = await given.user()
    await replay(ids[0] ?? '', { ...event, userRef: other.userId })
    const waiting = async () => (await claimInboxWakes(sql, -1, 100)).toSorted()
    expect(await waiting()).toEqual(expect.arrayContaining([userId, other.userId]))
    for (const id of [userId, other.userId]) expect(await writeFree(id)).toMatchObject({ type: 'written' })
    for (const id of [userId, other.userId]) expect(await waiting()).not.toContain(id)
  })
})
