/** The sandbox's checkout and subscriptions pages, in a browser without scripts. */
import { expect, test } from 'vitest'
import { startApi } from '../../support/api.ts'
import { newSiteCustomer, startBillingSite } from '../../support/billing-site.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import type { Page } from '../../support/site-page.ts'

const { site, newCustomer } = await startBillingSite()

const listPath = '/sandbox/subscriptions'
const outcomes = ['pay', 'fail', 'recover', 'cancel', 'resume', 'refund', 'end']

/** Id, status and quantity of each subscription. */
const subscriptionsOn = (page: Page) =>
  page.data('subscription').map((id, index) => [id, page.data('status')[index], page.data('quantity')[index]])

const outcomesFor = (page: Page, id: string) =>
  outcomes.filter((outcome) => page.hasForm(`${listPath}/${id}/${outcome}`))

test('subscriptions are listed newest first, with the events that their status allows', async () => {
  const { customer, browser } = await newCustomer()
  expect(subscriptionsOn(await browser.open(listPath))).toEqual([])
  const plan = await customer.buy({ plan: 'paid' })
  const addons = await customer.openSubscription({ addons: 2 })
  const page = await browser.open(listPath)
  expect(subscriptionsOn(page)).toEqual([
    [addons, 'open', '2'],
    [plan, 'active', '1'],
  ])
  expect(outcomesFor(page, addons)).toContain('pay')
  expect(outcomesFor(page, plan)).toEqual(['pay', 'fail', 'cancel', 'refund', 'end'])
})

test('each simulated event reaches the account before the page reloads, and the page can be reloaded', async () => {
  const { customer, browser } = await newCustomer()
  const plan = await customer.buy({ plan: 'paid' })
  for (const [event, status] of [
    ['fail', 'past_due'],
    ['fail', 'past_due'],
    ['recover', 'active'],
    ['pay', 'active'],
    ['cancel', 'cancelled'],
    ['resume', 'active'],
    ['refund', 'none'],
  ] as const) {
    const page = await browser.submit(await browser.open(listPath), `${listPath}/${plan}/${event}`)
    expect(page.visited).toEqual([`POST ${listPath}/${plan}/${event}`, `GET ${listPath}?done=${event}`])
    expect(page.notice).toBe(event)
    expect(/<p class="warning" role="status"/.test(page.html)).toBe(event === 'fail')
    expect([event, (await customer.fetchSubscription()).plan_status]).toEqual([event, status])
  }
  expect(subscriptionsOn(await browser.open(listPath))).toEqual([[plan, 'ended', '1']])
})

test('the number of add-ons can be changed', async () => {
  const { customer, browser } = await newCustomer()
  await customer.buy({ plan: 'paid' })
  const addons = await customer.buy({ addons: 2 })
  const page = await browser.open(listPath)
  expect(page.html.match(/<option[^>]*>/g)).toEqual(['<option value="1">', '<option value="3">', '<option value="0">'])
  const payPath = `${listPath}/${addons}/pay`
  const changed = await browser.submit(page, payPath, { quantity: '3' }, { quantity: '1' })
  expect([changed.path, changed.notice]).toEqual([`${listPath}?done=number`, 'number'])
  expect(subscriptionsOn(changed)[0]).toEqual([addons, 'active', '3'])
  expect(await customer.fetchSubscription()).toMatchObject({ addons: 3 })
  const none = await browser.submit(changed, payPath, { quantity: '0' })
  expect(subscriptionsOn(none)[0]).toEqual([addons, 'active', '0'])
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', addons: 0 })
  const invalid = await browser.submit(none, payPath, { quantity: 'many' })
  expect([invalid.status, invalid.problem]).toEqual([400, 'invalid_request'])
})

test('a checkout can be paid once', async () => {
  const { customer, browser } = await newCustomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const checkout = await browser.open(`/sandbox/checkout/${order}`)
  expect(checkout.data('included-hours')).toEqual(['200'])
  expect(checkout.text).toContain('1 managed relay and 200 hours of relay time a month')
  const bought = await browser.submit(checkout, `${listPath}/${order}/pay`)
  expect(bought.path).toBe('/account?done=bought')
  await expect.poll(async () => (await customer.fetchSubscription()).plan_tier).toBe('paid')
  const confirmation = await browser.open(bought.path)
  expect(confirmation.data('bought-relays')).toEqual(['1'])
  expect(confirmation.text).toContain('Your plan includes 1 managed relay and 200 hours of relay time a month')
  expect(confirmation.html).toContain('href="/relays">Start your relay</a>')
  const again = await browser.open(`/sandbox/checkout/${order}`)
  expect([again.name, again.hasForm(`${listPath}/${order}/pay`)]).toEqual(['sandbox-checkout-paid', false])
})

test('a form that is submitted twice pays once', async () => {
  const { customer, browser } = await newCustomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const checkout = await browser.open(`/sandbox/checkout/${order}`)
  await browser.submit(checkout, `${listPath}/${order}/pay`)
  const [paid] = await customer.listSandboxSubscriptions()
  expect((await browser.submit(checkout, `${listPath}/${order}/pay`)).name).toBe('sandbox-checkout-paid')
  expect(await customer.listSandboxSubscriptions()).toEqual([paid])

  const page = await browser.open(listPath)
  await browser.submit(page, `${listPath}/${order}/pay`)
  const [renewed] = await customer.listSandboxSubscriptions()
  const again = await browser.submit(page, `${listPath}/${order}/pay`)
  expect([again.path, again.problem]).toEqual([`${listPath}?done=changed`, 'changed'])
  expect(await customer.listSandboxSubscriptions()).toEqual([renewed])
})

