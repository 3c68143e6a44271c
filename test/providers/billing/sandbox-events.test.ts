/** The billing events that webhooks of the sandbox become. */
import { describe, expect, test } from 'vitest'
import { parseSandboxEvent } from '../../../providers/billing/sandbox-events.ts'

const at = '2026-03-01T12:00:00Z'
const data = { user_id: 'user-1', subscription_id: 'sub-1', kind: 'plan' as const }

const parse = (body: object | string | Buffer) =>
  parseSandboxEvent({
    headers: { 'webhook-id': 'msg_1' },
    body: Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  })

const event = {
  key: 'msg_1',
  provider: 'sandbox',
  subscriptionId: 'sub-1',
  kind: 'plan',
  at: Date.parse(at),
  quantity: null,
  invoiceId: null,
  amount: null,
  periodStart: null,
  periodEnd: null,
}

test.each([
  ['subscription.activated', { action: 'activate' }],
  ['addon.updated', { action: 'update_addon', kind: 'addon', quantity: 2 }],
  ['payment.failed', { action: 'payment_failed' }],
  ['payment.recovered', { action: 'payment_recovery' }],
  ['subscription.cancelled', { action: 'cancelled' }],
  ['subscription.downgraded', { action: 'downgrade' }],
  ['payment.refunded', { action: 'refund', amount: 'full' }],
])('%s is normalised to %j', (type, expected) => {
  const parsed = parse({ type, occurred_at: at, data: { ...data, quantity: 2 } })
  expect(parsed).toEqual({ key: 'msg_1', type, meaning: 'event', event: { ...event, ...expected }, userRef: 'user-1' })
})

test('invoice, amount and period are read, with times of any zone in milliseconds', () => {
  const more = { invoice_id: 'inv-1', period_start: '2026-03-01T00:00:00+01:00', period_end: '2026-04-01T00:00:00.5Z' }
  const parsed = parse({ type: 'payment.refunded', occurred_at: at, data: { ...data, ...more, amount: 'partial' } })
  const times = { periodStart: Date.parse('2026-02-28T23:00:00Z'), periodEnd: Date.parse('2026-04-01T00:00:00.500Z') }
  expect(parsed).toMatchObject({ event: { invoiceId: 'inv-1', amount: 'partial', ...times } })
})

test('a time may have lower case letters, as RFC 3339 allows', () => {
  const parsed = parse({ type: 'subscription.cancelled', occurred_at: at.toLowerCase(), data })
  expect(parsed).toMatchObject({ event: { at: Date.parse(at) } })
})

test('omitted fields are null and the kind is the plan', () => {
  const parsed = parse({ type: 'subscription.cancelled', occurred_at: at, data: { subscription_id: 'sub-1' } })
  expect(parsed).toMatchObject({ userRef: null, event: { ...event, action: 'cancelled' } })
})

describe('quantities of add-ons', () => {
  const of = (type: string, quantity: unknown) =>
    parse({ type, occurred_at: at, data: { ...data, kind: 'addon', quantity } })

  test.each([
    [0, 0],
    [1, 1],
    [3, 3],
    [4, 3],
    [1e21, 3],
    [-1, 0],
    [-0, 0],
  ])('%j counts as %j', (quantity, counted) => {
    expect(of('addon.updated', quantity)).toMatchObject({ event: { quantity: counted } })
  })

  test.each([1.5, '2', null, undefined, true, [2], {}])('%j is unusable where a quantity is required', (quantity) => {
    expect(of('addon.updated', quantity)).toMatchObject({
      meaning: 'unusable',
      problem: expect.stringContaining('quantity'),
      userRef: 'user-1',
    })
  })

  test('an activation without a quantity is for one add-on, an invalid quantity is unusable', () => {
    expect(of('subscription.activated', undefined)).toMatchObject({ event: { kind: 'addon', quantity: 1 } })
    expect(of('subscription.activated', 2)).toMatchObject({ event: { quantity: 2 } })
    expect(of('subscription.activated', '2')).toMatchObject({ meaning: 'unusable' })
  })

  test('a payment has no quantity', () => {
    expect(of('payment.failed', 2)).toMatchObject({ event: { kind: 'addon', quantity: null } })
  })
})

