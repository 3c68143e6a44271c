/** Warnings about subscriptions that are billed without benefit, and cancelling them, in a browser without scripts. */
import { describe, expect, test } from 'vitest'
import { startBillingSite } from '../../support/billing-site.ts'

const { api, site, newCustomer } = await startBillingSite()

/** An account with the paid plan. */
async function subscriber() {
  const account = await newCustomer()
  const plan = await account.customer.buy({ plan: 'paid' })
  return { ...account, plan }
}

describe('a billing warning', () => {
  const cancelPath = (id: string) => `/account/subscriptions/${id}/cancel`

  test('offers to cancel add-ons whose plan has ended', async () => {
    const { customer, browser, plan } = await subscriber()
    const addons = await customer.buy({ addons: 2 })
    const before = await browser.open('/account')
    expect([before.data('warning'), before.hasForm(cancelPath(addons))]).toEqual([[], false])
    await customer.play(plan, 'end')
    const account = await browser.open('/account')
    expect(account.data('warning')).toEqual(['unused-addons'])
    const cancelled = await browser.submit(account, cancelPath(addons))
    expect(cancelled.visited).toEqual([`POST ${cancelPath(addons)}`, 'GET /account?done=cancelled'])
    expect([cancelled.notice, cancelled.data('warning')]).toEqual(['cancelled', []])
    expect((await customer.listSandboxSubscriptions()).at(-1)).toMatchObject({ status: 'cancelled' })
    // The form of an outdated page can be submitted again.
    expect((await browser.submit(account, cancelPath(addons))).path).toBe('/account?done=cancelled')
  })

  test('offers to cancel either of two plans', async () => {
    const { customer, browser } = await newCustomer()
    const [first, second] = [
      await customer.openSubscription({ plan: 'paid' }),
      await customer.openSubscription({ plan: 'paid' }),
    ]
    for (const id of [first, second]) await customer.play(id, 'pay')
    const account = await browser.open('/account')
    expect(account.data('warning')).toEqual(['billed-twice'])
    expect(account.form(cancelPath(first)).method).toBe('POST')
    const cancelled = await browser.submit(account, cancelPath(second))
    expect(cancelled.data('warning')).toEqual([])
    expect(cancelled.data('plan-status')).toEqual(['active'])
    const activity = await browser.open('/account/activity?group=plan')
    expect(activity.data('action')).toContain('plan_billed_twice')
  })

  test('offers to cancel a previous plan whose payment is still collected', async () => {
    const { customer, browser, plan } = await subscriber()
    await customer.play(plan, 'fail')
    expect((await browser.open('/account')).data('warning')).toEqual([])
    await api.sql`update users set plan_tier = 'free', plan_status = 'none' where id = ${customer.userId}`
    const account = await browser.open('/account')
    expect(account.data('warning')).toEqual(['earlier-plan'])
    const cancelled = await browser.submit(account, cancelPath(plan))
    expect(cancelled.data('warning')).toEqual([])
    expect((await customer.listSandboxSubscriptions()).at(0)).toMatchObject({ status: 'ended' })
  })

  test('offers to cancel add-ons that renew after the plan was cancelled', async () => {
    const { customer, browser, plan } = await subscriber()
    const addons = await customer.buy({ addons: 1 })
    expect((await browser.open('/account')).data('warning')).toEqual([])
    await customer.play(plan, 'cancel')
    const account = await browser.open('/account')
    expect(account.data('warning')).toEqual(['addons-renew'])
    expect((await browser.submit(account, cancelPath(addons))).data('warning')).toEqual([])
  })

  test('cannot be used by another account, without a sign-in, or by a cross-origin form', async () => {
    const { customer, browser, plan } = await subscriber()
    const other = await newCustomer()
    for (const id of [plan, 'sub_none', '%27']) {
      const page = await other.browser.post(cancelPath(id), {})
      expect([page.status, page.problem]).toEqual([404, 'not_found'])
    }
    expect((await browser.post(cancelPath(plan), {}, { from: 'cross-site' })).status).toBe(403)
    expect((await site.browser().post(cancelPath(plan), {})).path).toBe('/login?next=%2Faccount')
    expect(await customer.listSandboxSubscriptions()).toMatchObject([{ status: 'active' }])
  })
})
