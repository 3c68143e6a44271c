/** Checkouts of plans and add-ons, and what they refuse. */
import { beforeAll, describe, expect, test } from 'vitest'
import { rateLimitDefaults } from '../../../../platform/config/values.ts'
import { startApi, statusAndCode, type TestApi } from '../../../support/api.ts'
import { startApiDouble } from '../../../support/api-double.ts'
import { highLimits } from '../../../support/environment.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { operator } from '../../../support/relays.ts'
import { type Customer, newCustomer } from '../../../support/sandbox-customers.ts'

const siteUrl = 'https://relay.example'

let api: TestApi
beforeAll(async () => {
  const limits = highLimits({ checkout: rateLimitDefaults.checkout })
  api = (await startFakeRelayService({ variables: { SVC_SITE_URL: siteUrl, SVC_RATE_LIMITS: limits } })).api
})

const subscribed = [409, 'already_subscribed']

async function customerWithPlan(): Promise<{ customer: Customer; plan: string }> {
  const customer = await newCustomer(api)
  return { customer, plan: await customer.buy({ plan: 'paid' }) }
}

describe('a checkout', () => {
  test('returns the URL of a payment page and changes no plan', async () => {
    const customer = await newCustomer(api)
    const { status, body } = await customer.checkout({ plan: 'paid' })
    expect([status, body]).toEqual([
      200,
      { checkout_url: expect.stringMatching(/^https:\/\/relay\.example\/sandbox\/checkout\/sub_[\w-]+$/) },
    ])
    expect(await customer.fetchSubscription()).toMatchObject({
      plan_tier: 'free',
      plan_status: 'none',
      manage_url: null,
    })
  })

  test('of the plan is refused while it is active or past due', async () => {
    const { customer, plan } = await customerWithPlan()
    expect(statusAndCode(await customer.checkout({ plan: 'paid' }))).toEqual(subscribed)
    await customer.play(plan, 'fail')
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'past_due' })
    expect(statusAndCode(await customer.checkout({ plan: 'paid' }))).toEqual(subscribed)
  })

  test('of the plan is possible after a cancellation, before and after the end of the period', async () => {
    const { customer, plan } = await customerWithPlan()
    await customer.play(plan, 'cancel')
    expect((await customer.checkout({ plan: 'paid' })).status).toBe(200)
    await customer.play(plan, 'end')
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'free' })
    expect((await customer.checkout({ plan: 'paid' })).status).toBe(200)
  })

  const grant = ({ userId }: Customer, given: object) =>
    api.post(`/admin/users/${userId}/grant`, { plan_tier: 'paid', addons: 0, ...given }, { headers: operator })

  test('of the plan is possible beside a complimentary plan with an end', async () => {
    const customer = await newCustomer(api)
    await grant(customer, { until: '2099-01-01T00:00:00Z' })
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
    await customer.buy({ plan: 'paid' })
    expect(await customer.fetchSubscription()).toMatchObject({ plan_status: 'active', ends_at: null })
    expect(statusAndCode(await customer.checkout({ plan: 'paid' }))).toEqual(subscribed)
  })

  test('of the plan is refused beside a complimentary plan without an end', async () => {
    const customer = await newCustomer(api)
    await grant(customer, {})
    expect(statusAndCode(await customer.checkout({ plan: 'paid' }))).toEqual(subscribed)
  })

  test('of the plan is refused beside a paid plan, also with a complimentary one', async () => {
    const { customer, plan } = await customerWithPlan()
    await grant(customer, { until: '2099-01-01T00:00:00Z' })
    expect(statusAndCode(await customer.checkout({ plan: 'paid' }))).toEqual(subscribed)
    await customer.play(plan, 'cancel')
    expect((await customer.checkout({ plan: 'paid' })).status).toBe(200)
  })

  test('of the plan is possible while another checkout is unpaid', async () => {
    const customer = await newCustomer(api)
    const [first, second] = [
      await customer.openSubscription({ plan: 'paid' }),
      await customer.openSubscription({ plan: 'paid' }),
    ]
    expect(first).not.toBe(second)
  })

  test('of add-ons buys only what is missing to the requested total', async () => {
    const { customer } = await customerWithPlan()
    await customer.buy({ addons: 1 })
    expect(statusAndCode(await customer.checkout({ addons: 1 }))).toEqual(subscribed)
    await customer.buy({ addons: 3 })
    expect((await customer.listSandboxSubscriptions()).map(({ kind, quantity }) => [kind, quantity])).toEqual([
      ['plan', 1],
      ['addon', 1],
      ['addon', 2],
    ])
    expect(await customer.fetchSubscription()).toMatchObject({ addons: 3 })
    for (const addons of [1, 2, 3]) expect(statusAndCode(await customer.checkout({ addons }))).toEqual(subscribed)
  })

  test('of add-ons is possible without a plan, and they apply once there is one', async () => {
    const customer = await newCustomer(api)
    await customer.buy({ addons: 2 })
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'free', addons: 2 })
    const connections = async () => {
      const { body } = await api.get<{ entitlement: object }>('/auth/session', { bearer: customer.bearer })
      return body.entitlement
    }
    expect(await connections()).toMatchObject({ reason_code: 'plan_required', max_concurrent_conns: 0 })
    await customer.buy({ plan: 'paid' })
    expect(await connections()).toMatchObject({ reason_code: 'ok', max_concurrent_conns: 3 })
  })

  test.each([
    ['nothing', {}],
    ['both', { plan: 'paid', addons: 1 }],
    ['another plan', { plan: 'free' }],
    ['no plan', { plan: null }],
    ['no add-ons', { addons: 0 }],
    ['too many add-ons', { addons: 4 }],
    ['a part of an add-on', { addons: 1.5 }],
    ['a number in letters', { addons: '1' }],
    ['a list', []],
  ])('for %s is an invalid request', async (_, wanted) => {
    expect(statusAndCode(await (await newCustomer(api)).checkout(wanted))).toEqual([400, 'invalid_request'])
  })

  test('ignores unknown fields', async () => {
    const answer = await (await newCustomer(api)).checkout({ plan: 'paid', quantity: 7, price: 0 })
    expect(answer.status).toBe(200)
  })

  test('requires a bearer token', async () => {
    expect(statusAndCode(await api.post('/billing/checkout', { plan: 'paid' }))).toEqual([401, 'unauthorized'])
    expect(statusAndCode(await api.get('/billing/subscription'))).toEqual([401, 'unauthorized'])
  })

  test('is limited to ten a minute per account', async () => {
    const customer = await newCustomer(api)
    for (let count = 1; count <= 10; count += 1) expect((await customer.checkout({ plan: 'paid' })).status).toBe(200)
    const refused = await customer.checkout({ plan: 'paid' })
    expect(statusAndCode(refused)).toEqual([429, 'rate_limited'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.headers.get('ratelimit-policy')).toContain('"checkout";q=10;w=60')
    expect((await (await newCustomer(api)).checkout({ plan: 'paid' })).status).toBe(200)
  })
})

