/** The links with which users manage their payments. */
import { describe, expect, test } from 'vitest'
import { statusAndCode, type TestApi } from '../../../support/api.ts'
import { startBillingApiDouble } from '../../../support/billing-api.ts'
import {
  lemonSqueezyVariables,
  sendAccepted,
  startVendorApi,
  stripeVariables,
} from '../../../support/billing-deliveries.ts'
import {
  createLemonSqueezyStore,
  lemonSqueezyCustomer,
  lemonSqueezyDelivery,
  lemonSqueezySubscription,
  startLemonSqueezyDouble,
} from '../../../support/billing-lemonsqueezy.ts'
import { createStripeAccount, stripeDelivery, stripeSubscription } from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually } from '../../../support/relays.ts'
import { type Customer, createCustomer, newCustomer } from '../../../support/sandbox-customers.ts'

const siteUrl = 'https://relay.example'
const portalUrl = 'https://pay.example/portal'

const stripe = await startBillingApiDouble()
const atStripe = await startVendorApi({ ...stripeVariables, SVC_STRIPE_API_URL: stripe.url, SVC_SITE_URL: siteUrl })
const withPortal = await startVendorApi({
  ...stripeVariables,
  SVC_STRIPE_API_URL: stripe.url,
  SVC_SITE_URL: siteUrl,
  SVC_BILLING_PORTAL_URL: portalUrl,
})
const lemonSqueezy = await startLemonSqueezyDouble()
const atLemonSqueezy = await startVendorApi({
  ...lemonSqueezyVariables,
  SVC_SITE_URL: siteUrl,
  SVC_BILLING_PORTAL_URL: portalUrl,
})

const open = (api: TestApi, { bearer }: { readonly bearer: string }) =>
  api.post<{ portal_url: string }>('/billing/portal', undefined, { bearer })

const untilKnown = (customer: Customer) =>
  eventually(
    () => customer.fetchSubscription(),
    ({ subscriptions }) => subscriptions.length > 0,
  )

let count = 0

/** An account that bought the plan at Stripe. */
async function stripeCustomer(api: TestApi, customerId: string): Promise<Customer> {
  const customer = createCustomer(api, await api.given.user())
  count += 1
  const id = `sub_${count}`
  const bought = stripeSubscription(
    id,
    { customer: customerId },
    { metadata: { user_id: customer.userId, kind: 'plan' } },
  )
  const created = Math.floor(Date.now() / 1000) - 60
  await sendAccepted(api, stripeDelivery('customer.subscription.created', bought, { id: `evt_${id}`, created }))
  await untilKnown(customer)
  return customer
}

