/** Purchases, billing alerts and relay time on the account and relays pages, in a browser without scripts. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { recordAuditEntry } from '../../../db/audit.ts'
import { startApi, statusAndCode, type TestApi } from '../../support/api.ts'
import { startApiDouble } from '../../support/api-double.ts'
import { newSiteCustomer, startBillingSite } from '../../support/billing-site.ts'
import { useRelayTime } from '../../support/relay-time.ts'
import { eventually, operator } from '../../support/relays.ts'
import type { Customer } from '../../support/sandbox-customers.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'
import type { Page } from '../../support/site-page.ts'

const { api, site, newCustomer } = await startBillingSite({ SVC_TIME_BANK_HOURS_PER_RELAY: '1' })

/** An account with the paid plan. */
async function subscriber() {
  const account = await newCustomer()
  const plan = await account.customer.buy({ plan: 'paid' })
  return { ...account, plan }
}

/** Grants a complimentary plan, without an end unless one is named. */
const grantPlan = ({ userId }: Customer, until?: string) =>
  api.post(
    `/admin/users/${userId}/grant`,
    { plan_tier: 'paid', addons: 0, ...(until ? { until } : {}) },
    { headers: operator },
  )

const startRelay = ({ bearer }: Customer, name: string) =>
  api.post('/relay/start', { connection_id: name }, { bearer, headers: { 'Idempotency-Key': randomUUID() } })

/** Tier, status, relays in use, and how the plan continues. */
const planOn = (page: Page) =>
  ['plan-tier', 'plan-status', 'relays-in-use', 'renewal'].map((name) => page.data(name)[0])

/** The account page once the payment has its effect, for which the reply to the payment waits a few seconds at most. */
const afterPayment = (browser: Browser, plan: readonly string[]): Promise<Page> =>
  eventually(
    () => browser.open('/account'),
    (page) => planOn(page).join() === plan.join(),
  )

/** What a month of the plan and its add-ons costs. */
const totalOn = (page: Page) => page.data('total-price')

const hasPlanForm = (page: Page) => page.hasForm('/account/checkout', { plan: 'paid' })

