/** The billing events that webhooks of Lemon Squeezy become. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { parseLemonSqueezyEvent } from '../../../providers/billing/lemonsqueezy-events.ts'
import type { WebhookDelivery } from '../../../providers/billing/provider.ts'
import {
  lemonSqueezyConfig,
  lemonSqueezyDelivery,
  lemonSqueezyInvoice,
  lemonSqueezySubscription,
  signLemonSqueezyBytes,
} from '../../support/billing-lemonsqueezy.ts'

const lookups: string[] = []
const parse = (delivery: WebhookDelivery, kind: 'plan' | 'addon' | undefined = 'plan') =>
  parseLemonSqueezyEvent(delivery, {
    ...lemonSqueezyConfig,
    findKind: async (id) => {
      lookups.push(id)
      return kind
    },
  })

const updatedAt = Date.parse('2026-03-01T10:00:05Z')
const period = { periodStart: Date.parse('2026-03-01T10:00:00Z'), periodEnd: Date.parse('2026-04-01T10:00:00Z') }
const noPeriod = { periodStart: null, periodEnd: null }
const ended = { ends_at: '2026-04-01T10:00:00.000000Z' }
const paused = (mode: string) => ({ pause: { mode, resumes_at: '2026-05-01T10:00:00.000000Z' } })

test.each([
  ['subscription_created', 'on_trial', {}, { action: 'activate', ...period }],
  ['subscription_created', 'active', {}, { action: 'activate', ...period }],
  ['subscription_updated', 'active', {}, { action: 'activate', ...period }],
  ['subscription_updated', 'past_due', {}, { action: 'payment_failed', invoiceId: null, ...noPeriod }],
  ['subscription_updated', 'unpaid', {}, { action: 'payment_failed', invoiceId: null, ...noPeriod }],
  ['subscription_updated', 'cancelled', ended, { action: 'cancelled', ...period }],
  ['subscription_updated', 'expired', ended, { action: 'downgrade', ...noPeriod }],
  ['subscription_updated', 'paused', {}, { action: 'downgrade', ...noPeriod }],
  ['subscription_updated', 'paused', paused('free'), { action: 'activate', collection: 'paused', ...period }],
  ['subscription_resumed', 'active', {}, { action: 'activate', ...period }],
  ['subscription_unpaused', 'active', {}, { action: 'activate', ...period }],
  ['subscription_plan_changed', 'active', {}, { action: 'activate', ...period }],
  ['subscription_cancelled', 'cancelled', ended, { action: 'cancelled', ...period }],
  ['subscription_expired', 'expired', ended, { action: 'downgrade', ...noPeriod }],
  ['subscription_paused', 'paused', {}, { action: 'downgrade', ...noPeriod }],
  ['subscription_paused', 'paused', paused('void'), { action: 'downgrade', ...noPeriod }],
  ['subscription_paused', 'paused', paused('free'), { action: 'activate', collection: 'paused', ...period }],
  ['subscription_unpaused', 'active', paused('free'), { action: 'activate', ...period }],
])('%s with status %s is normalised', async (name, status, attributes, expected) => {
  const delivery = lemonSqueezyDelivery(name, lemonSqueezySubscription('7', { status, ...attributes }), 'user-1')
  const key = createHash('sha256').update(delivery.body).digest('hex')
  const common = { provider: 'lemonsqueezy', subscriptionId: '7', kind: 'plan', at: updatedAt, amount: null }
  expect(await parse(delivery)).toEqual({
    key,
    type: name,
    meaning: 'event',
    event: { key, quantity: null, invoiceId: null, collection: 'running', ...common, ...expected },
    userRef: 'user-1',
  })
})

test.each([
  ['active', { action: 'update_addon', quantity: 2, ...period }],
  ['past_due', { action: 'payment_failed', quantity: 2 }],
  ['cancelled', { action: 'cancelled', quantity: 2 }],
  ['expired', { action: 'downgrade' }],
  ['paused', { action: 'downgrade' }],
])('add-ons with status %s have a quantity', async (status, expected) => {
  const attributes = { variant_id: 1002, status, ...ended, first_subscription_item: { quantity: 2 } }
  const parsed = await parse(
    lemonSqueezyDelivery('subscription_updated', lemonSqueezySubscription('7', attributes), 'user-1'),
  )
  expect(parsed).toMatchObject({ event: { kind: 'addon', ...expected } })
})

test.each([
  [{ quantity: 9 }, 3],
  [{ quantity: 0 }, 0],
  [null, 1],
])('an item of %j counts as %j add-ons', async (item, quantity) => {
  const attributes = { variant_id: 1002, first_subscription_item: item }
  const parsed = await parse(
    lemonSqueezyDelivery('subscription_created', lemonSqueezySubscription('7', attributes), 'user-1'),
  )
  expect(parsed).toMatchObject({ event: { quantity } })
})

test('a period starts a month before its end but not before the purchase, and a yearly one has no known start', async () => {
  const of = async (attributes: object) => {
    const parsed = await parse(
      lemonSqueezyDelivery('subscription_updated', lemonSqueezySubscription('7', { ...attributes }), 'user-1'),
    )
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
])('%s with %j has its invoice', async (name, attributes, expected) => {
  const parsed = await parse(lemonSqueezyDelivery(name, lemonSqueezyInvoice('901', attributes)))
  const common = { subscriptionId: '7', kind: 'plan', at: invoiceAt, invoiceId: '901', quantity: null, ...noPeriod }
  expect(parsed).toMatchObject({ meaning: 'event', type: name, userRef: null, event: { ...common, ...expected } })
})

test.each([
  ['initial', 'period'],
  ['renewal', 'period'],
  ['updated', 'other'],
  ['a reason that is new', 'other'],
  [null, null],
  [undefined, null],
])('the billing reason %s is normalised to %s', async (billing_reason, invoiceReason) => {
  for (const name of ['success', 'failed', 'refunded'])
    expect(
      await parse(lemonSqueezyDelivery(`subscription_payment_${name}`, lemonSqueezyInvoice('901', { billing_reason }))),
    ).toMatchObject({
      event: { invoiceReason },
    })
})

test('the kind of a payment is looked up', async () => {
  const parsed = await parse(
    lemonSqueezyDelivery('subscription_payment_success', lemonSqueezyInvoice('901'), 'user-1'),
    'addon',
  )
  expect(parsed).toMatchObject({ userRef: 'user-1', event: { kind: 'addon' } })
  expect(lookups.at(-1)).toBe('7')
})

test('a payment for another product is ignored', async () => {
  const delivery = lemonSqueezyDelivery('subscription_payment_success', lemonSqueezyInvoice('901'))
  const deps = { ...lemonSqueezyConfig, findKind: async () => undefined }
  expect(await parseLemonSqueezyEvent(delivery, deps)).toMatchObject({ meaning: 'ignored' })
})

test('where test mode is not accepted its events are unusable, and ignored ones stay ignored', async () => {
  const of = (name: string, test_mode: unknown, acceptsTestMode: boolean) => {
    const { body } = lemonSqueezyDelivery(name, lemonSqueezySubscription('7'), 'user-1')
    const { meta, data } = JSON.parse(body.toString()) as { meta: object; data: object }
    const delivery = signLemonSqueezyBytes(Buffer.from(JSON.stringify({ meta: { ...meta, test_mode }, data })))
    return parseLemonSqueezyEvent(delivery, { ...lemonSqueezyConfig, acceptsTestMode, findKind: async () => 'plan' })
  }
  expect(await of('subscription_created', true, true)).toMatchObject({ meaning: 'event' })
  expect(await of('subscription_created', true, false)).toMatchObject({
    meaning: 'unusable',
    userRef: 'user-1',
    problem: expect.stringMatching(/^meta.test_mode: /),
  })
  expect(await of('order_created', true, false)).toMatchObject({ meaning: 'ignored' })
  for (const isTest of [false, undefined])
    expect(await of('subscription_created', isTest, false)).toMatchObject({ meaning: 'event' })
})

test('a refunded order is read if it names a subscription', async () => {
  const order = (attributes: object) => ({
    type: 'orders',
    id: '5',
    attributes: lemonSqueezyInvoice('5', { ...attributes }).attributes,
  })
  expect(await parse(lemonSqueezyDelivery('order_refunded', order({ status: 'refunded' })))).toMatchObject({
    event: { action: 'refund', amount: 'full', subscriptionId: '7', invoiceId: null },
  })
  expect(await parse(lemonSqueezyDelivery('order_refunded', order({ subscription_id: undefined })))).toMatchObject({
    meaning: 'ignored',
  })
})

test.each(['order_created', 'license_key_created', 'license_key_updated', 'affiliate_activated', 'customer_updated'])(
  '%s is ignored',
  async (name) => {
    expect(
      await parse(lemonSqueezyDelivery(name, { type: 'orders', id: '1', attributes: {} }, 'user-1')),
    ).toMatchObject({
      type: name,
      meaning: 'ignored',
    })
  },
)

test('another product is ignored, unless its custom data name an account', async () => {
  const other = lemonSqueezySubscription('7', { variant_id: 555 })
  expect(await parse(lemonSqueezyDelivery('subscription_created', other))).toMatchObject({ meaning: 'ignored' })
  expect(await parse(lemonSqueezyDelivery('subscription_created', other, 'user-1'))).toMatchObject({
    meaning: 'unusable',
    userRef: 'user-1',
    problem: expect.stringContaining('variant_id'),
  })
})

test('custom data cannot make a plan of another product', async () => {
  const delivery = lemonSqueezyDelivery('subscription_created', lemonSqueezySubscription('7', { variant_id: 555 }))
  const custom = { meta: { event_name: 'subscription_created', custom_data: { user_id: 'u', kind: 'plan' } } }
  const body = Buffer.from(JSON.stringify({ ...JSON.parse(delivery.body.toString()), ...custom }))
  expect(await parse(signLemonSqueezyBytes(body))).toMatchObject({ meaning: 'unusable' })
})

test.each([
  ['an unknown event', lemonSqueezyDelivery('subscription_exploded', lemonSqueezySubscription('7'))],
  [
    'an event type that is a property of Object.prototype',
    lemonSqueezyDelivery('constructor', lemonSqueezySubscription('7')),
  ],
  ['no event type', lemonSqueezyDelivery(undefined, lemonSqueezySubscription('7'))],
  ['no data', lemonSqueezyDelivery('subscription_created', null)],
  [
    'an unknown status',
    lemonSqueezyDelivery('subscription_created', lemonSqueezySubscription('7', { status: 'lost' })),
  ],
  [
    'an invalid time',
    lemonSqueezyDelivery('subscription_created', lemonSqueezySubscription('7', { updated_at: 'now' })),
  ],
  [
    'a payment without a subscription',
    lemonSqueezyDelivery('subscription_payment_failed', lemonSqueezyInvoice('1', { subscription_id: null })),
  ],
  [
    'a fractional number of add-ons',
    lemonSqueezyDelivery(
      'subscription_created',
      lemonSqueezySubscription('7', { first_subscription_item: { quantity: 1.5 } }),
    ),
  ],
  ['invalid JSON', signLemonSqueezyBytes(Buffer.from('{"meta":'))],
  ['null', signLemonSqueezyBytes(Buffer.from('null'))],
  ['invalid UTF-8', signLemonSqueezyBytes(Buffer.from([0x22, 0xff, 0x22]))],
  ['a byte order mark', signLemonSqueezyBytes(Buffer.from('\ufeff{}'))],
  ['nested arrays', signLemonSqueezyBytes(Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)))],
])('%s is unusable with a problem', async (_what, delivery) => {
  expect(await parse(delivery)).toMatchObject({ meaning: 'unusable', problem: expect.stringMatching(/./) })
})
