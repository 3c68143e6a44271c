/** The sandbox's subscriptions, which act like those of a provider. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { createSandboxStore } from '../../../db/billing/sandbox-subscriptions.ts'
import { entitlementAt } from '../../../domain/billing/entitlement.ts'
import type { BillingEvent } from '../../../domain/billing/event.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { createSandboxBilling, SandboxRefusedError } from '../../../providers/billing/sandbox.ts'
import { applyOutcome, type SandboxOutcome } from '../../../providers/billing/sandbox-outcomes.ts'
import { atEnd } from '../../support/at-end.ts'
import { newAccount, startBillingDatabase } from '../../support/billing-database.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const sql = await startBillingDatabase()
const store = createSandboxStore(sql)

/** The received webhooks, verified with the library of Standard Webhooks, and the status of the response. */
const received: { readonly id: string; readonly isSigned: boolean; readonly status: number; event?: BillingEvent }[] =
  []
/** The statuses of the next responses; 200 if empty. */
const statuses: number[] = []

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const headers = request.headers as Record<string, string>
  const delivery = { headers, body }
  const parsed = await billing.provider.parse(delivery)
  received.push({
    id: headers['webhook-id'] ?? '',
    isSigned: new Webhook(secret).verify(body, headers) !== undefined && billing.provider.verify(delivery, Date.now()),
    status: statuses.shift() ?? 200,
    ...(parsed.meaning === 'event' && { event: parsed.event }),
  })
  response.writeHead(received.at(-1)?.status ?? 500).end('{}')
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
atEnd(() => {
  server.close()
  server.closeAllConnections()
})

const billing = createSandboxBilling({
  store,
  secrets: [secret],
  webhookUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook`,
  siteUrl: 'https://site.example',
})
const { act, provider } = billing

async function openCheckout(kind: 'plan' | 'addon' = 'plan', quantity = 1) {
  const userId = await newAccount(sql)
  const url = await provider.checkout({
    userId,
    email: null,
    kind,
    quantity,
    returnUrl: 'https://site.example/account?done=bought',
    cancelUrl: 'https://site.example/account',
  })
  return { userId, url, id: url.split('/').at(-1) ?? '' }
}

async function play(outcomes: readonly SandboxOutcome[], kind: 'plan' | 'addon' = 'plan') {
  const { id, userId } = await openCheckout(kind)
  for (const outcome of outcomes) await act(id, outcome)
  return { id, userId }
}

const lastEvent = () => received.at(-1)?.event

test('a checkout creates an open subscription, which is not listed', async () => {
  const { id, url, userId } = await openCheckout('addon', 2)
  expect(url).toBe(`https://site.example/sandbox/checkout/${id}`)
  expect(await store.find(id)).toMatchObject({ userId, kind: 'addon', quantity: 2, status: 'open', periodEnd: null })
  expect((await provider.list()).map(({ event }) => event.subscriptionId)).not.toContain(id)
})

test('a payment activates the subscription for a calendar month and sends a signed webhook', async () => {
  const { id, userId } = await openCheckout()
  const paid = await act(id, 'pay')
  const [start, end] = [paid.periodStart as Date, paid.periodEnd as Date]
  expect(end.getTime() - start.getTime()).toBeGreaterThanOrEqual(28 * 86_400_000)
  expect(end.getTime() - start.getTime()).toBeLessThanOrEqual(31 * 86_400_000)
  expect(received.at(-1)).toMatchObject({
    isSigned: true,
    event: {
      action: 'activate',
      subscriptionId: id,
      at: paid.updatedAt.getTime(),
      invoiceId: paid.invoiceId,
      periodStart: start.getTime(),
      periodEnd: end.getTime(),
    },
  })
  expect((await provider.list()).find(({ event }) => event.subscriptionId === id)).toMatchObject({ userRef: userId })
})

test('another payment renews the subscription with a new invoice', async () => {
  const { id } = await openCheckout()
  const [first, second] = [await act(id, 'pay'), await act(id, 'pay')]
  expect(second.periodStart).toEqual(first.periodEnd)
  expect(second.invoiceId).not.toBe(first.invoiceId)
  expect(lastEvent()).toMatchObject({ action: 'activate', invoiceId: second.invoiceId })
})

