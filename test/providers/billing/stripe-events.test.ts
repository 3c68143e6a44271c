/** The billing events that webhooks of Stripe become. */
import { expect, test } from 'vitest'
import { BillingProviderError, type WebhookDelivery } from '../../../providers/billing/provider.ts'
import { parseStripeEvent, type StripeLookups } from '../../../providers/billing/stripe-events.ts'
import { StripeInvoice, StripeSubscription } from '../../../providers/billing/stripe-shapes.ts'
import {
  createdSeconds,
  marchPeriod,
  signStripePayload,
  stripeCharge,
  stripeConfig,
  stripeDelivery,
  stripeDispute,
  stripeInvoice,
  stripeRefund,
  stripeSubscription,
} from '../../support/billing-stripe.ts'

/** The objects that Stripe returns; a lookup of another one fails. */
interface Objects {
  readonly subscription?: object
  readonly invoice?: object | null
}

function createLookups({ subscription, invoice }: Objects): StripeLookups {
  const unreachable = new BillingProviderError('stripe could not be reached')
  return {
    findSubscription: async () => {
      if (!subscription) throw unreachable
      return StripeSubscription.parse(subscription)
    },
    findInvoice: async () => {
      if (invoice === undefined) throw unreachable
      return invoice === null ? undefined : StripeInvoice.parse(invoice)
    },
  }
}

const parse = (delivery: WebhookDelivery, objects: Objects = {}) =>
  parseStripeEvent(delivery, { ...stripeConfig, lookups: createLookups(objects) })

const period = { periodStart: marchPeriod.start * 1000, periodEnd: marchPeriod.end * 1000 }
const emptyEvent = {
  key: 'evt_1',
  provider: 'stripe',
  subscriptionId: 'sub_1',
  kind: 'plan',
  at: createdSeconds * 1000,
  quantity: null,
  invoiceId: null,
  amount: null,
  periodStart: null,
  periodEnd: null,
}
const cancelAt = marchPeriod.end - 86_400
const cancelled = { action: 'cancelled', ...period }
const isPaused = { pause_collection: { behavior: 'void', resumes_at: null } }
const paused = { collection: 'paused' }

