/** The calls of Lemon Squeezy's API: checkouts, lists, cancellations. */
import { describe, expect, test } from 'vitest'
import { createLemonSqueezy } from '../../../providers/billing/lemonsqueezy.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import {
  createLemonSqueezyStore,
  lemonSqueezyConfig,
  lemonSqueezyCustomer,
  lemonSqueezyDelivery,
  lemonSqueezyInvoice,
  lemonSqueezySubscription,
  listLemonSqueezyPages,
  startLemonSqueezyDouble,
} from '../../support/billing-lemonsqueezy.ts'

const api = await startLemonSqueezyDouble()
const storedKinds = new Map<string, 'plan' | 'addon'>()
const deps = { ...lemonSqueezyConfig, findKind: async (id: string) => storedKinds.get(id) }
const provider = createLemonSqueezy(deps)
const withShortTimeout = createLemonSqueezy({ ...deps, callMillisMax: 200 })
const request = {
  userId: 'user-1',
  email: 'a@example.com',
  kind: 'plan',
  quantity: 1,
  returnUrl: 'https://site.example/account?done=bought',
  cancelUrl: 'https://site.example/account',
} as const

const owner = { verifiedEmail: 'johndoe@example.com', returnUrl: request.returnUrl }

const parseBody = (body: string | undefined) => JSON.parse(body ?? '') as Record<'data', Record<string, never>>

test('a signed webhook is verified and parsed', async () => {
  const delivery = lemonSqueezyDelivery('subscription_created', lemonSqueezySubscription('7'), 'user-1')
  expect(provider.verify(delivery, Date.now())).toBe(true)
  expect(await provider.parse(delivery)).toMatchObject({ meaning: 'event', userRef: 'user-1' })
})

test('a checkout of the plan names the store, the variant, the account and the return URL', async () => {
  api.answer = () => ({ status: 201, json: { data: { attributes: { url: 'https://store.example/checkout/1' } } } })
  expect(await provider.checkout(request)).toBe('https://store.example/checkout/1')
  const { method, path, headers, body } = api.requests.at(-1) ?? {}
  expect([method, path, headers?.authorization]).toEqual(['POST', '/v1/checkouts', 'Bearer ls_key'])
  expect(parseBody(body).data).toEqual({
    type: 'checkouts',
    attributes: {
      product_options: { redirect_url: 'https://site.example/account?done=bought', enabled_variants: [1001] },
      checkout_data: { email: 'a@example.com', custom: { user_id: 'user-1' } },
    },
    relationships: {
      store: { data: { type: 'stores', id: '42' } },
      variant: { data: { type: 'variants', id: '1001' } },
    },
  })
})

test('a checkout of add-ons has a quantity and needs no address', async () => {
  api.answer = () => ({ status: 201, json: { data: { attributes: { url: 'https://store.example/checkout/2' } } } })
  await provider.checkout({ ...request, kind: 'addon', quantity: 2, email: null })
  expect(parseBody(api.requests.at(-1)?.body).data).toMatchObject({
    attributes: {
      checkout_data: { custom: { user_id: 'user-1' }, variant_quantities: [{ variant_id: 1002, quantity: 2 }] },
    },
    relationships: { variant: { data: { id: '1002' } } },
  })
})

test.each([
  ['status 500', 'lemonsqueezy answered 500'],
  ['status 401', 'lemonsqueezy answered 401'],
  ['html', 'lemonsqueezy could not be reached'],
  ['nothing', 'lemonsqueezy did not answer within 0.2 s'],
  ['hang up', 'lemonsqueezy could not be reached'],
] as const)('with the failure %s each call fails with a short message', async (failure, message) => {
  api.failWith(failure)
  const client = failure === 'nothing' ? withShortTimeout : provider
  const portal = () => client.portal({ ...owner, customerId: '5' })
  for (const call of [() => client.checkout(request), () => client.list(), portal, () => client.cancel('7')]) {
    const error = await call().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(BillingProviderError)
    expect((error as Error).message).toBe(message)
  }
  api.recover()
})

