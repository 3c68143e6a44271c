import { expect, test } from 'vitest'
import { BillingProviderError, type WebhookDelivery } from '../../../providers/billing/provider.ts'
import { parseStripeEvent, type StripeAnswers } from '../../../providers/billing/stripe-events.ts'
import { StripeInvoice, StripeSubscription } from '../../../providers/billing/stripe-shapes.ts'
import {
  aCharge,
  aDispute,
  aStripeDelivery,
  aStripeInvoice,
  aStripeSubscription,
  happenedAt,
  periodOfMarch,
  signedByStripe,
  stripeConfig,
} from '../../support/billing-stripe.ts'

/** What Stripe would answer; nobody is asked unless the test says so. */
interface Answers {
  readonly subscription?: object
  readonly invoice?: object | null
}

function answering({ subscription, invoice }: Answers): StripeAnswers {
  const away = new BillingProviderError('stripe could not be reached')
  return {
    subscription: async () => {
      if (!subscription) throw away
      return StripeSubscription.parse(subscription)
    },
    invoiceOf: async () => {
      if (invoice === undefined) throw away
      return invoice === null ? undefined : StripeInvoice.parse(invoice)
    },
  }
}

const parse = (delivery: WebhookDelivery, answers: Answers = {}) =>
  parseStripeEvent(delivery, { ...stripeConfig, answers: answering(answers) })

const period = { periodStart: periodOfMarch.start * 1000, periodEnd: periodOfMarch.end * 1000 }
const bare = {
  key: 'evt_1',
  provider: 'stripe',
  subscriptionId: 'sub_1',
  kind: 'plan',
  at: happenedAt * 1000,
  quantity: null,
  invoiceId: null,
  amount: null,
  periodStart: null,
  periodEnd: null,
}
const cancelAt = periodOfMarch.end - 86_400
const cancelled = { action: 'cancelled', ...period }

