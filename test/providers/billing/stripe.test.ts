/** The calls of Stripe's API: checkouts, lists, cancellations. */
import { describe, expect, test } from 'vitest'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { createStripe } from '../../../providers/billing/stripe.ts'
import { startBillingApiDouble } from '../../support/billing-api.ts'
import {
  createStripeAccount,
  listStripePages,
  marchPeriod,
  stripeCharge,
  stripeConfig,
  stripeDelivery,
  stripeDispute,
  stripeInvoice,
  stripeSubscription,
} from '../../support/billing-stripe.ts'

const api = await startBillingApiDouble()
const provider = createStripe({ ...stripeConfig, apiUrl: api.url })
const withShortTimeout = createStripe({ ...stripeConfig, apiUrl: api.url, callMillisMax: 200 })
const request = {
  userId: 'user-1',
  email: 'a@example.com',
  kind: 'plan',
  quantity: 1,
  returnUrl: 'https://site.example/account?done=bought',
  cancelUrl: 'https://site.example/account',
} as const

test('a signed webhook is verified and parsed', async () => {
  const delivery = stripeDelivery('customer.subscription.created', stripeSubscription('sub_1'))
  expect(provider.verify(delivery, Date.now())).toBe(true)
  expect(await provider.parse(delivery)).toMatchObject({ meaning: 'event', userRef: 'user-1' })
})

