import { describe, expect, test } from 'vitest'
import { createLemonSqueezy } from '../../../providers/billing/lemonsqueezy.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import {
  aCustomer,
  aDelivery,
  anInvoice,
  aSubscription,
  lemonSqueezyConfig,
  lemonSqueezyStore,
  lists,
  startLemonSqueezy,
} from '../../support/billing-lemonsqueezy.ts'

const api = await startLemonSqueezy()
const known = new Map<string, 'plan' | 'addon'>()
const needs = { ...lemonSqueezyConfig, kindOf: async (id: string) => known.get(id) }
const provider = createLemonSqueezy(needs)
const impatient = createLemonSqueezy({ ...needs, callMillisMax: 200 })
const request = {
  userId: 'user-1',
  email: 'a@example.com',
  kind: 'plan',
  quantity: 1,
  returnUrl: 'https://site.example/account?done=bought',
  cancelUrl: 'https://site.example/account',
} as const

const owner = { verifiedEmail: 'johndoe@example.com', returnUrl: request.returnUrl }

const asJson = (body: string | undefined) => JSON.parse(body ?? '') as Record<'data', Record<string, never>>

test('a signed webhook is believed and read', async () => {
  const delivery = aDelivery('subscription_created', aSubscription('7'), 'user-1')
  expect(provider.verify(delivery, Date.now())).toBe(true)
  expect(await provider.parse(delivery)).toMatchObject({ meaning: 'event', userRef: 'user-1' })
})