test('failed attempts to renew have one new invoice, which a recovery pays', async () => {
  const { id } = await openCheckout()
  const paid = await act(id, 'pay')
  const failed = await act(id, 'fail')
  expect(failed).toMatchObject({ status: 'past_due', periodEnd: paid.periodEnd })
  expect(failed.invoiceId).not.toBe(paid.invoiceId)
  expect(lastEvent()).toMatchObject({ action: 'payment_failed', invoiceId: failed.invoiceId })
  expect((await act(id, 'fail')).invoiceId).toBe(failed.invoiceId)
  expect((await act(id, 'recover')).status).toBe('active')
  expect(lastEvent()).toMatchObject({ action: 'payment_recovery', invoiceId: failed.invoiceId })
  expect((await act(id, 'fail')).invoiceId).not.toBe(failed.invoiceId)
})

test.each([
  ['cancel', 'cancelled', { action: 'cancelled', periodEnd: expect.any(Number) }],
  ['refund', 'ended', { action: 'refund', amount: 'full', invoiceId: expect.any(String) }],
  ['end', 'ended', { action: 'downgrade' }],
] as const)('the outcome %s changes the status to %s', async (outcome, status, event) => {
  const { id } = await play(['pay'])
  expect((await act(id, outcome)).status).toBe(status)
  expect(lastEvent()).toMatchObject(event)
})

test('a resumed subscription keeps its period and its invoice', async () => {
  const { id } = await openCheckout()
  const paid = await act(id, 'pay')
  await act(id, 'cancel')
  const { status, invoiceId, periodEnd } = await act(id, 'resume')
  expect([status, invoiceId, periodEnd]).toEqual(['active', paid.invoiceId, paid.periodEnd])
  expect(lastEvent()).toMatchObject({ action: 'activate', invoiceId: paid.invoiceId })
})

test('a payment for another number of add-ons changes the number and keeps the period', async () => {
  const { id } = await openCheckout('addon', 1)
  const paid = await act(id, 'pay', { quantity: 2 })
  expect(lastEvent()).toMatchObject({ action: 'activate', kind: 'addon', quantity: 2 })
  expect(await act(id, 'pay', { quantity: 9 })).toMatchObject({ quantity: 3, periodEnd: paid.periodEnd })
  expect(lastEvent()).toMatchObject({ action: 'update_addon', kind: 'addon', quantity: 3 })
  expect((await act(id, 'pay', { quantity: 3 })).periodStart).toEqual(paid.periodEnd)
})

test.each([
  [[], ['fail', 'recover', 'cancel', 'resume', 'refund', 'end']],
  [['pay'], ['recover', 'resume']],
  [
    ['pay', 'fail'],
    ['pay', 'resume', 'refund'],
  ],
  [
    ['pay', 'cancel'],
    ['pay', 'fail', 'recover', 'cancel'],
  ],
  [
    ['pay', 'end'],
    ['pay', 'fail', 'recover', 'cancel', 'resume', 'refund', 'end'],
  ],
] as const)('after %j the outcomes %j are refused without a change', async (before, refused) => {
  const { id } = await play(before)
  const [seen, count] = [await store.find(id), received.length]
  for (const outcome of refused) await expect(act(id, outcome)).rejects.toThrow(SandboxRefusedError)
  expect(await store.find(id)).toEqual(seen)
  expect(received.length).toBe(count)
})

test('an outcome of an unknown subscription is refused', async () => {
  await expect(act('sub_none', 'pay')).rejects.toThrow(SandboxRefusedError)
})

test('of two concurrent outcomes one is refused, and a stale save changes nothing', async () => {
  const { id } = await play(['pay'])
  const seen = await store.find(id)
  const both = await Promise.allSettled([act(id, 'cancel'), act(id, 'cancel')])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  if (!seen) throw new Error('the subscription is gone')
  expect(await store.save({ ...seen, status: 'ended' }, seen.updatedAt)).toBe(false)
  expect((await store.find(id))?.status).toBe('cancelled')
})

test('each change of a subscription has another time', async () => {
  const { id } = await play(['pay', 'cancel', 'resume', 'cancel', 'resume'])
  const times = received.flatMap(({ event }) => (event?.subscriptionId === id ? event.at : []))
  expect(times).toHaveLength(5)
  expect(new Set(times).size).toBe(5)
})

test('times increase even if the last change is in the future', async () => {
  const { id } = await play(['pay'])
  const ahead = new Date(Date.now() + 3_600_000)
  await sql`update sandbox_subscriptions set updated_at = ${ahead} where id = ${id}`
  await act(id, 'cancel')
  expect(lastEvent()?.at).toBe(ahead.getTime() + 1)
})