describe('the account page', () => {
  test('sells the paid plan, and then shows when it renews', async () => {
    const { customer, browser } = await newCustomer()
    const account = await browser.open('/account')
    expect([planOn(account)[0], hasPlanForm(account)]).toEqual(['free', true])
    const checkout = await browser.submit(account, '/account/checkout')
    expect(checkout.visited).toEqual(['POST /account/checkout', `GET ${checkout.path}`])
    expect(checkout.name).toBe('sandbox-checkout')

    const [order] = await customer.listSandboxSubscriptions()
    const paid = await browser.submit(checkout, `/sandbox/subscriptions/${order?.subscription_id}/pay`)
    expect([paid.path, paid.notice]).toEqual(['/account?done=bought', 'bought'])
    const active = await afterPayment(browser, ['paid', 'active', '0/1', 'renews'])
    const { renews_at: renews } = await customer.fetchSubscription()
    expect(active.html).toContain(`datetime="${renews}"`)
    expect(hasPlanForm(active)).toBe(false)
  })

  test('sells add-ons by their total number, up to three', async () => {
    const { customer, browser } = await subscriber()
    await customer.buy({ addons: 1 })
    const account = await browser.open('/account')
    expect(account.data('addons')).toEqual(['1'])
    expect(account.html.match(/<option[^>]*>/g)).toEqual(['<option value="2">', '<option value="3">'])
    const checkout = await browser.submit(account, '/account/checkout', { addons: '3' })
    expect([checkout.data('price'), checkout.text.includes('$15.98')]).toEqual([['15.98'], true])
    const order = (await customer.listSandboxSubscriptions()).at(-1)
    expect(order).toMatchObject({ kind: 'addon', quantity: 2 })
    await browser.submit(checkout, `/sandbox/subscriptions/${order?.subscription_id}/pay`)
    const paid = await afterPayment(browser, ['paid', 'active', '0/4', 'renews'])
    expect(paid.data('addons')).toEqual(['3'])
    expect(totalOn(paid)).toEqual(['36.46'])
    expect(paid.hasForm('/account/checkout')).toBe(false)
  })

  test('shows add-ons that have no effect without the plan', async () => {
    const { customer, browser } = await newCustomer()
    await customer.buy({ addons: 2 })
    const page = await browser.open('/account')
    expect([planOn(page)[0], page.data('addons')]).toEqual(['free', ['2']])
  })

  test('shows when a cancelled plan ends, and sells it again', async () => {
    const { customer, browser, plan } = await subscriber()
    await customer.play(plan, 'cancel')
    const page = await browser.open('/account')
    const { ends_at: ends } = await customer.fetchSubscription()
    expect(planOn(page)).toEqual(['paid', 'cancelled', '0/1', 'ends'])
    expect(page.html).toContain(`datetime="${ends}"`)
    expect(page.links).toContain(`${site.url}/sandbox/subscriptions`)
    expect((await browser.submit(page, '/account/checkout')).name).toBe('sandbox-checkout')
  })

  test('shows a granted plan as complimentary, and when it ends', async () => {
    const { customer, browser } = await newCustomer()
    await grantPlan(customer)
    const endless = await browser.open('/account')
    expect(planOn(endless)).toEqual(['paid', 'active', '0/1', 'complimentary'])
    expect(endless.html).not.toContain('datetime="2099')
    await grantPlan(customer, '2099-01-01T00:00:00Z')
    const ending = await browser.open('/account')
    expect(planOn(ending)[3]).toBe('complimentary')
    expect(ending.html).toContain('datetime="2099')
  })

  test('sells the plan to an account whose complimentary plan has an end', async () => {
    const { customer, browser } = await newCustomer()
    await grantPlan(customer)
    expect(hasPlanForm(await browser.open('/account'))).toBe(false)
    await grantPlan(customer, '2099-01-01T00:00:00Z')
    const account = await browser.open('/account')
    const checkout = await browser.submit(account, '/account/checkout', {}, { plan: 'paid' })
    expect(checkout.name).toBe('sandbox-checkout')
    const [order] = await customer.listSandboxSubscriptions()
    await browser.submit(checkout, `/sandbox/subscriptions/${order?.subscription_id}/pay`)
    expect(hasPlanForm(await afterPayment(browser, ['paid', 'active', '0/1', 'renews']))).toBe(false)
  })

  test('links to the billing portal after a plan ended because of a failed payment', async () => {
    const { customer, browser, plan } = await subscriber()
    for (const what of ['fail', 'end']) await customer.play(plan, what)
    const page = await browser.open('/account')
    expect(planOn(page)[0]).toBe('free')
    expect(page.links).toContain(`${site.url}/sandbox/subscriptions`)
    expect((await browser.open('/relays')).html).toContain('data-unpaid-plan')
  })

  test('a free account is asked about a failed payment only if there was one', async () => {
    const lastFailed = async (customer: Customer) =>
      (await api.get<{ last_payment_failed: boolean }>('/billing/subscription', { bearer: customer.bearer })).body
        .last_payment_failed
    const { customer: newcomer, browser } = await newCustomer()
    expect((await browser.open('/relays')).html).not.toContain('data-unpaid-plan')
    expect(await lastFailed(newcomer)).toBe(false)
    const { customer, browser: other, plan } = await subscriber()
    await customer.play(plan, 'fail')
    expect(await lastFailed(customer)).toBe(true)
    for (const what of ['recover', 'end']) await customer.play(plan, what)
    expect(await lastFailed(customer)).toBe(false)
    expect((await other.open('/relays')).html).not.toContain('data-unpaid-plan')
  })

  test('refuses to sell what the account already has, or an unknown item', async () => {
    const { customer, browser, plan } = await subscriber()
    const again = await browser.post('/account/checkout', { plan: 'paid' })
    expect([again.status, again.problem]).toEqual([409, 'already_subscribed'])
    for (const item of [{}, { plan: 'gold' }, { addons: 'many' }, { addons: '4' }] as Record<string, string>[]) {
      const page = await browser.post('/account/checkout', item)
      expect([page.status, page.problem]).toEqual([400, 'invalid_request'])
    }
    expect((await customer.listSandboxSubscriptions()).map(({ subscription_id: id }) => id)).toEqual([plan])
  })

  test('sells nothing without a sign-in or to a cross-origin form', async () => {
    expect((await site.browser().post('/account/checkout', { plan: 'paid' })).path).toBe('/login?next=%2Faccount')
    const { customer, browser } = await newCustomer()
    expect((await browser.post('/account/checkout', { plan: 'paid' }, { from: 'cross-site' })).status).toBe(403)
    expect(await customer.listSandboxSubscriptions()).toEqual([])
  })

  test('lists changes of the plan in the activity', async () => {
    const { customer, browser, plan } = await subscriber()
    await customer.buy({ addons: 1 })
    await customer.play(plan, 'fail')
    const { userId } = customer
    await recordAuditEntry(api.sql, { initiator: 'system', action: 'usage_notice', userId, detail: { percent: 80 } })
    await recordAuditEntry(api.sql, {
      initiator: 'operator',
      action: 'billing_event_replayed',
      userId,
      detail: { event_id: 'e' },
    })
    const page = await browser.open('/account/activity?group=plan')
    expect(page.data('action').slice(0, 5)).toEqual([
      'billing_event_replayed',
      'usage_notice',
      'plan_changed',
      'plan_changed',
      'plan_changed',
    ])
  })
})

