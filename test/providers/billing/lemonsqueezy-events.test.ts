import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { parseLemonSqueezyEvent } from '../../../providers/billing/lemonsqueezy-events.ts'
import type { WebhookDelivery } from '../../../providers/billing/provider.ts'
import {
  aDelivery,
  anInvoice,
  aSubscription,
  lemonSqueezyConfig,
  signedBytes,
} from '../../support/billing-lemonsqueezy.ts'

const asked: string[] = []
const parse = (delivery: WebhookDelivery, kind: 'plan' | 'addon' | undefined = 'plan') =>
  parseLemonSqueezyEvent(delivery, {
    ...lemonSqueezyConfig,
    kindOf: async (id) => {
      asked.push(id)
      return kind
    },
  })

const updatedAt = Date.parse('2026-03-01T10:00:05Z')
const period = { periodStart: Date.parse('2026-03-01T10:00:00Z'), periodEnd: Date.parse('2026-04-01T10:00:00Z') }
const noPeriod = { periodStart: null, periodEnd: null }
const ended = { ends_at: '2026-04-01T10:00:00.000000Z' }

test.each([
  ['subscription_created', 'on_trial', {}, { action: 'activate', ...period }],
  ['subscription_created', 'active', {}, { action: 'activate', ...period }],
  ['subscription_updated', 'active', {}, { action: 'activate', ...period }],
  ['subscription_updated', 'past_due', {}, { action: 'payment_failed', invoiceId: null, ...noPeriod }],
  ['subscription_updated', 'unpaid', {}, { action: 'payment_failed', invoiceId: null, ...noPeriod }],
  ['subscription_updated', 'cancelled', ended, { action: 'cancelled', ...period }],
  ['subscription_updated', 'expired', ended, { action: 'downgrade', ...noPeriod }],
  ['subscription_updated', 'paused', {}, { action: 'downgrade', ...noPeriod }],
  ['subscription_resumed', 'active', {}, { action: 'activate', ...period }],
  ['subscription_unpaused', 'active', {}, { action: 'activate', ...period }],
  ['subscription_plan_changed', 'active', {}, { action: 'activate', ...period }],
  ['subscription_cancelled', 'cancelled', ended, { action: 'cancelled', ...period }],
  ['subscription_expired', 'expired', ended, { action: 'downgrade', ...noPeriod }],
  ['subscription_paused', 'paused', {}, { action: 'downgrade', ...noPeriod }],
])('%s while it is %s is what its status or its name says', async (name, status, attributes, told) => {
  const delivery = aDelivery(name, aSubscription('7', { status, ...attributes }), 'user-1')
  const key = createHash('sha256').update(delivery.body).digest('hex')
  const bare = { provider: 'lemonsqueezy', subscriptionId: '7', kind: 'plan', at: updatedAt, amount: null }
  expect(await parse(delivery)).toEqual({
    key,
    type: name,
    meaning: 'event',
    event: { key, quantity: null, invoiceId: null, ...bare, ...told },
    userRef: 'user-1',
  })
})

test.each([
  ['active', { action: 'update_addon', quantity: 2, ...period }],
  ['past_due', { action: 'payment_failed', quantity: 2 }],
  ['cancelled', { action: 'cancelled', quantity: 2 }],
  ['expired', { action: 'downgrade' }],
])('add-ons that are %s tell their number', async (status, told) => {
  const attributes = { variant_id: 1002, status, ...ended, first_subscription_item: { quantity: 2 } }
  const parsed = await parse(aDelivery('subscription_updated', aSubscription('7', attributes), 'user-1'))
  expect(parsed).toMatchObject({ event: { kind: 'addon', ...told } })
})

test.each([
  [{ quantity: 9 }, 3],
  [{ quantity: 0 }, 0],
  [null, 1],
])('an item of %j counts as %j add-ons', async (item, quantity) => {
  const attributes = { variant_id: 1002, first_subscription_item: item }
  const parsed = await parse(aDelivery('subscription_created', aSubscription('7', attributes), 'user-1'))
  expect(parsed).toMatchObject({ event: { quantity } })
})

