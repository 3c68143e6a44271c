import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { recordAuditEntry } from '../../../db/audit.ts'
import { outcome, startApi, type TestApi } from '../../support/api.ts'
import { startApiDouble } from '../../support/api-double.ts'
import { customerAt, startBillingSite } from '../../support/billing-site.ts'
import { useRelayTime } from '../../support/relay-time.ts'
import { operator } from '../../support/relays.ts'
import type { Customer } from '../../support/sandbox-customers.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'

const { api, site, newcomer } = await startBillingSite({ SVC_TIME_BANK_HOURS_PER_RELAY: '1' })

const day = (at: string | null): string =>
  new Date(at ?? '').toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })

/** Somebody with the paid plan, at a browser. */
async function subscriber() {
  const person = await newcomer()
  const plan = await person.customer.buy({ plan: 'paid' })
  return { ...person, plan }
}

/** A complimentary plan, without an end unless one is named. */
const grantPlan = ({ userId }: Customer, until?: string) =>
  api.post(
    `/admin/users/${userId}/grant`,
    { plan_tier: 'paid', addons: 0, ...(until ? { until } : {}) },
    { headers: operator },
  )

const startRelay = ({ bearer }: Customer, name: string) =>
  api.post('/relay/start', { connection_id: name }, { bearer, headers: { 'Idempotency-Key': randomUUID() } })