const good = { type: 'payment.failed', occurred_at: at, data }

test.each([
  ['an unknown type', { ...good, type: 'subscription.exploded' }, 'type'],
  ['no type', { ...good, type: undefined }, 'type'],
  ['no time', { ...good, occurred_at: undefined }, 'occurred_at'],
  ['a time without a zone', { ...good, occurred_at: '2026-03-01T12:00:00' }, 'occurred_at'],
  ['an invalid date', { ...good, occurred_at: '2026-02-30T12:00:00Z' }, 'occurred_at'],
  ['a numeric time', { ...good, occurred_at: 1_772_366_400 }, 'occurred_at'],
  ['a time before 1970', { ...good, occurred_at: '1969-12-31T23:59:59Z' }, 'occurred_at'],
  ['the year 0', { ...good, occurred_at: '0000-01-01T00:00:00Z' }, 'occurred_at'],
  ['a year of five digits', { ...good, occurred_at: '9999-12-31T23:59:59-14:00' }, 'occurred_at'],
  ['a period that ends after 9998', { ...good, data: { ...data, period_end: '9999-12-31T23:59:59Z' } }, 'period_end'],
  ['no data', { ...good, data: undefined }, 'data'],
  ['no subscription', { ...good, data: { ...data, subscription_id: '' } }, 'subscription_id'],
  [
    'a subscription of 201 characters',
    { ...good, data: { ...data, subscription_id: 'x'.repeat(201) } },
    'subscription_id',
  ],
  ['a NUL in the subscription', { ...good, data: { ...data, subscription_id: 'a\0b' } }, 'subscription_id'],
  ['an unpaired surrogate in the account', { ...good, data: { ...data, user_id: '\ud800' } }, 'user_id'],
  ['an account of 201 characters', { ...good, data: { ...data, user_id: 'x'.repeat(201) } }, 'user_id'],
  ['a numeric account', { ...good, data: { ...data, user_id: 7 } }, 'user_id'],
  ['an unknown kind', { ...good, data: { ...data, kind: 'hat' } }, 'kind'],
  ['an unknown amount', { ...good, data: { ...data, amount: 'half' } }, 'amount'],
  ['a numeric invoice', { ...good, data: { ...data, invoice_id: 1 } }, 'invoice_id'],
  ['an invalid period', { ...good, data: { ...data, period_end: 'soon' } }, 'period_end'],
  ['a period that ends when it starts', { ...good, data: { ...data, period_start: at, period_end: at } }, 'period'],
])('%s is unusable, and the problem names the field', (_what, body, place) => {
  expect(parse(body)).toMatchObject({ key: 'msg_1', meaning: 'unusable', problem: expect.stringContaining(place) })
})

test.each([
  ['no bytes', ''],
  ['text', 'hello'],
  ['null', 'null'],
  ['a number', '1'],
  ['an array', '[]'],
  ['a truncated object', '{"type":'],
  ['invalid UTF-8', Buffer.concat([Buffer.from('{"type":"'), Buffer.from([0xff]), Buffer.from('"}')])],
  ['a byte order mark', `\ufeff${JSON.stringify(good)}`],
  ['a NUL', `${JSON.stringify(good)}\0`],
  ['nested arrays', '['.repeat(100_000) + ']'.repeat(100_000)],
  ['nested objects', `${'{"type":'.repeat(20_000)}1${'}'.repeat(20_000)}`],
  ['a prototype', '{"__proto__":{"type":"payment.failed"}}'],
])('a body of %s is unusable', (_what, body) => {
  expect(parse(body)).toMatchObject({ meaning: 'unusable', type: '' })
})

test('a type that cannot be stored becomes empty, and the problem repeats nothing of the body', () => {
  for (const type of ['a\0b', 'x'.repeat(201), '\ud800', 7, '']) {
    const parsed = parse({ ...good, type })
    expect(parsed).toMatchObject({ meaning: 'unusable', type: '' })
  }
  expect(JSON.stringify(parse({ ...good, data: { ...data, kind: '<script>' } }))).not.toContain('<script>')
})
