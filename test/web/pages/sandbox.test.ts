import { expect, test } from 'vitest'
import { startApi } from '../../support/api.ts'
import { customerAt, startBillingSite } from '../../support/billing-site.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'

const { site, newcomer } = await startBillingSite()

const listPath = '/sandbox/subscriptions'

test('what was bought is listed newest first, each with what can happen to it', async () => {
  const { customer, browser } = await newcomer()
  expect((await browser.open(listPath)).text).toContain('Nothing was bought yet.')
  const plan = await customer.buy({ plan: 'paid' })
  await customer.openSubscription({ addons: 2 })
  const page = await browser.open(listPath)
  expect(page.text).toMatch(/2 add-ons Not paid yet sub_\S+ Pay \(2 add-ons\) Paid plan Active Period until/)
  expect(page.text).toContain(`${plan} Pay the renewal (Paid plan) Let a payment fail (Paid plan) Cancel (Paid plan)`)
  expect(page.text).toContain('Refund (Paid plan) End at once (Paid plan)')
  expect(page.text).not.toContain('Resume')
})

test('whatever is played has happened when the page comes back, and the page can be loaded again', async () => {
  const { customer, browser } = await newcomer()
  const plan = await customer.buy({ plan: 'paid' })
  for (const [what, says, status] of [
    ['fail', 'A payment has failed.', 'past_due'],
    ['fail', 'A payment has failed.', 'past_due'],
    ['recover', 'The payment was made after all.', 'active'],
    ['pay', 'Paid. No money was moved.', 'active'],
    ['cancel', 'Cancelled: it goes on until the end of its period.', 'cancelled'],
    ['resume', 'Resumed.', 'active'],
    ['refund', 'Paid back.', 'none'],
  ] as const) {
    const page = await browser.submit(await browser.open(listPath), `${listPath}/${plan}/${what}`)
    expect(page.visited).toEqual([`POST ${listPath}/${plan}/${what}`, `GET ${listPath}?done=${what}`])
    expect(page.text).toContain(says)
    expect([what, (await customer.fetchSubscription()).plan_status]).toEqual([what, status])
  }
  expect((await browser.open(listPath)).text).toContain('Paid plan Ended')
})

test('the number of add-ons is changed to another one', async () => {
  const { customer, browser } = await newcomer()
  await customer.buy({ plan: 'paid' })
  const addons = await customer.buy({ addons: 2 })
  const page = await browser.open(listPath)
  expect(page.html.match(/<option[^>]*>/g)).toEqual(['<option value="1">', '<option value="3">', '<option value="0">'])
  const change = { quantity: '3' }
  const changed = await browser.submit(page, `${listPath}/${addons}/pay`, change, { quantity: '1' })
  expect([changed.path, changed.text]).toEqual([
    `${listPath}?done=number`,
    expect.stringMatching(/The number of add-ons was changed\. .*3 add-ons Active/),
  ])
  expect(await customer.fetchSubscription()).toMatchObject({ addons: 3 })
  const none = await browser.submit(changed, `${listPath}/${addons}/pay`, { quantity: '0' })
  expect(none.text).toContain('0 add-ons Active')
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', addons: 0 })
  const nonsense = await browser.submit(none, `${listPath}/${addons}/pay`, { quantity: 'many' })
  expect([nonsense.status, nonsense.problem]).toEqual([400, 'Something in this form is not right: check it.'])
})

test('a checkout is paid once', async () => {
  const { customer, browser } = await newcomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const checkout = await browser.open(`/sandbox/checkout/${order}`)
  expect((await browser.submit(checkout, `${listPath}/${order}/pay`)).path).toBe('/account?done=bought')
  const again = await browser.open(`/sandbox/checkout/${order}`)
  expect(again.heading).toBe('This was paid already')
  expect(() => again.form(`${listPath}/${order}/pay`)).toThrow()
})

test('a form that is sent twice pays once', async () => {
  const { customer, browser } = await newcomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const checkout = await browser.open(`/sandbox/checkout/${order}`)
  await browser.submit(checkout, `${listPath}/${order}/pay`)
  const [paid] = await customer.listSandboxSubscriptions()
  expect((await browser.submit(checkout, `${listPath}/${order}/pay`)).heading).toBe('This was paid already')
  expect(await customer.listSandboxSubscriptions()).toEqual([paid])

  const page = await browser.open(listPath)
  await browser.submit(page, `${listPath}/${order}/pay`)
  const [renewed] = await customer.listSandboxSubscriptions()
  const again = await browser.submit(page, `${listPath}/${order}/pay`)
  expect([again.path, again.problem]).toEqual([
    `${listPath}?done=changed`,
    'It had changed meanwhile, so nothing more was done.',
  ])
  expect(await customer.listSandboxSubscriptions()).toEqual([renewed])
})