test.each([
  [['pay'], 'cancelled', 'cancelled'],
  [['pay', 'fail'], 'ended', 'downgrade'],
] as const)(
  'a cancellation after %j changes the status to %s, sends one webhook, and can be repeated',
  async (before, status, action) => {
    const { id } = await play(before)
    const from = received.length
    await Promise.all([1, 2, 3, 4, 5].map(() => provider.cancel(id)))
    await provider.cancel(id)
    expect((await store.find(id))?.status).toBe(status)
    expect(received.slice(from).map(({ event }) => [event?.subscriptionId, event?.action])).toEqual([[id, action]])
  },
)

test('the cancellation of an unknown or open subscription fails', async () => {
  await expect(provider.cancel('sub_none')).rejects.toThrow(BillingProviderError)
  const { id } = await openCheckout()
  await expect(provider.cancel(id)).rejects.toThrow(BillingProviderError)
})

test.each([
  ['2026-01-31T10:00:00.000Z', '2026-02-28T10:00:00.000Z'],
  ['2026-12-31T10:00:00.000Z', '2027-01-31T10:00:00.000Z'],
  ['2028-01-30T10:00:00.000Z', '2028-02-29T10:00:00.000Z'],
  ['2026-03-05T10:00:00.000Z', '2026-04-05T10:00:00.000Z'],
])('a month from %s ends at %s', async (from, to) => {
  const { id } = await openCheckout()
  const open = await store.find(id)
  const paid = open && applyOutcome(open, 'pay', new Date(from), 'inv_1')
  expect(paid?.next.periodEnd?.toISOString()).toBe(to)
})

test('a webhook that is not accepted is sent again with the same id', async () => {
  const { id } = await play(['pay'])
  statuses.push(503, 500)
  const from = received.length
  await act(id, 'cancel')
  const sent = received.slice(from)
  expect(sent.map(({ status }) => status)).toEqual([503, 500, 200])
  expect(new Set(sent.map((delivery) => delivery.id)).size).toBe(1)
})

test('a change whose webhook is not accepted remains and is listed', async () => {
  const { id } = await play(['pay'])
  statuses.push(503, 503, 204)
  await expect(act(id, 'end')).rejects.toThrow(BillingProviderError)
  expect((await store.find(id))?.status).toBe('ended')
  expect((await provider.list()).find(({ event }) => event.subscriptionId === id)?.event.action).toBe('downgrade')
})

test.each([
  [['pay'], 'active'],
  [['pay', 'pay'], 'active'],
  [['pay', 'fail'], 'past_due'],
  [['pay', 'fail', 'recover'], 'active'],
  [['pay', 'fail', 'recover', 'fail'], 'past_due'],
  [['pay', 'cancel'], 'cancelled'],
  [['pay', 'cancel', 'resume'], 'active'],
  [['pay', 'refund'], 'ended'],
  [['pay', 'pay', 'refund'], 'ended'],
  [['pay', 'fail', 'recover', 'refund'], 'ended'],
  [['pay', 'cancel', 'refund'], 'ended'],
  [['pay', 'end'], 'ended'],
] as const)('after %j the sandbox and the subscription workflow agree on %s', async (outcomes, status) => {
  const { id } = await play(outcomes)
  const events = received.flatMap(({ event }) => (event?.subscriptionId === id ? event : []))
  const { subscriptions } = entitlementAt(events, Date.now() + 1000, 172_800)
  const stored = await store.find(id)
  expect([stored?.status, subscriptions[0]?.status]).toEqual([status, status])
  if (status !== 'ended') expect(subscriptions[0]?.periodEnd).toBe(stored?.periodEnd?.getTime())
})

test('the list contains an event for each status, with a key by its content', async () => {
  const last: Readonly<Record<string, readonly SandboxOutcome[]>> = {
    activate: ['pay'],
    payment_failed: ['pay', 'fail'],
    cancelled: ['pay', 'cancel'],
    downgrade: ['pay', 'refund'],
  }
  for (const [action, outcomes] of Object.entries(last)) {
    const { id, userId } = await play(outcomes, 'addon')
    const of = async () => (await provider.list()).find(({ event }) => event.subscriptionId === id)
    const seen = await of()
    expect(seen).toMatchObject({ userRef: userId, event: { action, kind: 'addon', quantity: 1 } })
    expect(await of()).toEqual(seen)
    expect(seen?.event.key).toMatch(/^reconciled:[0-9a-f]{64}$/)
  }
  const keys = (await provider.list()).map(({ event }) => event.key)
  expect(new Set(keys).size).toBe(keys.length)
})