describe('the customer', () => {
  test.each(['subscription_created', 'subscription_updated', 'subscription_expired'])('is parsed from %s', (event) => {
    const delivery = lemonSqueezyDelivery(event, lemonSqueezySubscription('7', { customer_id: 5 }), 'user-1')
    expect(provider.parseCustomer(delivery)).toEqual({ subscriptionId: '7', customerId: '5' })
  })

  test.each([
    ['an invoice', lemonSqueezyDelivery('subscription_payment_success', lemonSqueezyInvoice('901'))],
    [
      'a subscription without a customer',
      lemonSqueezyDelivery('subscription_updated', lemonSqueezySubscription('7', { customer_id: null })),
    ],
    ['invalid JSON', { headers: {}, body: Buffer.from('{') }],
  ])('is not parsed from %s', (_what, delivery) => {
    expect(provider.parseCustomer(delivery)).toBeUndefined()
  })

  test('is in the list', async () => {
    api.answer = listLemonSqueezyPages([lemonSqueezySubscription('7', { customer_id: 5 })], 100)
    expect((await provider.list())[0]?.customerId).toBe('5')
  })

  test('gets a signed portal URL, also with another case of the address', async () => {
    api.answer = createLemonSqueezyStore([], [lemonSqueezyCustomer('5')]).answer
    const url = await provider.portal({ ...owner, customerId: '5', verifiedEmail: 'JohnDoe@Example.com' })
    expect(url).toBe('https://my-store.lemonsqueezy.com/billing?expires=1798761600&user=5&signature=of-customer-5')
  })

  test('gets no portal URL without the verified address of the customer', async () => {
    api.answer = createLemonSqueezyStore(
      [],
      [lemonSqueezyCustomer('5'), lemonSqueezyCustomer('6', { urls: { customer_portal: null } })],
    ).answer
    const others = [
      { ...owner, customerId: '5', verifiedEmail: 'another@example.com' },
      { ...owner, customerId: '5', verifiedEmail: undefined },
      { ...owner, customerId: undefined },
      { ...owner, customerId: '6' },
    ]
    for (const request of others) expect(await provider.portal(request)).toBeUndefined()
  })
})

describe('cancelling', () => {
  test('ends a subscription with its period, and can be repeated', async () => {
    const store = createLemonSqueezyStore([lemonSqueezySubscription('7')])
    api.answer = store.answer
    for (const _time of [1, 2]) {
      await provider.cancel('7')
      expect(store.subscriptions.get('7')?.attributes).toMatchObject({
        status: 'cancelled',
        ends_at: expect.any(String),
      })
    }
  })

  test('has no effect on an expired subscription', async () => {
    api.answer = createLemonSqueezyStore([lemonSqueezySubscription('7', { status: 'expired' })]).answer
    await provider.cancel('7')
  })

  test('fails if it is refused and the subscription is still active', async () => {
    const store = createLemonSqueezyStore([lemonSqueezySubscription('7')])
    api.answer = (apiRequest) =>
      apiRequest.method === 'DELETE' ? { status: 422, json: { errors: [] } } : store.answer(apiRequest)
    await expect(provider.cancel('7')).rejects.toThrow('lemonsqueezy answered 422')
    await expect(provider.cancel('8')).rejects.toThrow(BillingProviderError)
  })
})

test('a checkout without a valid URL is an error', async () => {
  for (const json of [{}, { data: { attributes: { url: 'soon' } } }, null, []]) {
    api.answer = () => ({ status: 201, json })
    await expect(provider.checkout(request)).rejects.toThrow(BillingProviderError)
  }
})

test('a payment of an unknown kind is unresolved, without a request', async () => {
  const count = api.requests.length
  const delivery = lemonSqueezyDelivery(
    'subscription_payment_recovered',
    lemonSqueezyInvoice('901', { subscription_id: 70 }),
    'user-1',
  )
  expect(await provider.parse(delivery)).toMatchObject({
    meaning: 'unresolved',
    action: 'payment_recovery',
    subscriptionId: '70',
    userRef: 'user-1',
  })
  storedKinds.set('70', 'plan')
  expect(await provider.parse(delivery)).toMatchObject({ meaning: 'event', event: { kind: 'plan' } })
  expect(api.requests.length).toBe(count)
})

test('the kind of a payment is the stored one, or else requested with its subscription', async () => {
  const payment = (subscription_id: number) =>
    provider.resolve(
      lemonSqueezyDelivery('subscription_payment_success', lemonSqueezyInvoice('901', { subscription_id })),
    )
  api.answer = ({ path }) => {
    const id = path.split('/').at(-1) ?? ''
    return { json: { data: lemonSqueezySubscription(id, { variant_id: id === '72' ? 1002 : 555 }) } }
  }
  storedKinds.set('71', 'addon')
  const count = api.requests.length
  expect(await payment(71)).toMatchObject({ event: { kind: 'addon' } })
  expect(api.requests.length).toBe(count)
  expect(await payment(72)).toMatchObject({ event: { kind: 'addon' } })
  expect(api.requests.at(-1)?.path).toBe('/v1/subscriptions/72')
  expect(await payment(73)).toMatchObject({ meaning: 'ignored' })
})