test.each([
  ['created', { status: 'active' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['created', { status: 'trialing' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['updated', { status: 'active' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['updated', { status: 'past_due' }, { action: 'payment_failed' }],
  ['updated', { status: 'unpaid' }, { action: 'payment_failed' }],
  ['updated', { status: 'active', cancel_at_period_end: true }, cancelled],
  ['updated', { status: 'past_due', cancel_at_period_end: true }, cancelled],
  ['updated', { status: 'active', cancel_at: cancelAt }, { ...cancelled, periodEnd: cancelAt * 1000 }],
  ['updated', { status: 'canceled', cancel_at_period_end: true }, { action: 'downgrade' }],
  ['updated', { status: 'incomplete_expired' }, { action: 'downgrade' }],
  ['paused', { status: 'paused' }, { action: 'downgrade' }],
  ['resumed', { status: 'active' }, { action: 'activate', invoiceId: 'in_1', ...period }],
  ['deleted', { status: 'canceled' }, { action: 'downgrade' }],
  ['deleted', { status: 'active' }, { action: 'downgrade' }],
])('customer.subscription.%s with %j', async (name, attributes, told) => {
  const type = `customer.subscription.${name}`
  const parsed = await parse(aStripeDelivery(type, aStripeSubscription('sub_1', attributes)))
  expect(parsed).toEqual({ key: 'evt_1', type, meaning: 'event', event: { ...bare, ...told }, userRef: 'user-1' })
})

test.each([
  [{ status: 'active' }, { action: 'update_addon', quantity: 2, invoiceId: null, ...period }],
  [{ status: 'past_due' }, { action: 'payment_failed', quantity: 2 }],
  [
    { status: 'active', cancel_at_period_end: true },
    { action: 'cancelled', quantity: 2 },
  ],
  [{ status: 'canceled' }, { action: 'downgrade', quantity: null }],
])('add-ons with %j tell their number', async (attributes, told) => {
  const subscription = aStripeSubscription('sub_1', attributes, { price: 'price_addon', quantity: 2 })
  const parsed = await parse(aStripeDelivery('customer.subscription.updated', subscription))
  expect(parsed).toMatchObject({ event: { kind: 'addon', ...told } })
})

test('of a subscription that holds other things too, ours is the one that counts', async () => {
  const { items } = aStripeSubscription('sub_1', {}, { price: 'price_addon', quantity: 2 })
  const [ours] = items.data
  const other = { ...ours, price: { id: 'other' }, quantity: 3, current_period_end: periodOfMarch.end + 1 }
  const parsed = await parse(
    aStripeDelivery('customer.subscription.updated', aStripeSubscription('sub_1', { items: { data: [other, ours] } })),
  )
  expect(parsed).toMatchObject({ event: { kind: 'addon', quantity: 2, ...period } })
})

test('no more than three add-ons are told', async () => {
  const subscription = aStripeSubscription('sub_1', {}, { price: 'price_addon', quantity: 12 })
  const parsed = await parse(aStripeDelivery('customer.subscription.updated', subscription))
  expect(parsed).toMatchObject({ event: { quantity: 3 } })
})

test('an old price is told from others by the mark of our checkout', async () => {
  const of = (metadata: object) =>
    parse(
      aStripeDelivery('customer.subscription.updated', aStripeSubscription('sub_1', {}, { price: 'old', metadata })),
    )
  expect(await of({ user_id: 'user-1', kind: 'addon' })).toMatchObject({ event: { kind: 'addon' } })
  expect(await of({ user_id: 'user-1' })).toMatchObject({ meaning: 'unusable', userRef: 'user-1' })
  expect(await of({})).toMatchObject({ meaning: 'ignored' })
})

test('a subscription that was not paid for yet is nothing to us', async () => {
  const subscription = aStripeSubscription('sub_1', { status: 'incomplete' })
  expect(await parse(aStripeDelivery('customer.subscription.created', subscription))).toMatchObject({
    meaning: 'ignored',
  })
})

test('a paid invoice pays for its period, and a failed one is the same on every try', async () => {
  const paid = await parse(aStripeDelivery('invoice.paid', aStripeInvoice('in_1')))
  expect(paid).toMatchObject({
    userRef: 'user-1',
    event: { ...bare, action: 'payment_recovery', invoiceId: 'in_1', ...period },
  })
  const failure = aStripeInvoice('in_2', { status: 'open', attempt_count: 3 })
  const failed = await parse(aStripeDelivery('invoice.payment_failed', failure))
  expect(failed).toMatchObject({ userRef: 'user-1', event: { ...bare, action: 'payment_failed', invoiceId: 'in_2' } })
})

test('an invoice for a change within a period tells no period', async () => {
  const invoice = aStripeInvoice('in_1')
  const lines = invoice.lines.data.map((line) => ({
    ...line,
    parent: { type: 'subscription_item_details', subscription_item_details: { proration: true } },
  }))
  const parsed = await parse(aStripeDelivery('invoice.paid', { ...invoice, lines: { data: lines } }))
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
])('an invoice made for %s is for: %s', async (billing_reason, invoiceReason) => {
  const invoice = aStripeInvoice('in_1', { billing_reason })
  const periodEnd = invoiceReason === 'other' ? null : period.periodEnd
  const of = async (type: string, object: object) => parse(aStripeDelivery(type, object), { invoice })
  expect(await of('invoice.paid', invoice)).toMatchObject({ event: { invoiceReason, periodEnd } })
  expect(await of('invoice.payment_failed', invoice)).toMatchObject({ event: { invoiceReason } })
  expect(await of('charge.refunded', aCharge())).toMatchObject({ event: { action: 'refund', invoiceReason } })
  expect(await of('charge.dispute.created', aDispute())).toMatchObject({ event: { action: 'refund', invoiceReason } })
})

test('an invoice that does not say whose or what it is for has its subscription asked', async () => {
  const invoice = aStripeInvoice('in_1', {}, { price: 'old', metadata: {} })
  const subscription = aStripeSubscription('sub_1', {}, { price: 'price_addon', metadata: { user_id: 'user-2' } })
  expect(await parse(aStripeDelivery('invoice.paid', invoice), { subscription })).toMatchObject({
    userRef: 'user-2',
    event: { kind: 'addon' },
  })
  const other = aStripeSubscription('sub_1', {}, { price: 'other', metadata: {} })
  expect(await parse(aStripeDelivery('invoice.paid', invoice), { subscription: other })).toMatchObject({
    meaning: 'ignored',
  })
})

test('an invoice of a subscription that we know needs no question, and says whose it is only where it names an account', async () => {
  const known = { ...stripeConfig, answers: null, kindOf: async () => 'addon' as const }
  for (const [metadata, userRef] of [
    [{}, null],
    [{ user_id: 'user-2' }, 'user-2'],
  ] as const) {
    const invoice = aStripeInvoice('in_1', {}, { price: 'old', metadata })
    expect(await parseStripeEvent(aStripeDelivery('invoice.paid', invoice), known)).toMatchObject({
      userRef,
      event: { kind: 'addon', action: 'payment_recovery' },
    })
  }
})

test('an invoice without a subscription is nothing to us', async () => {
  for (const parent of [null, { type: 'quote_details', subscription_details: null }])
    expect(await parse(aStripeDelivery('invoice.paid', aStripeInvoice('in_1', { parent })))).toMatchObject({
      meaning: 'ignored',
    })
})

const refund = { ...bare, action: 'refund', invoiceId: 'in_1' }
const invoice = aStripeInvoice('in_1')

test.each([
  ['charge.refunded', aCharge(), 'full'],
  ['charge.refunded', aCharge({ refunded: false, amount_refunded: 100 }), 'partial'],
  ['charge.dispute.created', aDispute(), 'full'],
  ['charge.dispute.funds_withdrawn', aDispute({ status: 'under_review' }), 'full'],
])('%s of %j is a refund of its invoice: %s', async (type, object, amount) => {
  expect(await parse(aStripeDelivery(type, object), { invoice })).toMatchObject({
    userRef: 'user-1',
    event: { ...refund, amount },
  })
})

test.each([
  ['charge.refunded', aCharge({ payment_intent: null })],
  ['charge.dispute.created', aDispute({ payment_intent: null })],
  ['charge.dispute.created', aDispute({ status: 'warning_needs_response' })],
  ['charge.dispute.closed', aDispute({ status: 'lost' })],
  ['charge.dispute.closed', aDispute({ status: 'warning_closed' })],
  ['charge.succeeded', aCharge()],
  ['invoice.created', invoice],
  ['customer.subscription.trial_will_end', aStripeSubscription('sub_1')],
  ['something.new', {}],
])('%s of %j is nothing to us, and nobody is asked', async (type, object) => {
  expect(await parse(aStripeDelivery(type, object))).toMatchObject({ type, meaning: 'ignored' })
})

test('a charge that was for no invoice is nothing to us', async () => {
  expect(await parse(aStripeDelivery('charge.refunded', aCharge()), { invoice: null })).toMatchObject({
    meaning: 'ignored',
  })
})

test('a dispute that was won gives the money back while the subscription goes on, and revives none that is over', async () => {
  const won = aStripeDelivery('charge.dispute.closed', aDispute({ status: 'won' }))
  const subscription = aStripeSubscription('sub_1')
  expect(await parse(won, { invoice, subscription })).toMatchObject({
    event: { ...bare, action: 'payment_recovery', invoiceId: null },
  })
  const over = aStripeSubscription('sub_1', { status: 'canceled' })
  expect(await parse(won, { invoice, subscription: over })).toMatchObject({ meaning: 'ignored' })
})

test('an event of test mode is unusable where test mode is not accepted, and what is nothing to us stays that', async () => {
  const subscription = aStripeSubscription('sub_1')
  const of = (delivery: WebhookDelivery, acceptsTestMode: boolean) =>
    parseStripeEvent(delivery, { ...stripeConfig, acceptsTestMode, answers: null })
  const event = (type: string, object: object, livemode?: boolean) => aStripeDelivery(type, object, { livemode })
  const created = event('customer.subscription.created', subscription, false)
  expect(await of(created, true)).toMatchObject({ meaning: 'event' })
  const refused = { meaning: 'unusable', why: expect.stringMatching(/^livemode: /) }
  expect(await of(created, false)).toMatchObject({ ...refused, userRef: 'user-1' })
  expect(await of(event('charge.refunded', aCharge(), false), false)).toMatchObject(refused)
  expect(await of(event('customer.created', {}, false), false)).toMatchObject({ meaning: 'ignored' })
  for (const livemode of [true, undefined])
    expect(await of(event('customer.subscription.created', subscription, livemode), false)).toMatchObject({
      meaning: 'event',
    })
})

test('when Stripe can not be asked, the event is to come again', async () => {
  for (const delivery of [
    aStripeDelivery('charge.refunded', aCharge()),
    aStripeDelivery('charge.dispute.closed', aDispute({ status: 'won' })),
    aStripeDelivery('invoice.paid', aStripeInvoice('in_1', {}, { metadata: {} })),
  ])
    await expect(parse(delivery)).rejects.toThrow(BillingProviderError)
})

test('an event without a usable id is known by its bytes', async () => {
  const of = async (id: unknown) => (await parse(aStripeDelivery('invoice.created', {}, { id }))).key
  const keys = await Promise.all([undefined, 7, '', 'a b', 'x'.repeat(256)].map(of))
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}$/)
  expect(new Set(keys).size).toBe(keys.length)
})

const withItems = (items: unknown) =>
  aStripeDelivery('customer.subscription.updated', { ...aStripeSubscription('sub_1'), items })

test.each([
  ['no type', aStripeDelivery(undefined, {})],
  ['no time', aStripeDelivery('invoice.paid', {}, { created: 'now' })],
  ['a time in milliseconds', aStripeDelivery('invoice.paid', {}, { created: 1_772_400_000_000 })],
  ['a time before 1970', aStripeDelivery('invoice.paid', {}, { created: -1 })],
  ['no data', aStripeDelivery('invoice.paid', {}, { data: null })],
  ['a subscription without items', withItems({ data: [] })],
  ['a subscription as older versions of the api have it', withItems({ data: [{ price: { id: 'price_plan' } }] })],
  [
    'an unknown status',
    aStripeDelivery('customer.subscription.updated', aStripeSubscription('sub_1', { status: 'lost' })),
  ],
  ['a NUL in an id', aStripeDelivery('customer.subscription.updated', aStripeSubscription('a\0b'))],
  [
    'an invoice as older versions of the api have it',
    aStripeDelivery('invoice.paid', aStripeInvoice('in_1', { parent: undefined })),
  ],
  ['a charge of null', aStripeDelivery('charge.refunded', null)],
  ['a dispute without status', aStripeDelivery('charge.dispute.created', aDispute({ status: 1 }))],
  ['no JSON', signedByStripe('{"id":')],
  ['null', signedByStripe('null')],
  ['a byte order mark', signedByStripe('\ufeff{}')],
  ['lists in lists', signedByStripe('['.repeat(100_000) + ']'.repeat(100_000))],
  ['bytes that are no UTF-8', { headers: {}, body: Buffer.from([0x22, 0xff, 0x22]) }],
])('%s is unusable, with a reason', async (_what, delivery) => {
  expect(await parse(delivery)).toMatchObject({ meaning: 'unusable', why: expect.stringMatching(/./) })
})
