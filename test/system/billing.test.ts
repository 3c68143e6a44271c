/** Purchases, and a relay's end after a failed payment, in Chromium. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { startBillingSite } from '../support/billing-site.ts'
import { eventually, operator } from '../support/relays.ts'
import { type Customer, newCustomer } from '../support/sandbox-customers.ts'
import { expectUsable, signIn, submitButton, type Visitor, visitor, waitForNotice, waitForPage } from './browser.ts'
import { noRelays, startButton } from './streamers.ts'

const { service, api, site, report } = await startBillingSite({ SVC_PAYMENT_GRACE_SECONDS: '12' })

interface BillingVisitor extends Visitor {
  readonly customer: Customer
}

/** A new account without purchases, on the account page. */
async function newVisitor(look: Parameters<typeof visitor>[0] = {}): Promise<BillingVisitor> {
  const [customer, browser] = [await newCustomer(api), await visitor(look)]
  const { page } = browser
  await page.goto(`${site.url}/login?next=/account`)
  await signIn(page, customer)
  await page.waitForURL(`${site.url}/account`)
  return { ...browser, customer }
}

const waitForPlan = (page: Page, tier: string, status: string) =>
  page.locator(`[data-plan-tier="${tier}"][data-plan-status="${status}"]`).waitFor()
const paymentAlert = (page: Page) => page.locator('[data-alert="payment_failed"]')
const warning = (page: Page, name: string) => page.locator(`[data-warning="${name}"]`)
const payButton = (page: Page) => page.locator('form[action$="/pay"] button')
const manageBilling = (page: Page) => page.locator('[aria-labelledby="plan"] a[href$="/sandbox/subscriptions"]').last()

async function startRelay(page: Page): Promise<void> {
  await page.goto(`${site.url}/relays`)
  await startButton(page).click()
  await page.getByRole('article', { name: 'default' }).waitFor()
}

/** Makes the customer's relay active and resolves to its id. */
async function reportRelay({ bearer }: Customer): Promise<string> {
  const active = async () =>
    (await api.get<{ session: { session_id: string; state: string } | null }>('/relay/active', { bearer })).body.session
  const id = (await active())?.session_id ?? ''
  await report(id)
  await eventually(active, (session) => session?.state === 'active')
  return id
}

/** The details that the Temporal UI shows of the customer's subscription workflow. */
async function detailsOf({ userId }: Customer): Promise<string> {
  const handle = api.services.temporal.workflow.getHandle(`subscription/${userId}`)
  return (await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails
}

test('a failed payment ends plan and relay after its grace period, and paying restores the plan', async () => {
  const { page, customer, faults } = await newVisitor({ device: 'phone' })
  await submitButton(page, '/account/checkout').click()
  await payButton(page).click()
  await waitForPlan(page, 'paid', 'active')
  await startRelay(page)
  const relay = await reportRelay(customer)

  await page.goto(`${site.url}/account`)
  await manageBilling(page).click()
  await page.locator('form[action$="/fail"] button').click()
  await waitForNotice(page, 'fail')
  const { grace_ends_at: ends } = await customer.fetchSubscription()
  expect(await detailsOf(customer)).toContain(`past due, downgrade at ${ends}`)

  await page.locator('nav a[href="/relays"]').click()
  await paymentAlert(page).waitFor()
  const secondsLeft = async () =>
    Number(/^(\d+) seconds?\b/.exec((await page.locator('[data-expired-text]').textContent()) ?? '')?.[1])
  const first = await secondsLeft()
  expect(first).toBeGreaterThan(0)
  await expect.poll(secondsLeft).toBeLessThan(first)
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'past_due' })

  await noRelays(page)
  await page.locator('[data-blocked="plan_required"]').waitFor()
  expect(await paymentAlert(page).count()).toBe(0)
  const { session, transitions } = await service.history(relay)
  expect(session).toMatchObject({ state: 'stopped', reason: 'force_disconnected' })
  expect(Date.parse(session.stopped_at ?? '')).toBeGreaterThanOrEqual(Date.parse(ends ?? ''))
  expect(transitions.at(-1)).toMatchObject({ to: 'stopped', reason: 'force_disconnected', initiator: 'system' })
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'free', plan_status: 'none' })

  await page.locator('[data-blocked] a.button').click()
  await manageBilling(page).click()
  await page.locator('form[action$="/recover"] button').click()
  await page.locator('main a[href="/account"]').click()
  await waitForPlan(page, 'paid', 'active')
  await startRelay(page)
  expect(await reportRelay(customer)).not.toBe(relay)
  expect(faults).toEqual([])
})

test('add-ons are bought without scripts and with the keyboard alone', async () => {
  const { page, customer } = await newVisitor({ script: false })
  await customer.buy({ plan: 'paid' })
  await page.reload()
  await page.locator('select[name="addons"]').press('ArrowDown')
  await page.locator('form:has(select[name="addons"]) button').press('Enter')
  await waitForPage(page, 'sandbox-checkout')
  await payButton(page).press('Enter')
  await page.locator('[data-relays-in-use="0/3"]').waitFor()
  await page.reload()
  expect(await customer.fetchSubscription()).toMatchObject({ addons: 2 })
})