test('a checkout puts the account and the kind into the metadata of the subscription', async () => {
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

describe('a checkout with a stored customer', () => {
  test('is for the same customer', async () => {
    api.answer = createStripeAccount(stripeSubscription('sub_1', { customer: 'cus_7' })).answer
    expect(await provider.checkout({ ...request, customerId: 'cus_7' })).toContain('cus_7')
    const sent = new URLSearchParams(api.requests.at(-1)?.body)
    expect([sent.get('customer'), sent.get('customer_email')]).toEqual(['cus_7', null])
  })

  test('is for a new customer if the stored one was deleted', async () => {
    api.answer = createStripeAccount().answer
    expect(await provider.checkout({ ...request, customerId: 'cus_deleted' })).toContain('new')
    expect(new URLSearchParams(api.requests.at(-1)?.body).get('customer_email')).toBe('a@example.com')
  })

  test('fails without another attempt if something else is missing', async () => {
    const error = { type: 'invalid_request_error', code: 'resource_missing', param: 'line_items[0][price]' }
    api.answer = () => ({ status: 400, json: { error } })
    const from = api.requests.length
    await expect(provider.checkout({ ...request, customerId: 'cus_7' })).rejects.toThrow(BillingProviderError)
    expect(api.requests.length).toBe(from + 1)
  })
})

describe('the customer', () => {
  test.each(['created', 'updated', 'deleted', 'paused', 'resumed'])(
    'is parsed from customer.subscription.%s',
    (what) => {
      const subscription = stripeSubscription('sub_1', { customer: 'cus_7' })
      const delivery = stripeDelivery(`customer.subscription.${what}`, subscription)
      expect(provider.parseCustomer(delivery)).toEqual({ subscriptionId: 'sub_1', customerId: 'cus_7' })
    },
  )

  test('is parsed from an expanded object', () => {
    const expanded = stripeSubscription('sub_1', { customer: { id: 'cus_7', object: 'customer' } })
    expect(provider.parseCustomer(stripeDelivery('customer.subscription.updated', expanded))?.customerId).toBe('cus_7')
  })

  test.each([
    ['an invoice', stripeDelivery('invoice.paid', stripeInvoice('in_1', { customer: 'cus_7' }))],
    [
      'an invalid customer',
      stripeDelivery('customer.subscription.updated', stripeSubscription('sub_1', { customer: 7 })),
    ],
    ['invalid JSON', { headers: {}, body: Buffer.from('{') }],
    ['an empty body', { headers: {}, body: Buffer.alloc(0) }],
  ])('is not parsed from %s', (_what, delivery) => {
    expect(provider.parseCustomer(delivery)).toBeUndefined()
  })

  test('is in the list', async () => {
    api.answer = listStripePages([listEntry('sub_1', { customer: 'cus_7' })])
    expect((await provider.list())[0]?.customerId).toBe('cus_7')
  })

  test('gets a portal URL with a return URL', async () => {
    api.answer = createStripeAccount(stripeSubscription('sub_1', { customer: 'cus_7' })).answer
    const returnUrl = 'https://site.example/account'
    const portalRequest = { customerId: 'cus_7', verifiedEmail: undefined, returnUrl }
    expect(await provider.portal(portalRequest)).toBe('https://stripe.example/billing_portal.session/cus_7')
    const { path, body } = api.requests.at(-1) ?? {}
    expect([path, Object.fromEntries(new URLSearchParams(body))]).toEqual([
      '/v1/billing_portal/sessions',
      { customer: 'cus_7', return_url: returnUrl },
    ])
    await expect(provider.portal({ ...portalRequest, customerId: 'cus_deleted' })).rejects.toThrow(
      'stripe answered 400 (resource_missing)',
    )
    const from = api.requests.length
    expect(await provider.portal({ ...portalRequest, customerId: undefined })).toBeUndefined()
    expect(api.requests.length).toBe(from)
  })
})

describe('cancelling', () => {
  const cancelled = async (attributes: Readonly<Record<string, unknown>>, times = 1) => {
    const account = createStripeAccount(stripeSubscription('sub_1', attributes))
    api.answer = account.answer
    const from = api.requests.length
    for (let count = 1; count <= times; count += 1) await provider.cancel('sub_1')
    const { status, cancel_at_period_end } = account.subscriptions.get('sub_1') ?? {}
    const writes = api.requests.slice(from).filter(({ method }) => method !== 'GET')
    return { status, cancel_at_period_end, writes: writes.map(({ method }) => method) }
  }

  test.each(['active', 'trialing'])('ends a subscription with status %s at the end of its period', async (status) => {
    expect(await cancelled({ status })).toEqual({ status, cancel_at_period_end: true, writes: ['POST'] })
  })

  test.each(['past_due', 'unpaid', 'incomplete', 'paused'])(
    'ends a subscription with status %s at once',
    async (status) => {
      expect(await cancelled({ status })).toMatchObject({ status: 'canceled', writes: ['DELETE'] })
    },
  )

  test('can be repeated', async () => {
    expect((await cancelled({ status: 'active' }, 2)).writes).toEqual(['POST'])
    expect((await cancelled({ status: 'past_due' }, 2)).writes).toEqual(['DELETE'])
  })

  test.each([{ status: 'canceled' }, { status: 'incomplete_expired' }, { cancel_at: marchPeriod.end }])(
    'sends no change for a subscription with %j',
    async (attributes) => {
      expect((await cancelled(attributes)).writes).toEqual([])
    },
  )

  test('succeeds if the subscription ends concurrently', async () => {
    const account = createStripeAccount(stripeSubscription('sub_1', { status: 'past_due' }))
    api.answer = (apiRequest) => {
      const answer = account.answer(apiRequest)
      if (apiRequest.method === 'GET') account.answer({ ...apiRequest, method: 'DELETE' })
      return answer
    }
    await provider.cancel('sub_1')
    expect(account.subscriptions.get('sub_1')?.status).toBe('canceled')
  })

  test('fails for an unknown subscription', async () => {
    api.answer = createStripeAccount().answer
    await expect(provider.cancel('sub_none')).rejects.toThrow('stripe answered 404 (resource_missing)')
  })
})

test.each([
  ['charge.refunded', stripeCharge(), { action: 'refund', subscriptionId: null, userRef: null }],
  ['charge.dispute.created', stripeDispute(), { action: 'refund', subscriptionId: null, userRef: null }],
  [
    'charge.dispute.closed',
    stripeDispute({ status: 'won' }),
    { action: 'refund', subscriptionId: null, userRef: null },
  ],
  [
    'invoice.paid',
    stripeInvoice('in_1', {}, { metadata: {} }),
    { action: 'payment_recovery', subscriptionId: 'sub_1', userRef: null },
  ],
  [
    'invoice.payment_failed',
    stripeInvoice('in_1', {}, { price: 'old', metadata: { user_id: 'user-1' } }),
    { action: 'payment_failed', subscriptionId: 'sub_1', userRef: 'user-1' },
  ],
] as const)('%s that needs a request is unresolved, without a request', async (type, object, part) => {
  const from = api.requests.length
  expect(await provider.parse(stripeDelivery(type, object))).toEqual({
    key: 'evt_1',
    type,
    meaning: 'unresolved',
    ...part,
  })
  expect(api.requests.length).toBe(from)
})

const resolveRefund = () => provider.resolve(stripeDelivery('charge.refunded', stripeCharge()))

test('the invoice of a refunded charge is requested by its payment', async () => {
  api.answer = ({ path }) =>
    path === '/v1/invoice_payments'
      ? { json: { object: 'list', has_more: false, data: [{ id: 'inpay_1', invoice: stripeInvoice('in_9') }] } }
      : undefined
  expect(await resolveRefund()).toMatchObject({
    event: { action: 'refund', invoiceId: 'in_9', subscriptionId: 'sub_1' },
  })
  expect(Object.fromEntries(api.requests.at(-1)?.query ?? [])).toEqual({
    'payment[type]': 'payment_intent',
    'payment[payment_intent]': 'pi_1',
    limit: '1',
    'expand[0]': 'data.invoice',
  })
  api.answer = () => ({ json: { object: 'list', has_more: false, data: [] } })
  expect(await resolveRefund()).toMatchObject({ meaning: 'ignored' })
})

test.each([
  ['status 500', 'stripe answered 500'],
  ['status 401', 'stripe answered 401'],
  ['html', /^stripe (answered 200|could not be reached)/],
  ['nothing', /^stripe (did not answer within 0.2 s|could not be reached)$/],
  ['hang up', 'stripe could not be reached'],
] as const)('with the failure %s each call fails with a short message', async (failure, message) => {
  api.failWith(failure)
  const client = failure === 'nothing' ? withShortTimeout : provider
  const parse = () => client.resolve(stripeDelivery('charge.refunded', stripeCharge()))
  const portal = () => client.portal({ customerId: 'cus_1', verifiedEmail: undefined, returnUrl: request.returnUrl })
  const cancel = () => client.cancel('sub_1')
  for (const call of [() => client.checkout(request), () => client.list(), parse, portal, cancel]) {
    const error = await call().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(BillingProviderError)
    expect((error as Error).message).toMatch(message)
    expect((error as Error).message).not.toContain('sk_test')
  }
  api.recover()
})

test('an undocumented response is a provider error', async () => {
  for (const json of [{}, { url: null }, { url: 'soon' }, { data: [{ id: 1 }], has_more: false }]) {
    api.answer = () => ({ json })
    await expect(provider.checkout(request)).rejects.toThrow(BillingProviderError)
    await expect(provider.list()).rejects.toThrow(BillingProviderError)
    await expect(provider.cancel('sub_1')).rejects.toThrow(BillingProviderError)
    await expect(resolveRefund()).rejects.toThrow(BillingProviderError)
  }
})

/** An entry of the list, with its expanded invoice. */
const listEntry = (id: string, attributes: object = {}, of: object = {}) =>
  stripeSubscription(id, { latest_invoice: stripeInvoice('in_1', { status: 'paid' }), ...attributes }, of)

test('the list contains all pages with all statuses, dated now', async () => {
  const ids = Array.from({ length: 250 }, (_, index) => `sub_${index}`)
  api.answer = listStripePages(ids.map((id) => listEntry(id)))
  const [from, began] = [api.requests.length, Math.floor(Date.now() / 1000) * 1000]
  const listed = await provider.list()
  expect(listed.map(({ event }) => event.subscriptionId)).toEqual(ids)
  expect(listed[0]).toMatchObject({
    userRef: 'user-1',
    event: { action: 'activate', invoiceId: 'in_1', periodEnd: marchPeriod.end * 1000 },
  })
  expect(listed[0]?.event.at).toBeGreaterThanOrEqual(began)
  const pages = api.requests.slice(from).map(({ query }) => [query.get('starting_after'), query.get('status')])
  expect(pages).toEqual([null, 'sub_99', 'sub_199'].map((after) => [after, 'all']))
})

test.each([
  [{ status: 'active' }, { action: 'activate', quantity: 2 }],
  [
    { status: 'active', cancel_at_period_end: true },
    { action: 'cancelled', quantity: 2 },
  ],
  [{ status: 'canceled' }, { action: 'downgrade' }],
  [{ status: 'paused' }, { action: 'downgrade' }],
])('add-ons with %j are listed as %j', async (attributes, expected) => {
  api.answer = listStripePages([listEntry('sub_1', attributes, { price: 'price_addon', quantity: 2 })])
  const [entry] = await provider.list()
  expect(entry?.event).toMatchObject({ kind: 'addon', ...expected })
})

test('a past due subscription is dated when its invoice was due', async () => {
  const due = stripeInvoice('in_2', { status: 'open', status_transitions: { finalized_at: 1_772_500_000 } })
  api.answer = listStripePages([listEntry('sub_1', { status: 'past_due', latest_invoice: due })])
  const [entry] = await provider.list()
  expect(entry?.event).toMatchObject({ action: 'payment_failed', at: 1_772_500_000_000, invoiceId: 'in_2' })
  expect(await provider.list()).toEqual([entry])
})

test('unpaid subscriptions and other products are not listed', async () => {
  const other = listEntry('sub_2', {}, { price: 'other', metadata: {} })
  api.answer = listStripePages([listEntry('sub_1', { status: 'incomplete' }), other])
  expect(await provider.list()).toEqual([])
})

test.each([
  ['repeats its entries', [listEntry('sub_1')], true],
  ['has an empty page but more pages', [], true],
  ['contains an entry twice', [listEntry('sub_1'), listEntry('sub_1')], false],
  ['does not state whether it has more pages', [listEntry('sub_1')], undefined],
  ['contains an invalid subscription', [{ id: 'sub_1' }], false],
])('a list that %s is an error', async (_what, data, has_more) => {
  api.answer = () => ({ json: { object: 'list', data, has_more } })
  await expect(provider.list()).rejects.toThrow(BillingProviderError)
})

test('the list fails if one page fails', async () => {
  api.answer = listStripePages(Array.from({ length: 150 }, (_, index) => listEntry(`sub_${index}`)))
  api.failWith('status 500', ({ query }) => query.has('starting_after'))
  await expect(provider.list()).rejects.toThrow('stripe answered 500')
  api.recover()
})

test('subscriptions of test mode are listed only if test mode is accepted', async () => {
  api.answer = listStripePages([listEntry('sub_1'), listEntry('sub_2', { livemode: true })])
  const idsOf = async (acceptsTestMode: boolean) => {
    const stripe = createStripe({ ...stripeConfig, apiUrl: api.url, acceptsTestMode })
    return (await stripe.list()).map(({ event }) => event.subscriptionId)
  }
  expect([await idsOf(true), await idsOf(false)]).toEqual([['sub_1', 'sub_2'], ['sub_2']])
})
