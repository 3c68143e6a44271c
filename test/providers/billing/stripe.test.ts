import { describe, expect, test } from 'vitest'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { createStripe } from '../../../providers/billing/stripe.ts'
import { startBillingApi } from '../../support/billing-api.ts'
import {
  aCharge,
  aDispute,
  aStripeDelivery,
  aStripeInvoice,
  aStripeSubscription,
  listsOfStripe,
  periodOfMarch,
  stripeAccount,
  stripeConfig,
} from '../../support/billing-stripe.ts'

const api = await startBillingApi()
const provider = createStripe({ ...stripeConfig, apiUrl: api.url })
const impatient = createStripe({ ...stripeConfig, apiUrl: api.url, callMillisMax: 200 })
const request = {
  userId: 'user-1',
  email: 'a@example.com',
  kind: 'plan',
  quantity: 1,
  returnUrl: 'https://site.example/account?done=bought',
  cancelUrl: 'https://site.example/account',
} as const

test('a webhook that Stripe signed is believed and read', async () => {
  const delivery = aStripeDelivery('customer.subscription.created', aStripeSubscription('sub_1'))
  expect(provider.verify(delivery, Date.now())).toBe(true)
  expect(await provider.parse(delivery)).toMatchObject({ meaning: 'event', userRef: 'user-1' })
})

test('a checkout leaves our mark on the subscription', async () => {
  api.answer = () => ({ json: { id: 'cs_1', object: 'checkout.session', url: 'https://checkout.stripe.com/c/1' } })
  expect(await provider.checkout(request)).toBe('https://checkout.stripe.com/c/1')
  const { method, path, headers, body } = api.requests.at(-1) ?? {}
  expect([method, path, headers?.authorization]).toEqual(['POST', '/v1/checkout/sessions', 'Bearer sk_test_1'])
  expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
    mode: 'subscription',
    'line_items[0][price]': 'price_plan',
    'line_items[0][quantity]': '1',
    client_reference_id: 'user-1',
    customer_email: 'a@example.com',
    'subscription_data[metadata][user_id]': 'user-1',
    'subscription_data[metadata][kind]': 'plan',
    success_url: 'https://site.example/account?done=bought',
    cancel_url: 'https://site.example/account',
  })
  await provider.checkout({ ...request, kind: 'addon', quantity: 2, email: null })
  const addon = new URLSearchParams(api.requests.at(-1)?.body)
  expect([addon.get('line_items[0][price]'), addon.get('line_items[0][quantity]')]).toEqual(['price_addon', '2'])
  expect(addon.has('customer_email')).toBe(false)
})

describe('a checkout of a customer who bought here before', () => {
  test('is for the same customer, so that cards and invoices stay together', async () => {
    api.answer = stripeAccount(aStripeSubscription('sub_1', { customer: 'cus_7' })).answer
    expect(await provider.checkout({ ...request, customerId: 'cus_7' })).toContain('cus_7')
    const asked = new URLSearchParams(api.requests.at(-1)?.body)
    expect([asked.get('customer'), asked.get('customer_email')]).toEqual(['cus_7', null])
  })

  test('is for a new customer when the old one was deleted', async () => {
    api.answer = stripeAccount().answer
    expect(await provider.checkout({ ...request, customerId: 'cus_deleted' })).toContain('new')
    expect(new URLSearchParams(api.requests.at(-1)?.body).get('customer_email')).toBe('a@example.com')
  })

  test('fails once when something else than the customer is missing', async () => {
    const error = { type: 'invalid_request_error', code: 'resource_missing', param: 'line_items[0][price]' }
    api.answer = () => ({ status: 400, json: { error } })
    const from = api.requests.length
    await expect(provider.checkout({ ...request, customerId: 'cus_7' })).rejects.toThrow(BillingProviderError)
    expect(api.requests.length).toBe(from + 1)
  })
})