test('a checkout of the plan names the store, the variant, the account and the way back', async () => {
  api.answer = () => ({ status: 201, json: { data: { attributes: { url: 'https://store.example/checkout/1' } } } })
  expect(await provider.checkout(request)).toBe('https://store.example/checkout/1')
  const { method, path, headers, body } = api.requests.at(-1) ?? {}
  expect([method, path, headers?.authorization]).toEqual(['POST', '/v1/checkouts', 'Bearer ls_key'])
  expect(asJson(body).data).toEqual({
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

test('a checkout of add-ons names how many, and needs no address', async () => {
  api.answer = () => ({ status: 201, json: { data: { attributes: { url: 'https://store.example/checkout/2' } } } })
  await provider.checkout({ ...request, kind: 'addon', quantity: 2, email: null })
  expect(asJson(api.requests.at(-1)?.body).data).toMatchObject({
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
  ['nothing', 'lemonsqueezy took too long to answer'],
  ['hang up', 'lemonsqueezy could not be reached'],
] as const)('when it answers with %s, each question fails within its time, in a few words', async (how, words) => {
  api.break(how)
  const asked = how === 'nothing' ? impatient : provider
  const portal = () => asked.portal({ ...owner, customerId: '5' })
  for (const ask of [() => asked.checkout(request), () => asked.list(), portal, () => asked.cancel('7')]) {
    const failure = await ask().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(BillingProviderError)
    expect((failure as Error).message).toBe(words)
  }
  api.break()
})

describe('the customer', () => {
  test.each(['subscription_created', 'subscription_updated', 'subscription_expired'])('is named by %s', (event) => {
    const delivery = aDelivery(event, aSubscription('7', { customer_id: 5 }), 'user-1')
    expect(provider.customerIn(delivery)).toEqual({ subscriptionId: '7', customerId: '5' })
  })

  test.each([
    ['an invoice', aDelivery('subscription_payment_success', anInvoice('901'))],
    ['a subscription without one', aDelivery('subscription_updated', aSubscription('7', { customer_id: null }))],
    ['no JSON', { headers: {}, body: Buffer.from('{') }],
  ])('is not taken from %s', (_what, delivery) => {
    expect(provider.customerIn(delivery)).toBeUndefined()
  })

  test('stands in the list', async () => {
    api.answer = lists([aSubscription('7', { customer_id: 5 })], 100)
    expect((await provider.list())[0]?.customerId).toBe('5')
  })

  test('gets a portal that is signed for them, whatever the case of the address', async () => {
    api.answer = lemonSqueezyStore([], [aCustomer('5')]).answer
    const url = await provider.portal({ ...owner, customerId: '5', verifiedEmail: 'JohnDoe@Example.com' })
    expect(url).toBe('https://my-store.lemonsqueezy.com/billing?expires=1798761600&user=5&signature=of-customer-5')
  })

  test('gets no signed portal under an address that is not proved to be the account’s own', async () => {
    api.answer = lemonSqueezyStore([], [aCustomer('5'), aCustomer('6', { urls: { customer_portal: null } })]).answer
    const others = [
      { ...owner, customerId: '5', verifiedEmail: 'another@example.com' },
      { ...owner, customerId: '5', verifiedEmail: undefined },
      { ...owner, customerId: undefined },
      { ...owner, customerId: '6' },
    ]
    for (const asked of others) expect(await provider.portal(asked)).toBeUndefined()
  })
})

describe('cancelling', () => {
  test('lets a subscription end with its period, and twice changes nothing more', async () => {
    const store = lemonSqueezyStore([aSubscription('7')])
    api.answer = store.answer
    for (const _time of [1, 2]) {
      await provider.cancel('7')
      expect(store.subscriptions.get('7')?.attributes).toMatchObject({
        status: 'cancelled',
        ends_at: expect.any(String),
      })
    }
  })

  test('does nothing to a subscription that has expired', async () => {
    api.answer = lemonSqueezyStore([aSubscription('7', { status: 'expired' })]).answer
    await provider.cancel('7')
  })

  test('fails when it is refused and the subscription goes on', async () => {
    const store = lemonSqueezyStore([aSubscription('7')])
    api.answer = (asked) => (asked.method === 'DELETE' ? { status: 422, json: { errors: [] } } : store.answer(asked))
    await expect(provider.cancel('7')).rejects.toThrow('lemonsqueezy answered 422')
    await expect(provider.cancel('8')).rejects.toThrow(BillingProviderError)
  })
})

test('an answer without an address is no checkout', async () => {
  for (const json of [{}, { data: { attributes: { url: 'soon' } } }, null, []]) {
    api.answer = () => ({ status: 201, json })
    await expect(provider.checkout(request)).rejects.toThrow(BillingProviderError)
  }
})

test('a payment of an unknown kind is unresolved at first, and Lemon Squeezy is not asked', async () => {
  const count = api.requests.length
  const delivery = aDelivery('subscription_payment_recovered', anInvoice('901', { subscription_id: 70 }), 'user-1')
  expect(await provider.parse(delivery)).toMatchObject({
    meaning: 'unresolved',
    action: 'payment_recovery',
    subscriptionId: '70',
    userRef: 'user-1',
  })
  known.set('70', 'plan')
  expect(await provider.parse(delivery)).toMatchObject({ meaning: 'event', event: { kind: 'plan' } })
  expect(api.requests.length).toBe(count)
})

test('whether a payment is for the plan we know ourselves, or else ask its subscription', async () => {
  const payment = (subscription_id: number) =>
    provider.resolve(aDelivery('subscription_payment_success', anInvoice('901', { subscription_id })))
  api.answer = ({ path }) => {
    const id = path.split('/').at(-1) ?? ''
    return { json: { data: aSubscription(id, { variant_id: id === '72' ? 1002 : 555 }) } }
  }
  known.set('71', 'addon')
  const count = api.requests.length
  expect(await payment(71)).toMatchObject({ event: { kind: 'addon' } })
  expect(api.requests.length).toBe(count)
  expect(await payment(72)).toMatchObject({ event: { kind: 'addon' } })
  expect(api.requests.at(-1)?.path).toBe('/v1/subscriptions/72')
  expect(await payment(73)).toMatchObject({ meaning: 'ignored' })
})

test('a payment whose kind can not be found out is not guessed at: the question fails', async () => {
  api.break('status 500')
  const delivery = aDelivery('subscription_payment_success', anInvoice('901', { subscription_id: 79 }))
  await expect(provider.resolve(delivery)).rejects.toThrow(BillingProviderError)
  api.break()
})

test('the list holds every page of the store, each as it stands at the end of its second, and no other product', async () => {
  const ids = Array.from({ length: 250 }, (_, index) => String(index + 1))
  const all = ids.map((id) => aSubscription(id, { variant_id: id === '250' ? 555 : 1001 }))
  api.answer = lists(all, 100)
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
])('add-ons that are %s are listed as %s', async (status, action) => {
  const ends_at = '2026-04-01T10:00:00Z'
  const one = aSubscription('1', { variant_id: 1002, status, ends_at, first_subscription_item: { quantity: 2 } })
  api.answer = lists([one], 100)
  const [seen] = await provider.list()
  expect(seen?.event).toMatchObject({ action, kind: 'addon', quantity: 2 })
  expect(await provider.list()).toEqual([seen])
})

test('subscriptions of test mode are listed only where test mode is accepted', async () => {
  api.answer = lists([aSubscription('1', { test_mode: true }), aSubscription('2')], 100)
  const idsOf = async (acceptsTestMode: boolean) =>
    (await createLemonSqueezy({ ...needs, acceptsTestMode }).list()).map(({ event }) => event.subscriptionId)
  expect([await idsOf(true), await idsOf(false)]).toEqual([['1', '2'], ['2']])
})

test('an empty store lists nothing', async () => {
  api.answer = lists([], 100)
  expect(await provider.list()).toEqual([])
})

const some = (count: number) => Array.from({ length: count }, (_, index) => aSubscription(String(index + 1)))
const page = (change: object) => (asked: Parameters<ReturnType<typeof lists>>[0]) => {
  const answer = lists(some(150), 100)(asked)
  const isSecond = asked.query.get('page[number]') === '2'
  return answer && isSecond ? { json: { ...answer.json, ...change } } : answer
}
const meta = (told: object) => ({ meta: { page: { currentPage: 2, lastPage: 2, total: 150, ...told } } })

test.each([
  ['fewer than it says that there are', lists(some(150), 100, 160)],
  ['one on two pages', page({ data: some(50) })],
  ['a page that is another', page(meta({ currentPage: 1 }))],
  ['another total half way', page(meta({ total: 151 }))],
  ['another number of pages half way', page(meta({ lastPage: 3 }))],
  ['a page without its number', page({ meta: {} })],
  ['a page without data', page({ data: undefined })],
  ['a subscription that is none', page({ data: [...some(49), { id: '200' }] })],
  ['a status that nobody knows', page({ data: [...some(49), aSubscription('200', { status: 'lost' })] })],
])('a list with %s is none', async (_what, answer) => {
  api.answer = answer
  await expect(provider.list()).rejects.toThrow(BillingProviderError)
})

test('a page that fails makes the whole list fail', async () => {
  api.answer = lists(some(150), 100)
  api.break('status 500', ({ query }) => query.get('page[number]') === '2')
  await expect(provider.list()).rejects.toThrow('lemonsqueezy answered 500')
  api.break()
})