describe('the subscription', () => {
  const nothing = {
    plan_tier: 'free',
    plan_status: 'none',
    addons: 0,
    renews_at: null,
    ends_at: null,
    grace_ends_at: null,
    manage_url: null,
    last_payment_failed: false,
    subscriptions: [],
  }
  /** One of the plan, in a list of its own. */
  const only = (subscription_id: string) => [expect.objectContaining({ subscription_id, kind: 'plan' })]
  const manageUrl = `${siteUrl}/sandbox/subscriptions`

  test('of an account without purchases is empty and has no manage URL', async () => {
    expect(await (await newCustomer(api)).fetchSubscription()).toEqual(nothing)
  })

  test('that is active renews at the end of its period', async () => {
    const { customer, plan } = await customerWithPlan()
    const [bought] = await customer.listSandboxSubscriptions()
    expect(await customer.fetchSubscription()).toEqual({
      ...nothing,
      plan_tier: 'paid',
      plan_status: 'active',
      renews_at: bought?.period_end,
      manage_url: manageUrl,
      subscriptions: only(plan),
    })
  })

  test('with a failed payment stays for 48 hours, and a second failure does not extend them', async () => {
    const { customer, plan } = await customerWithPlan()
    const before = Date.now()
    await customer.play(plan, 'fail')
    const failed = await customer.fetchSubscription()
    const graceEndsAt = Date.parse(failed.grace_ends_at ?? '') - 172_800_000
    expect(graceEndsAt).toBeGreaterThanOrEqual(before)
    expect(graceEndsAt).toBeLessThanOrEqual(Date.now())
    expect(failed).toEqual({
      ...nothing,
      plan_tier: 'paid',
      plan_status: 'past_due',
      grace_ends_at: expect.any(String),
      manage_url: manageUrl,
      last_payment_failed: true,
      subscriptions: only(plan),
    })
    await customer.play(plan, 'fail')
    expect(await customer.fetchSubscription()).toEqual(failed)
    await customer.play(plan, 'recover')
    expect(await customer.fetchSubscription()).toMatchObject({
      plan_status: 'active',
      grace_ends_at: null,
      last_payment_failed: false,
    })
  })

  test('that is cancelled ends with its period', async () => {
    const { customer, plan } = await customerWithPlan()
    const { renews_at: periodEnd } = await customer.fetchSubscription()
    await customer.play(plan, 'cancel')
    expect(await customer.fetchSubscription()).toEqual({
      ...nothing,
      plan_tier: 'paid',
      plan_status: 'cancelled',
      ends_at: periodEnd,
      manage_url: manageUrl,
      subscriptions: only(plan),
    })
  })

  test('that is refunded has ended and keeps its manage URL', async () => {
    const { customer, plan } = await customerWithPlan()
    await customer.play(plan, 'refund')
    expect(await customer.fetchSubscription()).toEqual({ ...nothing, manage_url: manageUrl })
  })

  test('that an operator granted does not renew and has no manage URL', async () => {
    const customer = await newCustomer(api)
    const until = '2099-01-01T00:00:00.000Z'
    const given = { plan_tier: 'paid', addons: 1, until }
    await api.post(`/admin/users/${customer.userId}/grant`, given, { headers: operator })
    expect(await customer.fetchSubscription()).toEqual({
      ...nothing,
      plan_tier: 'paid',
      plan_status: 'active',
      addons: 1,
      ends_at: until,
    })
  })
})

