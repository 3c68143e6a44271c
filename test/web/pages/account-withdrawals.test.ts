/** Withdrawing from a contract, and the refund in the console, in browsers without scripts. */
import { expect, test } from 'vitest'
import { startBillingSite } from '../../support/billing-site.ts'
import { mailsTo } from '../../support/mails.ts'
import { signedInOperator } from '../../support/operator-console.ts'
import { eventually, operatorPassword } from '../../support/relays.ts'

const { api, site, newCustomer } = await startBillingSite({ SVC_OPERATOR_PASSWORD: operatorPassword })

/** An account with the paid plan. */
async function subscriber() {
  const account = await newCustomer()
  return { ...account, plan: await account.customer.buy({ plan: 'paid' }) }
}

const pathOf = (id: string) => `/account/withdrawals/${id}`

test('a contract is withdrawn from in two steps, with a receipt on the page and by mail', async () => {
  const { customer, browser, plan } = await subscriber()
  const account = await browser.open('/account')
  expect(account.data('contract')).toEqual([plan])
  expect(account.text).toContain('Withdraw from the contract here')
  expect(account.links).toContain(pathOf(plan))
  const question = await browser.open(pathOf(plan))
  expect([question.status, question.name]).toEqual([200, 'account-withdrawal'])
  expect(question.text).toContain('Confirm withdrawal')
  for (const part of ['Paid plan', plan]) expect(question.text).toContain(part)
  expect(question.form(pathOf(plan)).fields).toMatchObject({ email: customer.email, name: '' })
  const done = await browser.submit(question, pathOf(plan), { name: 'Kim Example' })
  expect(done.visited).toEqual([`POST ${pathOf(plan)}`, 'GET /account?done=withdrawn'])
  expect([done.notice, done.data('contract'), done.data('withdrawal').length]).toEqual(['withdrawn', [], 1])
  expect(done.text).toContain(`sent a receipt to ${customer.email}`)
  expect(mailsTo(api, customer.email).map(({ subject }) => subject)).toContain('withdrawal_received')
  // The form of an outdated page, and the page itself, lead to what was received.
  expect((await browser.submit(question, pathOf(plan))).path).toBe('/account?done=withdrawn')
  expect((await browser.open(pathOf(plan))).path).toBe('/account')
  expect((await browser.open('/account/activity?group=plan')).data('action')).toContain('contract_withdrawn')
})

test('an address that can not be written to is refused at its field, and the form keeps its values', async () => {
  const { browser, plan } = await subscriber()
  const refused = await browser.post(pathOf(plan), { name: 'Kim Example', email: 'nowhere' })
  expect([refused.status, refused.problem]).toEqual([400, 'invalid_request'])
  expect(refused.form(pathOf(plan)).fields).toMatchObject({ name: 'Kim Example', email: 'nowhere' })
})

test('contracts that are too old, of others or unknown have no page', async () => {
  const { browser, plan } = await subscriber()
  const other = await newCustomer()
  for (const id of [plan, 'sub_none', '%27']) expect((await other.browser.open(pathOf(id))).status).toBe(404)
  expect((await other.browser.post(pathOf(plan), {})).status).toBe(404)
  expect((await browser.post(pathOf(plan), {}, { from: 'cross-site' })).status).toBe(403)
  await api.sql`update billing_events set occurred_at = now() - interval '16 days' where subscription_id = ${plan}`
  expect((await browser.open('/account')).data('contracts')).toEqual([])
  expect((await browser.open(pathOf(plan))).status).toBe(404)
})

test('an operator refunds a withdrawal in the console with a reason, which ends the plan', async () => {
  const { customer, browser, plan } = await subscriber()
  await browser.submit(await browser.open(pathOf(plan)), pathOf(plan))
  const [row] = await api.sql<{ id: string }[]>`select id from withdrawals where subscription_id = ${plan}`
  const id = row?.id ?? ''
  const operator = await signedInOperator(site)
  const path = `/operator/billing/withdrawals/${id}`
  const list = await operator.open('/operator/billing/withdrawals')
  expect(list.data('withdrawal')).toContain(id)
  expect(list.links).toContain(path)
  const page = await operator.open(path)
  expect(page.data('refunded')).toEqual(['no'])
  const refused = await operator.submit(page, `${path}/refund`)
  expect([refused.status, refused.problem]).toEqual([400, 'reason_required'])
  const refunded = await operator.submit(page, `${path}/refund`, { reason: 'withdrawn in time' })
  expect([refunded.notice, refunded.data('refunded'), refunded.hasForm(`${path}/refund`)]).toEqual([
    'refund',
    ['provider'],
    false,
  ])
  await eventually(
    () => customer.fetchSubscription(),
    ({ plan_tier }) => plan_tier === 'free',
  )
  expect((await operator.open('/operator/billing/withdrawals')).data('withdrawal')).not.toContain(id)
  expect((await operator.open('/operator/billing/withdrawals?state=refunded')).data('withdrawal')).toContain(id)
  expect((await browser.open('/account')).text).toContain('It was refunded on')
})

test('a refund that the provider refuses leaves the task open with the error', async () => {
  const { browser, plan } = await subscriber()
  await browser.submit(await browser.open(pathOf(plan)), pathOf(plan))
  const [row] = await api.sql<{ id: string }[]>`select id from withdrawals where subscription_id = ${plan}`
  await api.sql`delete from sandbox_subscriptions where id = ${plan}`
  const operator = await signedInOperator(site)
  const path = `/operator/billing/withdrawals/${row?.id}`
  const failed = await operator.submit(await operator.open(path), `${path}/refund`, { reason: 'withdrawn in time' })
  expect([failed.status, failed.problem, failed.data('refunded')]).toEqual([502, 'billing_provider_error', ['no']])
  expect(failed.text).toContain('The last refund failed: the sandbox has no such subscription.')
  const marked = await operator.submit(failed, `${path}/mark-refunded`, { reason: 'paid back by hand' })
  expect([marked.notice, marked.data('refunded')]).toEqual(['mark-refunded', ['elsewhere']])
})