describe('a failed payment', () => {
  test('is an alert with deadline and link to pay on the account and relays pages, until it is paid', async () => {
    const { customer, browser, plan } = await subscriber()
    await customer.play(plan, 'fail')
    const { grace_ends_at: ends } = await customer.fetchSubscription()
    for (const path of ['/account', '/relays']) {
      const page = await browser.open(path)
      expect(page.data('alert')).toEqual(['payment_failed'])
      expect(page.html).toContain(`datetime="${ends}"`)
      expect(page.text).toMatch(/Time left: (48 h 0|47 h 59) min/)
    }
    const account = await browser.open('/account')
    expect(planOn(account).slice(0, 3)).toEqual(['paid', 'past_due', '0/1'])
    expect(account.html).toMatch(
      new RegExp(`data-alert="payment_failed".*?href="${site.url}/sandbox/subscriptions"`, 's'),
    )
    expect(account.hasForm('/account/checkout')).toBe(false)

    await browser.submit(await browser.open('/sandbox/subscriptions'), `/sandbox/subscriptions/${plan}/recover`)
    for (const path of ['/account', '/relays']) expect((await browser.open(path)).data('alert')).toEqual([])
  })
})

describe('the relays page', () => {
  test('links to the plan when there is none, or when all relays of the active plan are in use', async () => {
    const { customer, browser } = await newCustomer()
    const free = await browser.open('/relays')
    expect([free.data('blocked'), free.links.includes('/account#plan')]).toEqual([['plan_required'], true])
    const plan = await customer.buy({ plan: 'paid' })
    await startRelay(customer, 'only')
    const full = await browser.open('/relays')
    expect([full.data('blocked'), full.links.includes('/account#plan')]).toEqual([['relay_limit_reached'], true])
    await customer.play(plan, 'cancel')
    expect((await browser.open('/relays')).links).not.toContain('/account#plan')
  })
})

describe('relays beyond the plan', () => {
  test('are an alert on the account and relays pages', async () => {
    const { customer, browser } = await subscriber()
    const addon = await customer.buy({ addons: 1 })
    for (const name of ['first', 'second']) expect(statusAndCode(await startRelay(customer, name))[0]).toBe(201)
    expect((await browser.open('/relays')).data('alert')).toEqual([])
    await customer.play(addon, 'end')
    for (const path of ['/account', '/relays']) {
      const page = await browser.open(path)
      expect([page.data('alert'), page.data('surplus')]).toEqual([['surplus_relays'], ['1']])
    }
  })
})

describe('used relay time', () => {
  /** @param seconds of the hour that the plan includes. */
  const use = async ({ sql }: TestApi, { userId }: Customer, seconds: number) => {
    await useRelayTime(sql, userId, seconds)
    await sql`
      update users set period_start = now() - interval '2 days', period_end = now() + interval '28 days' where id = ${userId}`
  }

  const usageAlertOn = (page: Page) => [page.data('alert')[0], page.data('used-percent')[0]]

  test('is an alert from 80 percent, and at 100 percent a different one', async () => {
    const { customer, browser } = await subscriber()
    await use(api, customer, 0.79 * 3600)
    expect((await browser.open('/account')).data('alert')).toEqual([])
    for (const [seconds, alert] of [
      [0.04 * 3600, ['usage_high', '83']],
      [0.13 * 3600, ['usage_high', '96']],
      [0.1 * 3600, ['usage_exhausted', '106']],
    ] as const) {
      await use(api, customer, seconds)
      for (const path of ['/account', '/relays']) expect(usageAlertOn(await browser.open(path))).toEqual(alert)
    }
    expect((await browser.open('/relays')).hasForm('/relays/start')).toBe(true)
  })

  test('blocks new relays where the limit is enforced', async () => {
    const strict = await startApi({ SVC_TIME_BANK_HOURS_PER_RELAY: '1', SVC_TIME_BANK_ENFORCEMENT: 'enforce' })
    const { customer, browser } = await newSiteCustomer(await startSite(strict), strict)
    await strict.sql`update users set plan_tier = 'paid', plan_status = 'active' where id = ${customer.userId}`
    await use(strict, customer, 0.85 * 3600)
    const high = await browser.open('/relays')
    expect([usageAlertOn(high), high.data('blocked')]).toEqual([['usage_high', '85'], []])
    await use(strict, customer, 0.2 * 3600)
    const exhausted = await browser.open('/relays')
    expect([usageAlertOn(exhausted), exhausted.data('blocked')]).toEqual([
      ['usage_exhausted', '105'],
      ['usage_exhausted'],
    ])
  })
})