test.each([
  ['created', { status: 'active' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['created', { status: 'trialing' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['updated', { status: 'active' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['updated', { status: 'past_due' }, { action: 'payment_failed' }],
  ['updated', { status: 'unpaid' }, { action: 'payment_failed' }],
  ['updated', { status: 'active', ...isPaused }, { action: 'activate', invoiceId: 'in_1', ...paused, ...period }],
  ['updated', { status: 'past_due', ...isPaused }, { action: 'activate', invoiceId: 'in_1', ...paused, ...period }],
  ['updated', { status: 'unpaid', ...isPaused }, { action: 'activate', invoiceId: 'in_1', ...paused, ...period }],
  ['updated', { status: 'canceled', ...isPaused }, { action: 'downgrade', ...paused }],
  ['updated', { status: 'active', cancel_at_period_end: true }, cancelled],
  ['updated', { status: 'past_due', cancel_at_period_end: true }, cancelled],
  ['updated', { status: 'active', cancel_at: cancelAt }, { ...cancelled, periodEnd: cancelAt * 1000 }],
  ['updated', { status: 'canceled', cancel_at_period_end: true }, { action: 'downgrade' }],
  ['updated', { status: 'incomplete_expired' }, { action: 'downgrade' }],
  ['paused', { status: 'paused' }, { action: 'downgrade' }],
  ['resumed', { status: 'active' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['deleted', { status: 'canceled' }, { action: 'downgrade' }],
  ['deleted', { status: 'active' }, { action: 'downgrade' }],
])('customer.subscription.%s with %j is normalised', async (name, attributes, expected) => {
  const type = `customer.subscription.${name}`
  const parsed = await parse(stripeDelivery(type, stripeSubscription('sub_1', attributes)))
  expect(parsed).toEqual({
    key: 'evt_1',
    type,
    meaning: 'event',
    event: { ...emptyEvent, collection: 'running', ...expected },
    userRef: 'user-1',
  })
})

test.each([
  [{ status: 'active' }, { action: 'update_addon', quantity: 2, invoiceId: null, ...period }],
  [{ status: 'past_due' }, { action: 'payment_failed', quantity: 2 }],
  [
    { status: 'active', cancel_at_period_end: true },
    { action: 'cancelled', quantity: 2 },
  ],
  [{ status: 'canceled' }, { action: 'downgrade', quantity: null }],
])('add-ons with %j have a quantity', async (attributes, expected) => {
  const subscription = stripeSubscription('sub_1', attributes, { price: 'price_addon', quantity: 2 })
  const parsed = await parse(stripeDelivery('customer.subscription.updated', subscription))
  expect(parsed).toMatchObject({ event: { kind: 'addon', ...expected } })
})

test('only the item with a configured price is read', async () => {
  const { items } = stripeSubscription('sub_1', {}, { price: 'price_addon', quantity: 2 })
  const [ours] = items.data
  const other = { ...ours, price: { id: 'other' }, quantity: 3, current_period_end: marchPeriod.end + 1 }
  const parsed = await parse(
    stripeDelivery('customer.subscription.updated', stripeSubscription('sub_1', { items: { data: [other, ours] } })),
  )
  expect(parsed).toMatchObject({ event: { kind: 'addon', quantity: 2, ...period } })
})

/** Items at these prices, each with its quantity. */
const itemsOf = (...quantities: readonly (readonly [price: string, quantity: number])[]) => {
  const [item] = stripeSubscription('sub_1').items.data
  return { items: { data: quantities.map(([id, quantity]) => ({ ...item, price: { id }, quantity })) } }
}

test.each([
  ['the plan', itemsOf(['price_plan', 1]), { kind: 'plan', quantity: null }, undefined],
  ['add-ons beside the plan', itemsOf(['price_addon', 2], ['price_plan', 1]), { kind: 'plan', quantity: null }, 2],
  ['add-ons in two items', itemsOf(['price_plan', 1], ['price_addon', 1], ['price_addon', 1]), { kind: 'plan' }, 2],
  ['more add-ons than there are', itemsOf(['price_plan', 1], ['price_addon', 7]), { kind: 'plan' }, 3],
  [
    'add-ons alone, in two items',
    itemsOf(['price_addon', 1], ['price_addon', 2]),
    { kind: 'addon', quantity: 3 },
    undefined,
  ],
  ['another product beside the plan', itemsOf(['price_plan', 1], ['other', 5]), { kind: 'plan' }, undefined],
])('all items of a subscription count: %s', async (_what, items, expected, addons) => {
  const parsed = await parse(stripeDelivery('customer.subscription.updated', stripeSubscription('sub_1', items)))
  expect(parsed).toMatchObject({ event: expected })
  expect(parsed.meaning === 'event' && parsed.event.addons).toBe(addons)
})

test('an invoice for the add-ons of a subscription that is stored as a plan is for that subscription', async () => {
  const invoice = stripeInvoice('in_1', { billing_reason: 'subscription_update' }, { price: 'price_addon' })
  const known = { ...stripeConfig, lookups: null, findKind: async () => 'plan' as const }
  expect(await parseStripeEvent(stripeDelivery('invoice.paid', invoice), known)).toMatchObject({
    event: { kind: 'plan', action: 'payment_recovery', invoiceReason: 'other' },
  })
})

test('the quantity of add-ons is limited to three', async () => {
  const subscription = stripeSubscription('sub_1', {}, { price: 'price_addon', quantity: 12 })
  const parsed = await parse(stripeDelivery('customer.subscription.updated', subscription))
  expect(parsed).toMatchObject({ event: { quantity: 3 } })
})

test('the kind of an old price comes from the checkout metadata', async () => {
  const of = (metadata: object) =>
    parse(stripeDelivery('customer.subscription.updated', stripeSubscription('sub_1', {}, { price: 'old', metadata })))
  expect(await of({ user_id: 'user-1', kind: 'addon' })).toMatchObject({ event: { kind: 'addon' } })
  expect(await of({ user_id: 'user-1' })).toMatchObject({ meaning: 'unusable', userRef: 'user-1' })
  expect(await of({})).toMatchObject({ meaning: 'ignored' })
})

test('an unpaid subscription is ignored', async () => {
  const subscription = stripeSubscription('sub_1', { status: 'incomplete' })
  expect(await parse(stripeDelivery('customer.subscription.created', subscription))).toMatchObject({
    meaning: 'ignored',
  })
})

test('a paid invoice has its period, a failed one has none', async () => {
  const paid = await parse(stripeDelivery('invoice.paid', stripeInvoice('in_1')))
  expect(paid).toMatchObject({
    userRef: 'user-1',
    event: { ...emptyEvent, action: 'payment_recovery', invoiceId: 'in_1', ...period },
  })
  const failure = stripeInvoice('in_2', { status: 'open', attempt_count: 3 })
  const failed = await parse(stripeDelivery('invoice.payment_failed', failure))
  expect(failed).toMatchObject({
    userRef: 'user-1',
    event: { ...emptyEvent, action: 'payment_failed', invoiceId: 'in_2' },
  })
})

test('an invoice for a proration has no period', async () => {
  const invoice = stripeInvoice('in_1')
  const lines = invoice.lines.data.map((line) => ({
    ...line,
    parent: { type: 'subscription_item_details', subscription_item_details: { proration: true } },
  }))
  const parsed = await parse(stripeDelivery('invoice.paid', { ...invoice, lines: { data: lines } }))
  expect(parsed).toMatchObject({ event: { action: 'payment_recovery', periodStart: null, periodEnd: null } })
})

test.each([
  ['subscription_create', 'period'],
  ['subscription_cycle', 'period'],
  ['subscription_update', 'other'],
  ['manual', 'other'],
  ['a reason that is new', 'other'],
  [null, null],
  [undefined, null],
])('the billing reason %s is normalised to %s', async (billing_reason, invoiceReason) => {
  const invoice = stripeInvoice('in_1', { billing_reason })
  const periodEnd = invoiceReason === 'other' ? null : period.periodEnd
  const of = async (type: string, object: object) => parse(stripeDelivery(type, object), { invoice })
  expect(await of('invoice.paid', invoice)).toMatchObject({ event: { invoiceReason, periodEnd } })
  expect(await of('invoice.payment_failed', invoice)).toMatchObject({ event: { invoiceReason } })
  expect(await of('charge.refunded', stripeCharge())).toMatchObject({ event: { action: 'refund', invoiceReason } })
  expect(await of('charge.dispute.created', stripeDispute())).toMatchObject({
    event: { action: 'refund', invoiceReason },
  })
})

test('an invoice without account or kind is resolved through its subscription', async () => {
  const invoice = stripeInvoice('in_1', {}, { price: 'old', metadata: {} })
  const subscription = stripeSubscription('sub_1', {}, { price: 'price_addon', metadata: { user_id: 'user-2' } })
  expect(await parse(stripeDelivery('invoice.paid', invoice), { subscription })).toMatchObject({
    userRef: 'user-2',
    event: { kind: 'addon' },
  })
  const other = stripeSubscription('sub_1', {}, { price: 'other', metadata: {} })
  expect(await parse(stripeDelivery('invoice.paid', invoice), { subscription: other })).toMatchObject({
    meaning: 'ignored',
  })
})

test('an invoice of a stored subscription needs no request, and has an account only if its metadata names one', async () => {
  const known = { ...stripeConfig, lookups: null, findKind: async () => 'addon' as const }
  for (const [metadata, userRef] of [
    [{}, null],
    [{ user_id: 'user-2' }, 'user-2'],
  ] as const) {
    const invoice = stripeInvoice('in_1', {}, { price: 'old', metadata })
    expect(await parseStripeEvent(stripeDelivery('invoice.paid', invoice), known)).toMatchObject({
      userRef,
      event: { kind: 'addon', action: 'payment_recovery' },
    })
  }
})

test('an invoice without a subscription is ignored', async () => {
  for (const parent of [null, { type: 'quote_details', subscription_details: null }])
    expect(await parse(stripeDelivery('invoice.paid', stripeInvoice('in_1', { parent })))).toMatchObject({
      meaning: 'ignored',
    })
})

const refund = { ...emptyEvent, action: 'refund', invoiceId: 'in_1' }
const invoice = stripeInvoice('in_1')

test.each([
  ['charge.refunded', stripeCharge(), 'full'],
  ['charge.refunded', stripeCharge({ refunded: false, amount_refunded: 100 }), 'partial'],
  ['charge.dispute.created', stripeDispute(), 'full'],
  ['charge.dispute.funds_withdrawn', stripeDispute({ status: 'under_review' }), 'full'],
])('%s of %j is a refund of its invoice, %s', async (type, object, amount) => {
  expect(await parse(stripeDelivery(type, object), { invoice })).toMatchObject({
    userRef: 'user-1',
    event: { ...refund, amount },
  })
})

test.each([
  ['charge.refunded', stripeCharge({ payment_intent: null })],
  ['charge.dispute.created', stripeDispute({ payment_intent: null })],
  ['charge.dispute.created', stripeDispute({ status: 'warning_needs_response' })],
  ['charge.dispute.closed', stripeDispute({ status: 'lost' })],
  ['charge.dispute.closed', stripeDispute({ status: 'warning_closed' })],
  ['charge.dispute.funds_reinstated', stripeDispute({ status: 'under_review' })],
  ['refund.updated', stripeRefund({ status: 'succeeded' })],
  ['charge.refund.updated', stripeRefund({ status: null })],
  ['refund.failed', stripeRefund({ status: 'failed', payment_intent: null })],
  ['invoice.voided', invoice],
  ['charge.succeeded', stripeCharge()],
  ['invoice.created', invoice],
  ['customer.subscription.trial_will_end', stripeSubscription('sub_1')],
  ['something.new', {}],
])('%s of %j is ignored without a request', async (type, object) => {
  expect(await parse(stripeDelivery(type, object))).toMatchObject({ type, meaning: 'ignored' })
})

test('a charge without an invoice is ignored', async () => {
  expect(await parse(stripeDelivery('charge.refunded', stripeCharge()), { invoice: null })).toMatchObject({
    meaning: 'ignored',
  })
})

test.each([
  ['charge.dispute.closed', stripeDispute({ status: 'won' })],
  ['charge.dispute.funds_reinstated', stripeDispute({ status: 'won' })],
  ['refund.failed', stripeRefund({ status: 'failed' })],
  ['refund.updated', stripeRefund({ status: 'failed' })],
  ['refund.updated', stripeRefund({ status: 'canceled' })],
  ['charge.refund.updated', stripeRefund({ status: 'failed' })],
])('%s of %j undoes the refund of its invoice', async (type, object) => {
  expect(await parse(stripeDelivery(type, object), { invoice })).toMatchObject({
    userRef: 'user-1',
    event: { ...refund, amount: 'none' },
  })
})

test('where test mode is not accepted its events are unusable, and ignored ones stay ignored', async () => {
  const subscription = stripeSubscription('sub_1')
  const of = (delivery: WebhookDelivery, acceptsTestMode: boolean) =>
    parseStripeEvent(delivery, { ...stripeConfig, acceptsTestMode, lookups: null })
  const event = (type: string, object: object, livemode?: boolean) => stripeDelivery(type, object, { livemode })
  const created = event('customer.subscription.created', subscription, false)
  expect(await of(created, true)).toMatchObject({ meaning: 'event' })
  const refused = { meaning: 'unusable', problem: expect.stringMatching(/^livemode: /) }
  expect(await of(created, false)).toMatchObject({ ...refused, userRef: 'user-1' })
  expect(await of(event('charge.refunded', stripeCharge(), false), false)).toMatchObject(refused)
  expect(await of(event('customer.created', {}, false), false)).toMatchObject({ meaning: 'ignored' })
  for (const livemode of [true, undefined])
    expect(await of(event('customer.subscription.created', subscription, livemode), false)).toMatchObject({
      meaning: 'event',
    })
})

test('an event that needs a failing request is rejected', async () => {
  for (const delivery of [
    stripeDelivery('charge.refunded', stripeCharge()),
    stripeDelivery('charge.dispute.closed', stripeDispute({ status: 'won' })),
    stripeDelivery('refund.failed', stripeRefund({ status: 'failed' })),
    stripeDelivery('invoice.paid', stripeInvoice('in_1', {}, { metadata: {} })),
  ])
    await expect(parse(delivery)).rejects.toThrow(BillingProviderError)
})

test('an event without a usable id gets the hash of its bytes as key', async () => {
  const of = async (id: unknown) => (await parse(stripeDelivery('invoice.created', {}, { id }))).key
  const keys = await Promise.all([undefined, 7, '', 'a b', 'x'.repeat(256)].map(of))
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}$/)
  expect(new Set(keys).size).toBe(keys.length)
})

const withItems = (items: unknown) =>
  stripeDelivery('customer.subscription.updated', { ...stripeSubscription('sub_1'), items })

test.each([
  ['no type', stripeDelivery(undefined, {})],
  ['no time', stripeDelivery('invoice.paid', {}, { created: 'now' })],
  ['a time in milliseconds', stripeDelivery('invoice.paid', {}, { created: 1_772_400_000_000 })],
  ['a time before 1970', stripeDelivery('invoice.paid', {}, { created: -1 })],
  ['no data', stripeDelivery('invoice.paid', {}, { data: null })],
  ['a subscription without items', withItems({ data: [] })],
  ['a subscription of an older API version', withItems({ data: [{ price: { id: 'price_plan' } }] })],
  [
    'an unknown status',
    stripeDelivery('customer.subscription.updated', stripeSubscription('sub_1', { status: 'lost' })),
  ],
  ['a NUL in an id', stripeDelivery('customer.subscription.updated', stripeSubscription('a\0b'))],
  ['an invoice of an older API version', stripeDelivery('invoice.paid', stripeInvoice('in_1', { parent: undefined }))],
  ['a charge of null', stripeDelivery('charge.refunded', null)],
  ['a refund of null', stripeDelivery('refund.failed', null)],
  ['a dispute without status', stripeDelivery('charge.dispute.created', stripeDispute({ status: 1 }))],
  ['invalid JSON', signStripePayload('{"id":')],
  ['null', signStripePayload('null')],
  ['a byte order mark', signStripePayload('\ufeff{}')],
  ['nested arrays', signStripePayload('['.repeat(100_000) + ']'.repeat(100_000))],
  ['invalid UTF-8', { headers: {}, body: Buffer.from([0x22, 0xff, 0x22]) }],
])('%s is unusable with a problem', async (_what, delivery) => {
  expect(await parse(delivery)).toMatchObject({ meaning: 'unusable', problem: expect.stringMatching(/./) })
})