describe('the customer', () => {
  test.each(['created', 'updated', 'deleted', 'paused', 'resumed'])(
    'is named by a webhook of a subscription %s',
    (what) => {
      const subscription = aStripeSubscription('sub_1', { customer: 'cus_7' })
      const delivery = aStripeDelivery(`customer.subscription.${what}`, subscription)
      expect(provider.customerIn(delivery)).toEqual({ subscriptionId: 'sub_1', customerId: 'cus_7' })
    },
  )

  test('is named as an object too', () => {
    const expanded = aStripeSubscription('sub_1', { customer: { id: 'cus_7', object: 'customer' } })
    expect(provider.customerIn(aStripeDelivery('customer.subscription.updated', expanded))?.customerId).toBe('cus_7')
  })

  test.each([
    ['an invoice', aStripeDelivery('invoice.paid', aStripeInvoice('in_1', { customer: 'cus_7' }))],
    [
      'a customer that is none',
      aStripeDelivery('customer.subscription.updated', aStripeSubscription('sub_1', { customer: 7 })),
    ],
    ['no JSON', { headers: {}, body: Buffer.from('{') }],
    ['nothing', { headers: {}, body: Buffer.alloc(0) }],
  ])('is not taken from %s', (_what, delivery) => {
    expect(provider.customerIn(delivery)).toBeUndefined()
  })

  test('stands in the list', async () => {
    api.answer = listsOfStripe([inList('sub_1', { customer: 'cus_7' })])
    expect((await provider.list())[0]?.customerId).toBe('cus_7')
  })

  test('has a portal of their own, which leads back to us', async () => {
    api.answer = stripeAccount(aStripeSubscription('sub_1', { customer: 'cus_7' })).answer
    const returnUrl = 'https://site.example/account'
    const asked = { customerId: 'cus_7', verifiedEmail: undefined, returnUrl }
    expect(await provider.portal(asked)).toBe('https://stripe.example/billing_portal.session/cus_7')
    const { path, body } = api.requests.at(-1) ?? {}
    expect([path, Object.fromEntries(new URLSearchParams(body))]).toEqual([
      '/v1/billing_portal/sessions',
      { customer: 'cus_7', return_url: returnUrl },
    ])
    await expect(provider.portal({ ...asked, customerId: 'cus_deleted' })).rejects.toThrow(
      'stripe answered 400 (resource_missing)',
    )
    const from = api.requests.length
    expect(await provider.portal({ ...asked, customerId: undefined })).toBeUndefined()
    expect(api.requests.length).toBe(from)
  })
})

describe('cancelling', () => {
  const cancelled = async (attributes: Readonly<Record<string, unknown>>, times = 1) => {
    const account = stripeAccount(aStripeSubscription('sub_1', attributes))
    api.answer = account.answer
    const from = api.requests.length
    for (let count = 1; count <= times; count += 1) await provider.cancel('sub_1')
    const { status, cancel_at_period_end } = account.subscriptions.get('sub_1') ?? {}
    const writes = api.requests.slice(from).filter(({ method }) => method !== 'GET')
    return { status, cancel_at_period_end, writes: writes.map(({ method }) => method) }
  }

  test.each(['active', 'trialing'])('one that is %s lets it end with its period', async (status) => {
    expect(await cancelled({ status })).toEqual({ status, cancel_at_period_end: true, writes: ['POST'] })
  })

  test.each(['past_due', 'unpaid', 'incomplete', 'paused'])(
    'one that is %s ends it at once, so that nothing more is collected',
    async (status) => {
      expect(await cancelled({ status })).toMatchObject({ status: 'canceled', writes: ['DELETE'] })
    },
  )

  test('twice changes nothing more', async () => {
    expect((await cancelled({ status: 'active' }, 2)).writes).toEqual(['POST'])
    expect((await cancelled({ status: 'past_due' }, 2)).writes).toEqual(['DELETE'])
  })

  test.each([{ status: 'canceled' }, { status: 'incomplete_expired' }, { cancel_at: periodOfMarch.end }])(
    'one with %j, which ends or has ended, asks for nothing',
    async (attributes) => {
      expect((await cancelled(attributes)).writes).toEqual([])
    },
  )

  test('one that ends while it is asked for succeeds', async () => {
    const account = stripeAccount(aStripeSubscription('sub_1', { status: 'past_due' }))
    api.answer = (asked) => {
      const answer = account.answer(asked)
      if (asked.method === 'GET') account.answer({ ...asked, method: 'DELETE' })
      return answer
    }
    await provider.cancel('sub_1')
    expect(account.subscriptions.get('sub_1')?.status).toBe('canceled')
  })

  test('one that Stripe does not have fails', async () => {
    api.answer = stripeAccount().answer
    await expect(provider.cancel('sub_none')).rejects.toThrow('stripe answered 404 (resource_missing)')
  })
})