test('five concurrent submissions of a payment pay once', async () => {
  const { customer, browser } = await newCustomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const checkout = await browser.open(`/sandbox/checkout/${order}`)
  const submissions = Array.from({ length: 5 }, () => browser.submit(checkout, `${listPath}/${order}/pay`))
  const pages = await Promise.all(submissions)
  const [paid] = await customer.listSandboxSubscriptions()
  expect(Date.parse(paid?.period_end ?? '')).toBeLessThan(Date.now() + 32 * 86_400_000)
  expect(pages.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(pages.filter(({ path }) => path === '/account?done=bought')).toHaveLength(1)
  expect(pages.filter(({ name }) => name === 'sandbox-checkout-paid')).toHaveLength(4)

  const page = await browser.open(listPath)
  await Promise.all(Array.from({ length: 5 }, () => browser.submit(page, `${listPath}/${order}/pay`)))
  const days =
    (Date.parse((await customer.listSandboxSubscriptions())[0]?.period_end ?? '') -
      Date.parse(paid?.period_end ?? '')) /
    86_400_000
  expect(days).toBeGreaterThanOrEqual(28)
  expect(days).toBeLessThanOrEqual(31)
})

test('an event that the status does not allow is refused', async () => {
  const { customer, browser } = await newCustomer()
  const plan = await customer.buy({ plan: 'paid' })
  const { fields } = (await browser.open(listPath)).form(`${listPath}/${plan}/cancel`)
  const page = await browser.post(`${listPath}/${plan}/resume`, fields)
  expect([page.status, page.problem]).toEqual([409, 'invalid_transition'])
  expect(subscriptionsOn(page)).toEqual([[plan, 'active', '1']])
})

test('an event whose webhook is not delivered is reported on a page that can be reloaded', async () => {
  // Its sandbox sends webhooks to the configured port, where nothing listens.
  const unreachable = await startApi({ SVC_SITE_URL: await freeSiteUrl(), PORT: '0' })
  const { customer, browser } = await newSiteCustomer(await startSite(unreachable), unreachable)
  const order = await customer.openSubscription({ plan: 'paid' })
  const page = await browser.submit(await browser.open(`/sandbox/checkout/${order}`), `${listPath}/${order}/pay`)
  expect([page.path, page.problem]).toEqual([`${listPath}?done=undelivered`, 'undelivered'])
  const [before] = await customer.listSandboxSubscriptions()
  expect(subscriptionsOn(await browser.open(page.path))).toEqual([[order, 'active', '1']])
  expect(await customer.listSandboxSubscriptions()).toEqual([before])
})

test('a subscription of another account, an unknown one and an unknown event are not found', async () => {
  const [owner, other] = [await newCustomer(), await newCustomer()]
  const plan = await owner.customer.buy({ plan: 'paid' })
  const order = await owner.customer.openSubscription({ addons: 1 })
  for (const id of [order, plan, 'sub_none', '%27', '..'])
    expect((await other.browser.open(`/sandbox/checkout/${id}`)).status).toBe(404)
  for (const path of [`${plan}/refund`, `${order}/pay`, 'sub_none/pay', '%27/pay'])
    expect((await other.browser.post(`${listPath}/${path}`, {})).status).toBe(404)
  const { fields } = (await owner.browser.open(listPath)).form(`${listPath}/${plan}/refund`)
  expect((await owner.browser.post(`${listPath}/${plan}/explode`, fields)).status).toBe(404)
  expect((await owner.customer.listSandboxSubscriptions()).map(({ status }) => status)).toEqual(['active', 'open'])
})

test('an unknown `done` parameter shows no message', async () => {
  const { browser } = await newCustomer()
  for (const done of ['You%20owe%20us', 'constructor', '__proto__']) {
    const page = await browser.open(`${listPath}?done=${done}`)
    expect([page.notice, page.problem]).toEqual([undefined, undefined])
  }
})

test('the pages require a sign-in, and refuse cross-origin forms', async () => {
  const { customer, browser } = await newCustomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const anonymous = site.browser()
  const checkout = `/sandbox/checkout/${order}`
  expect((await anonymous.open(checkout)).path).toBe(`/login?next=${encodeURIComponent(checkout)}`)
  expect((await anonymous.post(`${listPath}/${order}/pay`, {})).path).toBe(
    `/login?next=${encodeURIComponent(listPath)}`,
  )
  expect((await browser.post(`${listPath}/${order}/pay`, {}, { from: 'cross-site' })).status).toBe(403)
  expect((await customer.listSandboxSubscriptions()).map(({ status }) => status)).toEqual(['open'])
})

test('with another billing provider there are no sandbox pages', async () => {
  const api = await startApi({
    SVC_SITE_URL: await freeSiteUrl(),
    SVC_BILLING_PROVIDER: 'stripe',
    SVC_STRIPE_API_KEY: 'sk_test_of_these_tests',
    SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
    SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
  })
  const { browser } = await newSiteCustomer(await startSite(api), api)
  for (const path of [listPath, '/sandbox/checkout/sub_1']) expect((await browser.open(path)).status).toBe(404)
  expect((await browser.post(`${listPath}/sub_1/pay`, {})).status).toBe(404)
})