describe('the account page', () => {
  test('sells the plan: chosen, paid, and shown with the day that it renews', async () => {
    const { customer, browser } = await newcomer()
    const account = await browser.open('/account')
    expect(account.text).toMatch(/Free plan .* Each add-on is one more: 7\.99 a month each, up to 3 of them\./)
    const checkout = await browser.submit(account, '/account/checkout')
    expect(checkout.visited).toEqual(['POST /account/checkout', `GET ${checkout.path}`])
    expect(checkout.text).toMatch(/no money moves\. What Paid plan Brings One managed relay Pay Back without paying/)

    const [order] = await customer.listSandboxSubscriptions()
    const paid = await browser.submit(checkout, `/sandbox/subscriptions/${order?.subscription_id}/pay`)
    expect(paid.path).toBe('/account?done=bought')
    const { renews_at: renews } = await customer.fetchSubscription()
    expect(paid.text).toContain(`Paid plan Active One managed relay, 0 of 1 in use. It renews on ${day(renews)} .`)
    expect(paid.text).toContain('Thank you.')
    expect(() => paid.form('/account/checkout', { plan: 'paid' })).toThrow()
  })

  test('sells as many add-ons as are wanted in all, until there are three', async () => {
    const { customer, browser } = await subscriber()
    await customer.buy({ addons: 1 })
    const account = await browser.open('/account')
    expect(account.text).toContain('One relay goes with the plan, and one with your add-on.')
    expect(account.html.match(/<option[^>]*>/g)).toEqual(['<option value="2">', '<option value="3">'])
    const checkout = await browser.submit(account, '/account/checkout', { addons: '3' })
    expect(checkout.text).toContain('What 2 add-ons Brings 2 more relays at once Price 15.98 a month')
    const order = (await customer.listSandboxSubscriptions()).at(-1)
    const paid = await browser.submit(checkout, `/sandbox/subscriptions/${order?.subscription_id}/pay`)
    expect(paid.text).toContain('4 managed relays at once, 0 of 4 in use.')
    expect(paid.text).toContain('One relay goes with the plan, and one with each of your 3 add-ons.')
    expect(() => paid.form('/account/checkout')).toThrow()
  })

  test('says that add-ons without the plan wait for it', async () => {
    const { customer, browser } = await newcomer()
    await customer.buy({ addons: 2 })
    expect((await browser.open('/account')).text).toContain(
      '2 add-ons are on record. They count once you have the plan.',
    )
  })

  test('says until when a cancelled plan is paid, and sells it anew', async () => {
    const { customer, browser, plan } = await subscriber()
    await customer.play(plan, 'cancel')
    const page = await browser.open('/account')
    const { ends_at: ends } = await customer.fetchSubscription()
    expect(page.text).toContain(`Paid plan Cancelled`)
    expect(page.text).toContain(`It was cancelled, and is paid until ${day(ends)}, ${ends?.slice(11, 16)} UTC .`)
    expect(page.text).toContain('Manage payments Changed your mind? Resume it here.')
    expect((await browser.submit(page, '/account/checkout')).heading).toBe('Pay for it')
  })

  test('says of a plan that was given that nobody pays for it, and when it ends', async () => {
    const { customer, browser } = await newcomer()
    await grantPlan(customer)
    const endless = await browser.open('/account')
    expect(endless.text).toContain('It is complimentary: nobody is charged for it.')
    expect(endless.text).not.toContain('It ends on')
    await grantPlan(customer, '2099-01-01T00:00:00Z')
    expect((await browser.open('/account')).text).toContain('It is complimentary: nobody is charged for it. It ends on')
  })

  test('sells the plan to an account whose complimentary plan ends one day, and not where it has no end', async () => {
    const { customer, browser } = await newcomer()
    await grantPlan(customer)
    const endless = await browser.open('/account')
    expect(() => endless.form('/account/checkout', { plan: 'paid' })).toThrow()
    await grantPlan(customer, '2099-01-01T00:00:00Z')
    const account = await browser.open('/account')
    const checkout = await browser.submit(account, '/account/checkout', {}, { plan: 'paid' })
    expect(checkout.heading).toBe('Pay for it')
    const [order] = await customer.listSandboxSubscriptions()
    const paid = await browser.submit(checkout, `/sandbox/subscriptions/${order?.subscription_id}/pay`)
    expect(paid.text).toContain('It renews on')
    expect(() => paid.form('/account/checkout', { plan: 'paid' })).toThrow()
  })

  test('leads to where one pays after a plan has ended over a failed payment', async () => {
    const { customer, browser, plan } = await subscriber()
    for (const what of ['fail', 'end']) await customer.play(plan, what)
    const page = await browser.open('/account')
    expect(page.text).toContain('Free plan')
    expect(page.text).toContain('Manage payments Did your plan end over a failed payment?')
    expect(page.html).toContain(`href="${site.url}/sandbox/subscriptions"`)
  })

  test('says in words why nothing was bought', async () => {
    const { customer, browser, plan } = await subscriber()
    const again = await browser.post('/account/checkout', { plan: 'paid' })
    expect([again.status, again.problem]).toEqual([409, expect.stringContaining('You have this already')])
    for (const nonsense of [{}, { plan: 'gold' }, { addons: 'many' }, { addons: '4' }] as Record<string, string>[]) {
      const page = await browser.post('/account/checkout', nonsense)
      expect([page.status, page.problem]).toEqual([400, expect.stringContaining('There is no such thing to buy')])
    }
    expect((await customer.listSandboxSubscriptions()).map(({ subscription_id: id }) => id)).toEqual([plan])
  })

  test('sells nothing to who is not signed in, nor for another site’s page', async () => {
    expect((await site.browser().post('/account/checkout', { plan: 'paid' })).path).toBe('/login?next=%2Faccount')
    const { customer, browser } = await newcomer()
    expect((await browser.post('/account/checkout', { plan: 'paid' }, { from: 'cross-site' })).status).toBe(403)
    expect(await customer.listSandboxSubscriptions()).toEqual([])
  })

  test('tells what happened to the plan in words', async () => {
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
    expect((await browser.open('/account')).text).toMatch(
      /A message about your payments was read again .* 80 % of the relay time of the cycle used .* Plan changed: paid plan, payment failed, 1 add-on .* Plan changed: paid plan, 1 add-on .* Plan changed: paid plan /,
    )
  })
})