test('a period begins a month before it ends, not before the purchase, and nobody knows when it is paid by the year', async () => {
  const of = async (attributes: object) => {
    const parsed = await parse(aDelivery('subscription_updated', aSubscription('7', { ...attributes }), 'user-1'))
    return parsed.meaning === 'event' ? parsed.event.periodStart : undefined
  }
  expect(await of({ renews_at: '2026-03-31T10:00:00Z' })).toBe(Date.parse('2026-02-28T10:00:00Z'))
  expect(await of({ created_at: '2026-03-01T10:00:03Z' })).toBe(Date.parse('2026-03-01T10:00:03Z'))
  expect(await of({ renews_at: '2027-03-01T10:00:00Z' })).toBeNull()
  expect(await of({ renews_at: null })).toBeNull()
})

const invoiceAt = Date.parse('2026-03-01T10:00:30Z')

test.each([
  ['subscription_payment_success', {}, { action: 'payment_recovery', amount: null }],
  ['subscription_payment_recovered', {}, { action: 'payment_recovery', amount: null }],
  ['subscription_payment_failed', { status: 'pending' }, { action: 'payment_failed', amount: null }],
  ['subscription_payment_refunded', { status: 'refunded' }, { action: 'refund', amount: 'full' }],
  ['subscription_payment_refunded', { refunded_amount: 999 }, { action: 'refund', amount: 'full' }],
  ['subscription_payment_refunded', { refunded_amount: 998 }, { action: 'refund', amount: 'partial' }],
  ['subscription_payment_refunded', { refunded_amount: null }, { action: 'refund', amount: 'partial' }],
])('%s with %j is about its invoice', async (name, attributes, told) => {
  const parsed = await parse(aDelivery(name, anInvoice('901', attributes)))
  const bare = { subscriptionId: '7', kind: 'plan', at: invoiceAt, invoiceId: '901', quantity: null, ...noPeriod }
  expect(parsed).toMatchObject({ meaning: 'event', type: name, userRef: null, event: { ...bare, ...told } })
})

test.each([
  ['initial', 'period'],
  ['renewal', 'period'],
  ['updated', 'other'],
  ['a reason that is new', 'other'],
  [null, null],
  [undefined, null],
])('an invoice made for %s is for: %s', async (billing_reason, invoiceReason) => {
  for (const name of ['success', 'failed', 'refunded'])
    expect(await parse(aDelivery(`subscription_payment_${name}`, anInvoice('901', { billing_reason })))).toMatchObject({
      event: { invoiceReason },
    })
})

test('what a payment is for is asked, since it does not say so', async () => {
  const parsed = await parse(aDelivery('subscription_payment_success', anInvoice('901'), 'user-1'), 'addon')
  expect(parsed).toMatchObject({ userRef: 'user-1', event: { kind: 'addon' } })
  expect(asked.at(-1)).toBe('7')
})

test('a payment for something else that the store sells is nothing to us', async () => {
  const delivery = aDelivery('subscription_payment_success', anInvoice('901'))
  const needs = { ...lemonSqueezyConfig, kindOf: async () => undefined }
  expect(await parseLemonSqueezyEvent(delivery, needs)).toMatchObject({ meaning: 'ignored' })
})