test('five taps on Pay at once pay once, and the last answer says so', async () => {
  const { customer, browser } = await newcomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const checkout = await browser.open(`/sandbox/checkout/${order}`)
  const taps = Array.from({ length: 5 }, () => browser.submit(checkout, `${listPath}/${order}/pay`))
  const pages = await Promise.all(taps)
  const [paid] = await customer.listSandboxSubscriptions()
  expect(Date.parse(paid?.period_end ?? '')).toBeLessThan(Date.now() + 32 * 86_400_000)
  expect(pages.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(pages.filter(({ path }) => path === '/account?done=bought')).toHaveLength(1)
  expect(pages.filter(({ heading }) => heading === 'This was paid already')).toHaveLength(4)

  const page = await browser.open(listPath)
  await Promise.all(Array.from({ length: 5 }, () => browser.submit(page, `${listPath}/${order}/pay`)))
  const days =
    (Date.parse((await customer.listSandboxSubscriptions())[0]?.period_end ?? '') -
      Date.parse(paid?.period_end ?? '')) /
    86_400_000
  expect(days).toBeGreaterThanOrEqual(28)
  expect(days).toBeLessThanOrEqual(31)
})

test('what can’t happen to it as it is is refused with the reason', async () => {
  const { customer, browser } = await newcomer()
  const plan = await customer.buy({ plan: 'paid' })
  const { fields } = (await browser.open(listPath)).form(`${listPath}/${plan}/cancel`)
  const page = await browser.post(`${listPath}/${plan}/resume`, fields)
  expect([page.status, page.problem]).toEqual([409, expect.stringMatching(/^Nothing was done\. .* active\.$/)])
  expect(page.text).toContain('Paid plan Active')
})

test('what the service did not hear of is told, and the page that tells it can be loaded again', async () => {
  // Its sandbox sends to the port that was configured, where nobody listens.
  const deaf = await startApi({ SVC_SITE_URL: await freeSiteUrl(), PORT: '0' })
  const { customer, browser } = await customerAt(await startSite(deaf), deaf)
  const order = await customer.openSubscription({ plan: 'paid' })
  const page = await browser.submit(await browser.open(`/sandbox/checkout/${order}`), `${listPath}/${order}/pay`)
  expect([page.path, page.problem]).toEqual([
    `${listPath}?done=untold`,
    expect.stringContaining('did not take the message of it'),
  ])
  const [before] = await customer.listSandboxSubscriptions()
  expect((await browser.open(page.path)).text).toContain('Paid plan Active')
  expect(await customer.listSandboxSubscriptions()).toEqual([before])
})

test('somebody else’s subscription, and one that there is not, is not found', async () => {
  const [owner, other] = [await newcomer(), await newcomer()]
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

test('only notices of ours are shown', async () => {
  const { browser } = await newcomer()
  for (const other of ['You%20owe%20us', 'constructor', '__proto__'])
    expect((await browser.open(`${listPath}?done=${other}`)).html).not.toMatch(/class="(notice|problem)"/)
})

test('who is not signed in is led to the login page, and a page of another site plays nothing', async () => {
  const { customer, browser } = await newcomer()
  const order = await customer.openSubscription({ plan: 'paid' })
  const stranger = site.browser()
  const checkout = `/sandbox/checkout/${order}`
  expect((await stranger.open(checkout)).path).toBe(`/login?next=${encodeURIComponent(checkout)}`)
  expect((await stranger.post(`${listPath}/${order}/pay`, {})).path).toBe(`/login?next=${encodeURIComponent(listPath)}`)
  expect((await browser.post(`${listPath}/${order}/pay`, {}, { from: 'cross-site' })).status).toBe(403)
  expect((await customer.listSandboxSubscriptions()).map(({ status }) => status)).toEqual(['open'])
})

test('where another provider is in use there is no sandbox', async () => {
  const api = await startApi({
    SVC_SITE_URL: await freeSiteUrl(),
    SVC_BILLING_PROVIDER: 'stripe',
    SVC_STRIPE_API_KEY: 'sk_test_of_these_tests',
    SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
    SVC_STRIPE_ADDON_PRICE_ID: 'price_addon',
  })
  const { browser } = await customerAt(await startSite(api), api)
  for (const path of [listPath, '/sandbox/checkout/sub_1']) expect((await browser.open(path)).heading).toBe('Not found')
  expect((await browser.post(`${listPath}/sub_1/pay`, {})).heading).toBe('Not found')
})