describe('with Stripe as the billing provider', () => {
  async function startStripeSite(variables: Readonly<Record<string, string>> = {}) {
    const provider = await startApiDouble()
    provider.respondWith(() => ({
      body: { id: 'cs_1', object: 'checkout.session', url: 'https://pay.example/cs_1?a=b' },
    }))
    const stripeApi = await startApi({
      SVC_SITE_URL: await freeSiteUrl(),
      SVC_BILLING_PROVIDER: 'stripe',
      SVC_STRIPE_API_KEY: 'sk_test_of_these_tests',
      SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
      SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
      SVC_STRIPE_API_URL: provider.url,
      ...variables,
    })
    const { customer, browser } = await newSiteCustomer(await startSite(stripeApi), stripeApi)
    /** The account page after a failed payment. */
    const openWithFailedPayment = async () => {
      await stripeApi.sql`
        insert into subscriptions (provider, subscription_id, kind, user_id, status)
        values ('stripe', 'sub_1', 'plan', ${customer.userId}, 'past_due')`
      await stripeApi.sql`
        update users set plan_tier = 'paid', plan_status = 'past_due', payment_grace_ends_at = now() + interval '1 hour'
        where id = ${customer.userId}`
      return browser.open('/account')
    }
    /** Inserts a subscription of the plan with its customer at the provider. */
    const insertSubscription = () =>
      stripeApi.sql`
        with subscription as (
          insert into subscriptions (provider, subscription_id, kind, user_id, status)
          values ('stripe', 'sub_1', 'plan', ${customer.userId}, 'active') returning provider, subscription_id)
        insert into billing_customers select *, 'cus_7' from subscription`
    return { provider, browser, openWithFailedPayment, insertSubscription }
  }

  test('the billing portal opens at a personal address', async () => {
    const { provider, browser, insertSubscription } = await startStripeSite()
    await insertSubscription()
    const account = await browser.open('/account')
    expect(account.links.some((href) => href.endsWith('/account/payments'))).toBe(true)
    provider.respondWith(() => ({
      body: { id: 'bps_1', object: 'billing_portal.session', url: 'https://pay.example/me' },
    }))
    const forwarding = await browser.open('/account/payments')
    expect([forwarding.status, forwarding.continuesTo]).toEqual([200, 'https://pay.example/me'])
    await provider.close()
    const refused = await browser.open('/account/payments')
    expect([refused.status, refused.problem]).toEqual([502, 'billing_provider_error'])
  })

  test('the billing portal is not available to an account that never bought anything', async () => {
    const { browser } = await startStripeSite()
    const page = await browser.open('/account/payments')
    expect([page.status, page.name, page.problem]).toEqual([404, 'account', 'not_found'])
  })

  test('a cancellation that the provider does not confirm is reported as failed', async () => {
    const { provider, browser, insertSubscription } = await startStripeSite()
    await insertSubscription()
    await provider.close()
    const refused = await browser.post('/account/subscriptions/sub_1/cancel', {})
    expect([refused.status, refused.problem]).toEqual([502, 'billing_provider_error'])
  })

  test('the checkout forwards to the provider, or reports that it is unavailable', async () => {
    const { provider, browser } = await startStripeSite()
    const forwarding = await browser.submit(await browser.open('/account'), '/account/checkout')
    expect([forwarding.status, forwarding.continuesTo]).toEqual([200, 'https://pay.example/cs_1?a=b'])
    expect(forwarding.links).toContain('https://pay.example/cs_1?a=b')
    await provider.close()
    const refused = await browser.submit(await browser.open('/account'), '/account/checkout')
    expect([refused.status, refused.problem]).toEqual([502, 'billing_provider_error'])
  })

  test('a failed payment links to the configured portal, or to nothing', async () => {
    const portalUrl = 'https://pay.example/portal'
    const withPortal = await (await startStripeSite({ SVC_BILLING_PORTAL_URL: portalUrl })).openWithFailedPayment()
    expect(withPortal.links.filter((href) => href === portalUrl)).toHaveLength(2)
    const withoutPortal = await (await startStripeSite()).openWithFailedPayment()
    expect(withoutPortal.data('alert')).toEqual(['payment_failed'])
    expect(withoutPortal.html).not.toMatch(/<a class="button/)
  })
})