test('an event of test mode is unusable where test mode is not accepted, and what is nothing to us stays that', async () => {
  const of = (name: string, test_mode: unknown, acceptsTestMode: boolean) => {
    const { body } = aDelivery(name, aSubscription('7'), 'user-1')
    const { meta, data } = JSON.parse(body.toString()) as { meta: object; data: object }
    const delivery = signedBytes(Buffer.from(JSON.stringify({ meta: { ...meta, test_mode }, data })))
    return parseLemonSqueezyEvent(delivery, { ...lemonSqueezyConfig, acceptsTestMode, kindOf: async () => 'plan' })
  }
  expect(await of('subscription_created', true, true)).toMatchObject({ meaning: 'event' })
  expect(await of('subscription_created', true, false)).toMatchObject({
    meaning: 'unusable',
    userRef: 'user-1',
    why: expect.stringMatching(/^meta.test_mode: /),
  })
  expect(await of('order_created', true, false)).toMatchObject({ meaning: 'ignored' })
  for (const isTest of [false, undefined])
    expect(await of('subscription_created', isTest, false)).toMatchObject({ meaning: 'event' })
})

test('the refund of an order counts when it names a subscription', async () => {
  const order = (attributes: object) => ({
    type: 'orders',
    id: '5',
    attributes: anInvoice('5', { ...attributes }).attributes,
  })
  expect(await parse(aDelivery('order_refunded', order({ status: 'refunded' })))).toMatchObject({
    event: { action: 'refund', amount: 'full', subscriptionId: '7', invoiceId: null },
  })
  expect(await parse(aDelivery('order_refunded', order({ subscription_id: undefined })))).toMatchObject({
    meaning: 'ignored',
  })
})

test.each(['order_created', 'license_key_created', 'license_key_updated', 'affiliate_activated', 'customer_updated'])(
  '%s is known, and nothing to us',
  async (name) => {
    expect(await parse(aDelivery(name, { type: 'orders', id: '1', attributes: {} }, 'user-1'))).toMatchObject({
      type: name,
      meaning: 'ignored',
    })
  },
)

test('another product is nothing to us, unless it carries our mark', async () => {
  const other = aSubscription('7', { variant_id: 555 })
  expect(await parse(aDelivery('subscription_created', other))).toMatchObject({ meaning: 'ignored' })
  expect(await parse(aDelivery('subscription_created', other, 'user-1'))).toMatchObject({
    meaning: 'unusable',
    userRef: 'user-1',
    why: expect.stringContaining('variant_id'),
  })
})

test('what came along with a purchase does not make a plan of another product', async () => {
  const delivery = aDelivery('subscription_created', aSubscription('7', { variant_id: 555 }))
  const marked = { meta: { event_name: 'subscription_created', custom_data: { user_id: 'u', kind: 'plan' } } }
  const body = Buffer.from(JSON.stringify({ ...JSON.parse(delivery.body.toString()), ...marked }))
  expect(await parse(signedBytes(body))).toMatchObject({ meaning: 'unusable' })
})

test.each([
  ['an unknown event', aDelivery('subscription_exploded', aSubscription('7'))],
  ['an event named like a property of every object', aDelivery('constructor', aSubscription('7'))],
  ['no name', aDelivery(undefined, aSubscription('7'))],
  ['no data', aDelivery('subscription_created', null)],
  ['an unknown status', aDelivery('subscription_created', aSubscription('7', { status: 'lost' }))],
  ['a strange time', aDelivery('subscription_created', aSubscription('7', { updated_at: 'now' }))],
  [
    'no subscription of the payment',
    aDelivery('subscription_payment_failed', anInvoice('1', { subscription_id: null })),
  ],
  [
    'a number of add-ons that is none',
    aDelivery('subscription_created', aSubscription('7', { first_subscription_item: { quantity: 1.5 } })),
  ],
  ['no JSON', signedBytes(Buffer.from('{"meta":'))],
  ['null', signedBytes(Buffer.from('null'))],
  ['bytes that are no UTF-8', signedBytes(Buffer.from([0x22, 0xff, 0x22]))],
  ['a byte order mark', signedBytes(Buffer.from('\ufeff{}'))],
  ['lists in lists', signedBytes(Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)))],
])('%s is unusable, with a reason', async (_what, delivery) => {
  expect(await parse(delivery)).toMatchObject({ meaning: 'unusable', why: expect.stringMatching(/./) })
})