test.each([
  ['charge.refunded', aCharge(), { action: 'refund', subscriptionId: null, userRef: null }],
  ['charge.dispute.created', aDispute(), { action: 'refund', subscriptionId: null, userRef: null }],
  [
    'charge.dispute.closed',
    aDispute({ status: 'won' }),
    { action: 'payment_recovery', subscriptionId: null, userRef: null },
  ],
  [
    'invoice.paid',
    aStripeInvoice('in_1', {}, { metadata: {} }),
    { action: 'payment_recovery', subscriptionId: 'sub_1', userRef: null },
  ],
  [
    'invoice.payment_failed',
    aStripeInvoice('in_1', {}, { price: 'old', metadata: { user_id: 'user-1' } }),
    { action: 'payment_failed', subscriptionId: 'sub_1', userRef: 'user-1' },
  ],
] as const)(
  '%s of which Stripe has to be asked is unresolved at first, and it is not asked',
  async (type, object, known) => {
    const from = api.requests.length
    expect(await provider.parse(aStripeDelivery(type, object))).toEqual({
      key: 'evt_1',
      type,
      meaning: 'unresolved',
      ...known,
    })
    expect(api.requests.length).toBe(from)
  },
)

const refunded = () => provider.resolve(aStripeDelivery('charge.refunded', aCharge()))

test('the invoice of a refunded charge is found by its payment', async () => {
  api.answer = ({ path }) =>
    path === '/v1/invoice_payments'
      ? { json: { object: 'list', has_more: false, data: [{ id: 'inpay_1', invoice: aStripeInvoice('in_9') }] } }
      : undefined
  expect(await refunded()).toMatchObject({ event: { action: 'refund', invoiceId: 'in_9', subscriptionId: 'sub_1' } })
  expect(Object.fromEntries(api.requests.at(-1)?.query ?? [])).toEqual({
    'payment[type]': 'payment_intent',
    'payment[payment_intent]': 'pi_1',
    limit: '1',
    'expand[0]': 'data.invoice',
  })
  api.answer = () => ({ json: { object: 'list', has_more: false, data: [] } })
  expect(await refunded()).toMatchObject({ meaning: 'ignored' })
})

test.each([
  ['status 500', 'stripe answered 500'],
  ['status 401', 'stripe answered 401'],
  ['html', /^stripe (answered 200|could not be reached)/],
  ['nothing', /^stripe (took too long to answer|could not be reached)$/],
  ['hang up', 'stripe could not be reached'],
] as const)('when it answers with %s, each question fails within its time, in a few words', async (how, words) => {
  api.break(how)
  const asked = how === 'nothing' ? impatient : provider
  const parse = () => asked.resolve(aStripeDelivery('charge.refunded', aCharge()))
  const portal = () => asked.portal({ customerId: 'cus_1', verifiedEmail: undefined, returnUrl: request.returnUrl })
  const cancel = () => asked.cancel('sub_1')
  for (const ask of [() => asked.checkout(request), () => asked.list(), parse, portal, cancel]) {
    const failure = await ask().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(BillingProviderError)
    expect((failure as Error).message).toMatch(words)
    expect((failure as Error).message).not.toContain('sk_test')
  }
  api.break()
})

test('an answer that is not as documented is trouble, not a crash', async () => {
  for (const json of [{}, { url: null }, { url: 'soon' }, { data: [{ id: 1 }], has_more: false }]) {
    api.answer = () => ({ json })
    await expect(provider.checkout(request)).rejects.toThrow(BillingProviderError)
    await expect(provider.list()).rejects.toThrow(BillingProviderError)
    await expect(provider.cancel('sub_1')).rejects.toThrow(BillingProviderError)
    await expect(refunded()).rejects.toThrow(BillingProviderError)
  }
})