describe('at Stripe', () => {
  test('the manage URL is a page of the site that leads to the customer’s portal', async () => {
    stripe.answer = createStripeAccount(stripeSubscription('sub_a', { customer: 'cus_a' })).answer
    const customer = await stripeCustomer(atStripe, 'cus_a')
    expect(await customer.fetchSubscription()).toMatchObject({ manage_url: `${siteUrl}/account/payments` })
    const answer = await open(atStripe, customer)
    expect([answer.status, answer.body]).toEqual([
      200,
      { portal_url: 'https://stripe.example/billing_portal.session/cus_a' },
    ])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(new URLSearchParams(stripe.requests.at(-1)?.body).get('return_url')).toBe(`${siteUrl}/account`)
  })

  test('a later checkout is for the same customer', async () => {
    stripe.answer = createStripeAccount(stripeSubscription('sub_b', { customer: 'cus_b' })).answer
    const customer = await stripeCustomer(atStripe, 'cus_b')
    expect((await customer.checkout({ addons: 1 })).body.checkout_url).toBe(
      'https://stripe.example/checkout.session/cus_b',
    )
    const first = createCustomer(atStripe, await atStripe.given.user())
    expect((await first.checkout({ plan: 'paid' })).body.checkout_url).toBe(
      'https://stripe.example/checkout.session/new',
    )
  })

  test('the customer of a subscription that has not ended is used', async () => {
    stripe.answer = createStripeAccount().answer
    const customer = await stripeCustomer(atStripe, 'cus_old')
    const bought = (customerId: string, status: string) =>
      stripeSubscription(
        `sub_of_${customerId}`,
        { customer: customerId, status },
        { metadata: { user_id: customer.userId, kind: 'plan' } },
      )
    const sendEvent = (type: string, object: object, id: string, created: number) =>
      sendAccepted(atStripe, stripeDelivery(`customer.subscription.${type}`, object, { id, created }))
    const now = Math.floor(Date.now() / 1000)
    await sendEvent('created', bought('cus_new', 'active'), 'evt_new', now - 30)
    const [first] = await atStripe.sql<{ subscriptionId: string }[]>`
      select subscription_id from subscriptions where user_id = ${customer.userId}`
    await sendEvent(
      'deleted',
      { ...bought('cus_old', 'canceled'), id: first?.subscriptionId },
      'evt_old_deleted',
      now - 20,
    )
    await eventually(
      () => customer.fetchSubscription(),
      ({ subscriptions }) => subscriptions.length === 1 && subscriptions[0]?.subscription_id === 'sub_of_cus_new',
    )
    stripe.answer = createStripeAccount(bought('cus_new', 'active')).answer
    expect((await open(atStripe, customer)).body.portal_url).toContain('cus_new')
  })

  test('the configured portal URL is returned if Stripe fails or the customer is deleted', async () => {
    stripe.answer = createStripeAccount().answer
    const customer = await stripeCustomer(withPortal, 'cus_c')
    expect((await open(withPortal, customer)).body).toEqual({ portal_url: portalUrl })
    stripe.failWith('hang up')
    expect((await open(withPortal, customer)).body).toEqual({ portal_url: portalUrl })
    stripe.recover()
  })

  test('without a configured portal URL a failure is a provider error', async () => {
    stripe.answer = createStripeAccount().answer
    const customer = await stripeCustomer(atStripe, 'cus_d')
    expect(statusAndCode(await open(atStripe, customer))).toEqual([502, 'billing_provider_error'])
    for (const url of ['javascript:alert(1)', 'http://pay.example/portal']) {
      stripe.answer = () => ({ json: { id: 'bps_1', object: 'billing_portal.session', url } })
      expect(statusAndCode(await open(atStripe, customer))).toEqual([502, 'billing_provider_error'])
    }
  })

  test('an account without purchases has no portal', async () => {
    const user = await atStripe.given.user()
    expect(statusAndCode(await open(atStripe, user))).toEqual([404, 'not_found'])
    expect(statusAndCode(await atStripe.post('/billing/portal'))).toEqual([401, 'unauthorized'])
  })
})

describe('at Lemon Squeezy', () => {
  async function buyer(customer_id: number): Promise<Customer> {
    const customer = createCustomer(atLemonSqueezy, await atLemonSqueezy.given.user())
    const soon = { renews_at: '2099-01-01T00:00:00Z', created_at: '2026-11-01T00:00:00Z' }
    const bought = lemonSqueezySubscription(String(customer_id), { customer_id, ...soon })
    await sendAccepted(atLemonSqueezy, lemonSqueezyDelivery('subscription_created', bought, customer.userId))
    await untilKnown(customer)
    return customer
  }

  const verify = ({ userId }: Customer) =>
    atLemonSqueezy.sql`update users set email_verified_at = now() where id = ${userId}`

  test('the signed portal URL requires the verified address of the customer', async () => {
    const customer = await buyer(71)
    lemonSqueezy.answer = createLemonSqueezyStore([], [lemonSqueezyCustomer('71', { email: customer.email })]).answer
    expect((await open(atLemonSqueezy, customer)).body).toEqual({ portal_url: portalUrl })
    await verify(customer)
    expect((await open(atLemonSqueezy, customer)).body.portal_url).toMatch(/\/billing\?.*user=71&signature=/)
  })

  test('an account with another address than the customer gets the configured portal URL', async () => {
    const customer = await buyer(72)
    await verify(customer)
    lemonSqueezy.answer = createLemonSqueezyStore(
      [],
      [lemonSqueezyCustomer('72', { email: 'victim@example.com' })],
    ).answer
    expect((await open(atLemonSqueezy, customer)).body).toEqual({ portal_url: portalUrl })
  })
})

test('the manage URL of the sandbox is a page of the site', async () => {
  const { api } = await startFakeRelayService({ variables: { SVC_SITE_URL: siteUrl } })
  const customer = await newCustomer(api)
  await customer.buy({ plan: 'paid' })
  expect((await open(api, customer)).body).toEqual({ portal_url: `${siteUrl}/sandbox/subscriptions` })
})