describe('a payment that failed', () => {
  test('stands above everything on both pages, with the time that is left and the way to pay', async () => {
    const { customer, browser, plan } = await subscriber()
    await customer.play(plan, 'fail')
    const { grace_ends_at: ends } = await customer.fetchSubscription()
    const by = `${day(ends)}, ${ends?.slice(11, 16)} UTC`
    for (const path of ['/account', '/relays']) {
      const page = await browser.open(path)
      expect(page.text).toContain(`A payment did not get through Pay by ${by} .`)
      expect(page.text).toMatch(/Left: 47 h 59 min Pay now/)
    }
    const account = await browser.open('/account')
    expect(account.text).toContain('Paid plan Payment failed One managed relay')
    expect(/<a class="button" href="([^"]+)">Pay now/.exec(account.html)?.[1]).toBe(`${site.url}/sandbox/subscriptions`)
    expect(() => account.form('/account/checkout')).toThrow()

    await browser.submit(await browser.open('/sandbox/subscriptions'), `/sandbox/subscriptions/${plan}/recover`)
    for (const path of ['/account', '/relays'])
      expect((await browser.open(path)).text).not.toContain('A payment did not get through')
  })
})

describe('the relays page', () => {
  test('leads who has no plan, or all of its relays in use, to where more is bought', async () => {
    const { customer, browser } = await newcomer()
    const without = await browser.open('/relays')
    expect(without.text).toContain('Did your plan end over a failed payment? Your account leads to where you pay it')
    expect(without.html).toMatch(/<a class="button" href="\/account#plan">Get the paid plan/)
    const plan = await customer.buy({ plan: 'paid' })
    await startRelay(customer, 'only')
    expect((await browser.open('/relays')).html).toMatch(
      /<a class="link" href="\/account#plan">Add a relay to your plan/,
    )
    await customer.play(plan, 'cancel')
    expect((await browser.open('/relays')).text).not.toContain('Add a relay to your plan')
  })
})

describe('relays beyond the plan', () => {
  test('are announced to end, the newest first', async () => {
    const { customer, browser } = await subscriber()
    const addon = await customer.buy({ addons: 1 })
    for (const name of ['first', 'second']) expect(outcome(await startRelay(customer, name))[0]).toBe(201)
    expect((await browser.open('/relays')).text).not.toContain('your plan has')
    await customer.play(addon, 'end')
    for (const path of ['/account', '/relays'])
      expect((await browser.open(path)).text).toContain(
        '2 relays run and your plan has 1 now, so the newest one ends shortly.',
      )
  })
})

describe('relay time that runs out', () => {
  /** So much of the hour that goes with the plan. */
  const use = async ({ sql }: TestApi, { userId }: Customer, seconds: number) => {
    await useRelayTime(sql, userId, seconds)
    await sql`
      update users set period_start = now() - interval '2 days', period_end = now() + interval '28 days' where id = ${userId}`
  }

  test('is announced at 80, at 95 and at 100 percent', async () => {
    const { customer, browser } = await subscriber()
    await use(api, customer, 0.79 * 3600)
    expect((await browser.open('/account')).html).not.toContain('class="warning"')
    for (const [seconds, says] of [
      [
        0.04 * 3600,
        /83 % of this cycle’s relay time is used: 10 min left until .* Relays go on all the same after that\./,
      ],
      [0.13 * 3600, /Almost all of this cycle’s relay time is used: 2 min left until/],
      [0.1 * 3600, /The relay time of this cycle is used up\. Relays go on all the same\./],
    ] as const) {
      await use(api, customer, seconds)
      for (const path of ['/account', '/relays']) expect((await browser.open(path)).text).toMatch(says)
    }
  })

  test('says where it is enforced that nothing new starts', async () => {
    const strict = await startApi({ SVC_TIME_BANK_HOURS_PER_RELAY: '1', SVC_TIME_BANK_ENFORCEMENT: 'enforce' })
    const { customer, browser } = await customerAt(await startSite(strict), strict)
    await strict.sql`update users set plan_tier = 'paid', plan_status = 'active' where id = ${customer.userId}`
    await use(strict, customer, 0.85 * 3600)
    expect((await browser.open('/relays')).text).toContain('After that no new relay starts.')
    await use(strict, customer, 0.2 * 3600)
    expect((await browser.open('/relays')).text).toContain(
      'The relay time of this cycle is used up. Relays that run go on; new ones start again from',
    )
  })
})