/** As they are in the list: with their invoices. */
const inList = (id: string, attributes: object = {}, of: object = {}) =>
  aStripeSubscription(id, { latest_invoice: aStripeInvoice('in_1', { status: 'paid' }), ...attributes }, of)

test('the list holds every page, of every status, as it stands now', async () => {
  const ids = Array.from({ length: 250 }, (_, index) => `sub_${index}`)
  api.answer = listsOfStripe(ids.map((id) => inList(id)))
  const [from, began] = [api.requests.length, Math.floor(Date.now() / 1000) * 1000]
  const listed = await provider.list()
  expect(listed.map(({ event }) => event.subscriptionId)).toEqual(ids)
  expect(listed[0]).toMatchObject({
    userRef: 'user-1',
    event: { action: 'activate', invoiceId: 'in_1', periodEnd: periodOfMarch.end * 1000 },
  })
  expect(listed[0]?.event.at).toBeGreaterThanOrEqual(began)
  const asked = api.requests.slice(from).map(({ query }) => [query.get('starting_after'), query.get('status')])
  expect(asked).toEqual([null, 'sub_99', 'sub_199'].map((after) => [after, 'all']))
})

test.each([
  [{ status: 'active' }, { action: 'activate', quantity: 2 }],
  [
    { status: 'active', cancel_at_period_end: true },
    { action: 'cancelled', quantity: 2 },
  ],
  [{ status: 'canceled' }, { action: 'downgrade' }],
  [{ status: 'paused' }, { action: 'downgrade' }],
])('add-ons with %j are listed as %j', async (attributes, told) => {
  api.answer = listsOfStripe([inList('sub_1', attributes, { price: 'price_addon', quantity: 2 })])
  const [seen] = await provider.list()
  expect(seen?.event).toMatchObject({ kind: 'addon', ...told })
})

test('one that is past due counts from when its invoice was due', async () => {
  const due = aStripeInvoice('in_2', { status: 'open', status_transitions: { finalized_at: 1_772_500_000 } })
  api.answer = listsOfStripe([inList('sub_1', { status: 'past_due', latest_invoice: due })])
  const [seen] = await provider.list()
  expect(seen?.event).toMatchObject({ action: 'payment_failed', at: 1_772_500_000_000, invoiceId: 'in_2' })
  expect(await provider.list()).toEqual([seen])
})

test('what was not paid for yet, and what is something else, is not in the list', async () => {
  const other = inList('sub_2', {}, { price: 'other', metadata: {} })
  api.answer = listsOfStripe([inList('sub_1', { status: 'incomplete' }), other])
  expect(await provider.list()).toEqual([])
})

test.each([
  ['brings the same again and again', [inList('sub_1')], true],
  ['is empty and has more', [], true],
  ['holds one twice', [inList('sub_1'), inList('sub_1')], false],
  ['does not say whether there is more', [inList('sub_1')], undefined],
  ['holds one that is none', [{ id: 'sub_1' }], false],
])('a list that %s is none', async (_what, data, has_more) => {
  api.answer = () => ({ json: { object: 'list', data, has_more } })
  await expect(provider.list()).rejects.toThrow(BillingProviderError)
})

test('a page that fails makes the whole list fail', async () => {
  api.answer = listsOfStripe(Array.from({ length: 150 }, (_, index) => inList(`sub_${index}`)))
  api.break('status 500', ({ query }) => query.has('starting_after'))
  await expect(provider.list()).rejects.toThrow('stripe answered 500')
  api.break()
})

test('subscriptions of test mode are listed only where test mode is accepted', async () => {
  api.answer = listsOfStripe([inList('sub_1'), inList('sub_2', { livemode: true })])
  const idsOf = async (acceptsTestMode: boolean) => {
    const one = createStripe({ ...stripeConfig, apiUrl: api.url, acceptsTestMode })
    return (await one.list()).map(({ event }) => event.subscriptionId)
  }
  expect([await idsOf(true), await idsOf(false)]).toEqual([['sub_1', 'sub_2'], ['sub_2']])
})