/** Two add-ons that renew after their plan has ended. */
async function buyUnusedAddons({ customer }: BillingVisitor): Promise<void> {
  const plan = await customer.buy({ plan: 'paid' })
  await customer.buy({ addons: 2 })
  await customer.play(plan, 'end')
}

async function buyTwoPlans({ customer }: BillingVisitor): Promise<void> {
  const orders = [await customer.openSubscription({ plan: 'paid' }), await customer.openSubscription({ plan: 'paid' })]
  for (const id of orders) await customer.play(id, 'pay')
}

test('unused add-ons and a second plan are cancelled without scripts and with the keyboard alone', async () => {
  const visit = await newVisitor({ script: false })
  const { page, customer } = visit
  await buyUnusedAddons(visit)
  await page.reload()
  await warning(page, 'unused-addons').getByRole('button').press('Enter')
  await waitForNotice(page, 'cancelled')
  expect(await warning(page, 'unused-addons').count()).toBe(0)

  await buyTwoPlans(visit)
  await page.reload()
  await warning(page, 'billed-twice').getByRole('button').first().press('Enter')
  await waitForNotice(page, 'cancelled')
  await warning(page, 'billed-twice').waitFor({ state: 'detached' })
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
})

/** Sets a failed payment in the database, with a grace period that lasts longer than the test. */
async function setPastDue({ userId }: Customer): Promise<void> {
  await api.sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status)
    values ('sandbox', ${`sub_${userId}`}, 'plan', ${userId}, 'past_due')`
  await api.sql`
    update users set plan_tier = 'paid', plan_status = 'past_due', addons = 1,
      payment_grace_ends_at = now() + interval '47 hours' where id = ${userId}`
}

test('an open relays page shows and announces a failed payment within five minutes', async () => {
  const { page, customer } = await newVisitor()
  await page.clock.install()
  await page.goto(`${site.url}/relays`)
  await page.evaluate('window.isSameDocument = true')
  await setPastDue(customer)
  await page.clock.fastForward(301_000)
  await page.clock.runFor(11_000)
  await paymentAlert(page).waitFor()
  expect(await page.locator('[data-announcements]').textContent()).toBe(
    await paymentAlert(page).getByRole('heading').textContent(),
  )
  await page.clock.runFor(60_000)
  expect(await page.locator('[data-expired-text]').textContent()).toMatch(/^46 h 5\d min$/)
  expect(await page.evaluate('window.isSameDocument')).toBe(true)
})

/** Opens each page of billing; the keys name the screenshots. */
const pages: Readonly<Record<string, (visit: BillingVisitor) => Promise<unknown>>> = {
  'account-free': async () => {},
  'account-subscribed': async ({ page, customer }) => {
    await customer.buy({ plan: 'paid' })
    await customer.buy({ addons: 1 })
    await page.goto(`${site.url}/account?done=bought`)
  },
  'account-past-due': async ({ page, customer }) => {
    await setPastDue(customer)
    await page.reload()
  },
  'account-unused-addons': async (visit) => {
    await buyUnusedAddons(visit)
    await visit.page.reload()
  },
  'account-two-plans': async (visit) => {
    await buyTwoPlans(visit)
    await visit.page.goto(`${site.url}/account?done=cancelled`)
  },
  'account-complimentary': async ({ page, customer }) => {
    const until = new Date(Date.now() + 30 * 86_400_000)
    await api.post(`/admin/users/${customer.userId}/grant`, { plan_tier: 'paid', until }, { headers: operator })
    await page.reload()
  },
  'account-withdrawals': async ({ page, customer }) => {
    const plan = await customer.buy({ plan: 'paid' })
    await customer.buy({ addons: 1 })
    await api.post('/billing/withdrawals', { subscription_id: plan }, { bearer: customer.bearer })
    await page.goto(`${site.url}/account?done=withdrawn`)
  },
  'account-withdrawal': async ({ page, customer }) => {
    await page.goto(`${site.url}/account/withdrawals/${await customer.buy({ plan: 'paid' })}`)
  },
  'relays-past-due': async ({ page, customer }) => {
    await setPastDue(customer)
    await page.goto(`${site.url}/relays`)
  },
  'sandbox-checkout': async ({ page, customer }) => {
    await page.goto(`${site.url}/sandbox/checkout/${await customer.openSubscription({ addons: 3 })}`)
  },
  'sandbox-subscriptions': async ({ page, customer }) => {
    await customer.openSubscription({ plan: 'paid' })
    await customer.play(await customer.buy({ plan: 'paid' }), 'cancel')
    await customer.play(await customer.buy({ addons: 1 }), 'fail')
    await customer.play(await customer.buy({ addons: 2 }), 'end')
    await customer.buy({ addons: 2 })
    await page.goto(`${site.url}/sandbox/subscriptions?done=cancel`)
  },
}

test.for(Object.keys(pages))('the page %s is accessible and fits small phones', async (name) => {
  const visit = await newVisitor({ device: 'phone' })
  await pages[name]?.(visit)
  await expectUsable(visit, name)
})