describe('with a provider elsewhere', () => {
  async function elsewhere(variables: Readonly<Record<string, string>> = {}) {
    const provider = await startApiDouble()
    provider.respondWith(() => ({
      body: { id: 'cs_1', object: 'checkout.session', url: 'https://pay.example/cs_1?a=b' },
    }))
    const abroad = await startApi({
      SVC_SITE_URL: await freeSiteUrl(),
      SVC_BILLING_PROVIDER: 'stripe',
      SVC_STRIPE_API_KEY: 'sk_test_of_these_tests',
      SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
      SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
      SVC_STRIPE_API_URL: provider.url,
      ...variables,
    })
    const { customer, browser } = await customerAt(await startSite(abroad), abroad)
    const failed = async () => {
      await abroad.sql`
        insert into subscriptions (provider, subscription_id, kind, user_id, status)
        values ('stripe', 'sub_1', 'plan', ${customer.userId}, 'past_due')`
      await abroad.sql`
        update users set plan_tier = 'paid', plan_status = 'past_due', payment_grace_ends_at = now() + interval '1 hour'
        where id = ${customer.userId}`
      return browser.open('/account')
    }
    /** A subscription of the plan that the provider's customer pays for. */
    const bought = () =>
      abroad.sql`
        with subscription as (
          insert into subscriptions (provider, subscription_id, kind, user_id, status)
          values ('stripe', 'sub_1', 'plan', ${customer.userId}, 'active') returning provider, subscription_id)
        insert into billing_customers select *, 'cus_7' from subscription`
    return { provider, browser, failed, bought }
  }

  test('payments are managed at a personal page, which a page of ours asks for and leads to', async () => {
    const { provider, browser, bought } = await elsewhere()
    await bought()
    const account = await browser.open('/account')
    expect(account.html).toMatch(/href="[^"]*\/account\/payments"/)
    provider.respondWith(() => ({
      body: { id: 'bps_1', object: 'billing_portal.session', url: 'https://pay.example/me' },
    }))
    const leaving = await browser.open('/account/payments')
    expect([leaving.status, leaving.continuesTo]).toEqual([200, 'https://pay.example/me'])
    await provider.close()
    const refused = await browser.open('/account/payments')
    expect([refused.status, refused.problem]).toEqual([502, expect.stringContaining('could not be opened')])
  })

  test('payments of an account that never bought anything are managed nowhere', async () => {
    const { browser } = await elsewhere()
    const page = await browser.open('/account/payments')
    expect([page.status, page.problem]).toEqual([404, expect.stringContaining('not bought anything')])
  })

  test('a subscription is not said to be cancelled before the provider has said so', async () => {
    const { provider, browser, bought } = await elsewhere()
    await bought()
    await provider.close()
    const refused = await browser.post('/account/subscriptions/sub_1/cancel', {})
    expect([refused.status, refused.problem]).toEqual([502, expect.stringContaining('did not confirm')])
  })

  test('one is led to its page by a page of ours, or told that it does not answer', async () => {
    const { provider, browser } = await elsewhere()
    const leaving = await browser.submit(await browser.open('/account'), '/account/checkout')
    expect([leaving.status, leaving.continuesTo]).toEqual([200, 'https://pay.example/cs_1?a=b'])
    expect(leaving.html).toContain('href="https://pay.example/cs_1?a=b"')
    await provider.close()
    const refused = await browser.submit(await browser.open('/account'), '/account/checkout')
    expect([refused.status, refused.problem]).toEqual([502, expect.stringContaining('nothing was bought')])
  })

  test('payments are managed at its portal, or else by its mails', async () => {
    const portal = await (await elsewhere({ SVC_BILLING_PORTAL_URL: 'https://pay.example/portal' })).failed()
    expect(portal.html.match(/href="https:\/\/pay\.example\/portal"/g)).toHaveLength(2)
    const mails = await (await elsewhere()).failed()
    expect(mails.text).toContain('Our billing provider has sent you a mail that leads to where you pay.')
    expect(mails.text).not.toMatch(/Pay now|Manage payments/)
  })
})
