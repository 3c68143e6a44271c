import { describe, expect, test } from 'vitest'
import { startBillingSite } from '../../support/billing-site.ts'

const { api, site, newcomer } = await startBillingSite()

/** An account with the paid plan, at a browser. */
async function subscriber() {
  const person = await newcomer()
  const plan = await person.customer.buy({ plan: 'paid' })
  return { ...person, plan }
}

describe('what is billed for nothing', () => {
  const cancelPath = (id: string) => `/account/subscriptions/${id}/cancel`

  test('stands on the account page with a button that cancels it: add-ons of a plan that has ended', async () => {
    const { customer, browser, plan } = await subscriber()
    const addons = await customer.buy({ addons: 2 })
    const before = await browser.open('/account')
    expect(() => before.form(cancelPath(addons))).toThrow()
    await customer.play(plan, 'end')
    const account = await browser.open('/account')
    expect(account.text).toContain('You are still billed for 2 add-ons Add-ons do nothing without a plan.')
    const cancelled = await browser.submit(account, cancelPath(addons))
    expect(cancelled.visited).toEqual([`POST ${cancelPath(addons)}`, 'GET /account?done=cancelled'])
    expect(cancelled.text).toContain('Cancelled at the billing provider.')
    expect(cancelled.text).not.toContain('still billed for')
    expect((await customer.listSandboxSubscriptions()).at(-1)).toMatchObject({ status: 'cancelled' })
    // The button of a page that is still open elsewhere does no harm.
    expect((await browser.submit(account, cancelPath(addons))).path).toBe('/account?done=cancelled')
  })

  test('stands there: a second plan, of which either can be cancelled', async () => {
    const { customer, browser } = await newcomer()
    const [first, second] = [
      await customer.openSubscription({ plan: 'paid' }),
      await customer.openSubscription({ plan: 'paid' }),
    ]
    for (const id of [first, second]) await customer.play(id, 'pay')
    const account = await browser.open('/account')
    expect(account.text).toContain('You are billed for 2 plans')
    expect(account.form(cancelPath(first)).method).toBe('POST')
    const cancelled = await browser.submit(account, cancelPath(second))
    expect(cancelled.text).not.toContain('You are billed for')
    expect(cancelled.text).toContain('Paid plan Active')
    expect(cancelled.text).toContain('A second plan is billed beside the first')
  })

  test('is warned of before it happens: an earlier plan that is still being collected', async () => {
    const { customer, browser, plan } = await subscriber()
    await customer.play(plan, 'fail')
    expect((await browser.open('/account')).text).not.toContain('Your earlier plan is not paid')
    await api.sql`update users set plan_tier = 'free', plan_status = 'none' where id = ${customer.userId}`
    const account = await browser.open('/account')
    expect(account.text).toContain('Your earlier plan is not paid')
    const cancelled = await browser.submit(account, cancelPath(plan))
    expect(cancelled.text).not.toContain('Your earlier plan is not paid')
    expect((await customer.listSandboxSubscriptions()).at(0)).toMatchObject({ status: 'ended' })
  })

  test('is warned of before it happens: add-ons that renew though the plan was cancelled', async () => {
    const { customer, browser, plan } = await subscriber()
    const addons = await customer.buy({ addons: 1 })
    expect((await browser.open('/account')).text).not.toContain('Your add-ons renew')
    await customer.play(plan, 'cancel')
    const account = await browser.open('/account')
    expect(account.text).toContain('Your add-ons renew')
    expect((await browser.submit(account, cancelPath(addons))).text).not.toContain('Your add-ons renew')
  })

  test('is cancelled by its owner only, and by no other site’s page', async () => {
    const { customer, browser, plan } = await subscriber()
    const other = await newcomer()
    for (const id of [plan, 'sub_none', '%27']) {
      const page = await other.browser.post(cancelPath(id), {})
      expect([page.status, page.problem]).toEqual([404, 'There is no such subscription on your account.'])
    }
    expect((await browser.post(cancelPath(plan), {}, { from: 'cross-site' })).status).toBe(403)
    expect((await site.browser().post(cancelPath(plan), {})).path).toBe('/login?next=%2Faccount')
    expect(await customer.listSandboxSubscriptions()).toMatchObject([{ status: 'active' }])
  })
})