describe('with another billing provider', () => {
  const stripe = async (url: string) =>
    startApi({
      SVC_BILLING_PROVIDER: 'stripe',
      SVC_STRIPE_API_KEY: 'sk_test_of_these_tests',
      SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
      SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
      SVC_STRIPE_API_URL: url,
    })

  test('the checkout URL is the provider’s', async () => {
    const provider = await startApiDouble()
    provider.respondWith(() => ({ body: { id: 'cs_1', object: 'checkout.session', url: 'https://pay.example/cs_1' } }))
    const customer = await newCustomer(await stripe(provider.url))
    expect((await customer.checkout({ addons: 2 })).body).toEqual({ checkout_url: 'https://pay.example/cs_1' })
    const sent = new URLSearchParams(provider.requests[0]?.body)
    expect([sent.get('line_items[0][quantity]'), sent.get('client_reference_id')]).toEqual(['2', customer.userId])
    expect([sent.get('success_url'), sent.get('cancel_url')]).toEqual([
      'http://localhost:8081/account?done=bought',
      'http://localhost:8081/account',
    ])
  })

  test('a checkout URL that is not HTTPS is a provider error', async () => {
    const provider = await startApiDouble()
    const customer = await newCustomer(await stripe(provider.url))
    for (const url of [
      'javascript:alert(1)',
      'data:text/html,pay',
      'http://pay.example/cs_1',
      'http://localhost:80811/',
    ]) {
      provider.respondWith(() => ({ body: { id: 'cs_1', object: 'checkout.session', url } }))
      expect([url, ...statusAndCode(await customer.checkout({ plan: 'paid' }))]).toEqual([
        url,
        502,
        'billing_provider_error',
      ])
    }
  })

  test('a failure is a provider error without the provider’s message', async () => {
    const provider = await startApiDouble()
    provider.respondWith(() => ({ status: 500, body: { error: { message: 'a secret of theirs' } } }))
    const customer = await newCustomer(await stripe(provider.url))
    const refused = await customer.checkout({ plan: 'paid' })
    expect(statusAndCode(refused)).toEqual([502, 'billing_provider_error'])
    expect(JSON.stringify(refused.body)).not.toContain('secret')
    await provider.close()
    expect(statusAndCode(await customer.checkout({ plan: 'paid' }))).toEqual([502, 'billing_provider_error'])
  })

  test('the sandbox is not found', async () => {
    const customer = await newCustomer(await stripe('http://127.0.0.1:9'))
    expect(statusAndCode(await customer.play('sub_1', 'pay'))).toEqual([404, 'not_found'])
    expect(await customer.listSandboxSubscriptions()).toBeUndefined()
  })
})