test('a payment is not resolved if the request for its kind fails', async () => {
  api.failWith('status 500')
  const delivery = lemonSqueezyDelivery(
    'subscription_payment_success',
    lemonSqueezyInvoice('901', { subscription_id: 79 }),
  )
  await expect(provider.resolve(delivery)).rejects.toThrow(BillingProviderError)
  api.recover()
})

test('the list contains all pages without other products, dated at the end of their second', async () => {
  const ids = Array.from({ length: 250 }, (_, index) => String(index + 1))
  const all = ids.map((id) => lemonSqueezySubscription(id, { variant_id: id === '250' ? 555 : 1001 }))
  api.answer = listLemonSqueezyPages(all, 100)
  const from = api.requests.length
  const listed = await provider.list()
  expect(listed.map(({ event }) => event.subscriptionId)).toEqual(ids.slice(0, -1))
  expect(listed[0]).toMatchObject({
    userRef: null,
    event: {
      action: 'activate',
      at: Date.parse('2026-03-01T10:00:05.999Z'),
      periodEnd: Date.parse('2026-04-01T10:00:00Z'),
    },
  })
  const pages = api.requests.slice(from).map(({ query }) => [query.get('page[number]'), query.get('filter[store_id]')])
  expect(pages).toEqual([1, 2, 3].map((page) => [String(page), '42']))
})

test.each([
  ['on_trial', 'activate'],
  ['active', 'activate'],
  ['past_due', 'payment_failed'],
  ['unpaid', 'payment_failed'],
  ['cancelled', 'cancelled'],
  ['expired', 'downgrade'],
  ['paused', 'downgrade'],
])('add-ons with status %s are listed as %s', async (status, action) => {
  const ends_at = '2026-04-01T10:00:00Z'
  const subscription = lemonSqueezySubscription('1', {
    variant_id: 1002,
    status,
    ends_at,
    first_subscription_item: { quantity: 2 },
  })
  api.answer = listLemonSqueezyPages([subscription], 100)
  const [entry] = await provider.list()
  expect(entry?.event).toMatchObject({ action, kind: 'addon', quantity: 2 })
  expect(await provider.list()).toEqual([entry])
})

test('subscriptions of test mode are listed only if test mode is accepted', async () => {
  api.answer = listLemonSqueezyPages(
    [lemonSqueezySubscription('1', { test_mode: true }), lemonSqueezySubscription('2')],
    100,
  )
  const idsOf = async (acceptsTestMode: boolean) =>
    (await createLemonSqueezy({ ...deps, acceptsTestMode }).list()).map(({ event }) => event.subscriptionId)
  expect([await idsOf(true), await idsOf(false)]).toEqual([['1', '2'], ['2']])
})

test('the list of an empty store is empty', async () => {
  api.answer = listLemonSqueezyPages([], 100)
  expect(await provider.list()).toEqual([])
})

const createMany = (count: number) =>
  Array.from({ length: count }, (_, index) => lemonSqueezySubscription(String(index + 1)))
const withSecondPage = (change: object) => (request: Parameters<ReturnType<typeof listLemonSqueezyPages>>[0]) => {
  const answer = listLemonSqueezyPages(createMany(150), 100)(request)
  const isSecond = request.query.get('page[number]') === '2'
  return answer && isSecond ? { json: { ...answer.json, ...change } } : answer
}
const meta = (change: object) => ({ meta: { page: { currentPage: 2, lastPage: 2, total: 150, ...change } } })

test.each([
  ['fewer entries than its total', listLemonSqueezyPages(createMany(150), 100, 160)],
  ['an entry on two pages', withSecondPage({ data: createMany(50) })],
  ['the wrong page number', withSecondPage(meta({ currentPage: 1 }))],
  ['a total that changes', withSecondPage(meta({ total: 151 }))],
  ['a number of pages that changes', withSecondPage(meta({ lastPage: 3 }))],
  ['a page without metadata', withSecondPage({ meta: {} })],
  ['a page without data', withSecondPage({ data: undefined })],
  ['an invalid subscription', withSecondPage({ data: [...createMany(49), { id: '200' }] })],
  [
    'an unknown status',
    withSecondPage({ data: [...createMany(49), lemonSqueezySubscription('200', { status: 'lost' })] }),
  ],
])('a list with %s is an error', async (_what, answer) => {
  api.answer = answer
  await expect(provider.list()).rejects.toThrow(BillingProviderError)
})

test('the list fails if one page fails', async () => {
  api.answer = listLemonSqueezyPages(createMany(150), 100)
  api.failWith('status 500', ({ query }) => query.get('page[number]') === '2')
  await expect(provider.list()).rejects.toThrow('lemonsqueezy answered 500')
  api.recover()
})
