/** Withdrawals from contracts, and their refund by an operator. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { eraseAccount } from '../../../../db/transactions/erase-account.ts'
import { type Answer, type ErrorBody, statusAndCode, type TestApi } from '../../../support/api.ts'
import { startBillingApiDouble } from '../../../support/billing-api.ts'
import {
  lemonSqueezyVariables,
  sendAccepted,
  startVendorApi,
  stripeVariables,
} from '../../../support/billing-deliveries.ts'
import { lemonSqueezyDelivery, lemonSqueezySubscription } from '../../../support/billing-lemonsqueezy.ts'
import { createStripeAccount, stripeDelivery, stripeSubscription } from '../../../support/billing-stripe.ts'
import { highLimits } from '../../../support/environment.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { mailsTo } from '../../../support/mails.ts'
import { readMetrics } from '../../../support/metrics.ts'
import { eventually, operator } from '../../../support/relays.ts'
import { type Customer, createCustomer, newCustomer } from '../../../support/sandbox-customers.ts'

interface Contract {
  readonly subscription_id: string
  readonly purchased_at: string
  readonly withdraw_until: string
  readonly form_url: string | null
}

interface Withdrawal {
  readonly id: string
  readonly subscription_id: string
  readonly received_at: string
  readonly receipt_email: string | null
  readonly refunded_at: string | null
  readonly refunded: string | null
  readonly refund_error: string | null
}

interface Withdrawals {
  readonly contracts: readonly Contract[]
  readonly withdrawals: readonly Withdrawal[]
}

type OneWithdrawal = Answer<{ readonly withdrawal: Withdrawal } & Partial<ErrorBody>>

const { api } = await startFakeRelayService({ variables: { SVC_RATE_LIMITS: highLimits({}) } })

const listOf = async ({ bearer }: { readonly bearer: string }, at: TestApi = api): Promise<Withdrawals> =>
  (await at.get<Withdrawals>('/billing/withdrawals', { bearer })).body

const withdraw = (
  { bearer }: { readonly bearer: string },
  id: string,
  parts: object = {},
  at: TestApi = api,
): Promise<OneWithdrawal> => at.post('/billing/withdrawals', { subscription_id: id, ...parts }, { bearer })

const act = (name: 'refund' | 'mark-refunded', id: string, at: TestApi = api): Promise<OneWithdrawal> =>
  at.post(`/admin/billing/withdrawals/${id}/${name}`, { reason: 'ticket 4711' }, { headers: operator })

const openIds = async (at: TestApi = api): Promise<readonly string[]> =>
  (
    await at.get<{ withdrawals: readonly Withdrawal[] }>('/admin/billing/withdrawals', { headers: operator })
  ).body.withdrawals.map(({ id }) => id)

const actionsOf = async ({ userId }: Customer, at: TestApi = api): Promise<readonly string[]> =>
  (
    await at.sql<{ action: string }[]>`
      select action from audit_entries where user_id = ${userId} and action like '%withdr%' order by id`
  ).map(({ action }) => action)

async function subscriber() {
  const customer = await newCustomer(api)
  return { customer, plan: await customer.buy({ plan: 'paid' }) }
}

/** Moves the purchase into the past. */
const ageContract = (subscriptionId: string, hours: number) => api.sql`
  update billing_events set occurred_at = now() - make_interval(hours => ${hours}) where subscription_id = ${subscriptionId}`

describe.concurrent('a contract', () => {
  test('can be withdrawn from until the end of the 14th day after its purchase, wherever the buyer is', async () => {
    const { customer, plan } = await subscriber()
    const [contract] = (await listOf(customer)).contracts
    expect(contract).toMatchObject({ subscription_id: plan, kind: 'plan', quantity: 1, form_url: null })
    const purchased = Date.parse(contract?.purchased_at ?? '')
    expect(Math.abs(purchased - Date.now())).toBeLessThan(60_000)
    expect(Date.parse(contract?.withdraw_until ?? '') - purchased).toBe(15 * 86_400_000)
    await ageContract(plan, 15 * 24 - 1)
    expect((await listOf(customer)).contracts).toHaveLength(1)
    await ageContract(plan, 15 * 24 + 1)
    expect((await listOf(customer)).contracts).toEqual([])
    expect(statusAndCode(await withdraw(customer, plan))).toEqual([409, 'not_withdrawable'])
    expect(await listOf(customer)).toEqual({ contracts: [], withdrawals: [] })
  })

  test('that a provider lists in the middle of a period was bought at the beginning of that period', async () => {
    const { customer, plan } = await subscriber()
    await api.sql`
      update billing_events set event = event || jsonb_build_object('periodStart', ${Date.now() - 20 * 86_400_000}::bigint)
      where subscription_id = ${plan}`
    expect((await listOf(customer)).contracts).toEqual([])
  })

  test('is each subscription by itself, with add-ons and cancelled ones, and without ended and granted ones', async () => {
    const { customer, plan } = await subscriber()
    const addons = await customer.buy({ addons: 2 })
    await customer.play(addons, 'cancel')
    await api.post(`/admin/users/${customer.userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
    expect((await listOf(customer)).contracts).toMatchObject([
      { subscription_id: addons, kind: 'addon', quantity: 2 },
      { subscription_id: plan, kind: 'plan' },
    ])
    await customer.play(addons, 'end')
    expect((await listOf(customer)).contracts).toMatchObject([{ subscription_id: plan }])
    expect(statusAndCode(await withdraw(customer, addons))).toEqual([404, 'not_found'])
  })

  test('of another account, or an unknown one, is not found', async () => {
    const { plan } = await subscriber()
    const other = await newCustomer(api)
    for (const id of [plan, 'sub_none', 'grant'])
      expect(statusAndCode(await withdraw(other, id))).toEqual([404, 'not_found'])
  })
})

describe.concurrent('a withdrawal', () => {
  test('is recorded once with its receipt, however often and at the same time it is sent', async () => {
    const { customer, plan } = await subscriber()
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => withdraw(customer, plan, { name: 'Kim Example' })),
    )
    const [first] = answers
    for (const answer of answers) expect([answer.status, answer.body]).toEqual([200, first?.body])
    const { contracts, withdrawals } = await listOf(customer)
    expect([contracts, withdrawals]).toEqual([[], [first?.body.withdrawal]])
    expect(withdrawals).toMatchObject([{ subscription_id: plan, receipt_email: customer.email, refunded_at: null }])
    const mails = mailsTo(api, customer.email).filter(({ subject }) => subject === 'withdrawal_received')
    expect(mails).toMatchObject([{ link: `${api.services.config.siteUrl}/account` }])
    expect(await actionsOf(customer)).toEqual(['contract_withdrawn'])
    // Until the refund the customer has what was paid for.
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
  })

  test('sends its receipt to another address when it is given one, and needs none', async () => {
    const { customer, plan } = await subscriber()
    const email = `${randomUUID()}@example.com`
    expect((await withdraw(customer, plan, { email })).body.withdrawal.receipt_email).toBe(email)
    expect(mailsTo(api, email)).toMatchObject([{ subject: 'withdrawal_received' }])
    const without = await subscriber()
    await api.sql`update users set email = null, email_verified_at = null where id = ${without.customer.userId}`
    const answer = await withdraw(without.customer, without.plan)
    expect([answer.status, answer.body.withdrawal.receipt_email]).toEqual([200, null])
  })

  test('refuses names of several lines', async () => {
    const { customer, plan } = await subscriber()
    for (const name of ['a\nb', '', 'x'.repeat(201)])
      expect(statusAndCode(await withdraw(customer, plan, { name }))).toEqual([400, 'invalid_request'])
  })

  test('is in the export of its account, and stays without the person when the account is erased', async () => {
    const { customer, plan } = await subscriber()
    const { body } = await withdraw(customer, plan, { name: 'Kim Example' })
    const exported = await api.get<{ tables: { withdrawals: readonly object[] } }>('/auth/account/export', customer)
    expect(exported.body.tables.withdrawals).toMatchObject([{ subscription_id: plan, name: 'Kim Example' }])
    await act('refund', body.withdrawal.id)
    await eventually(
      () => customer.fetchSubscription(),
      ({ plan_tier }) => plan_tier === 'free',
    )
    await api.sql`
      update users set deletion_due_at = now(), deletion_attempt_at = now() where id = ${customer.userId}`
    await eventually(
      () => eraseAccount(api.sql, customer.userId),
      ({ type }) => type === 'erased',
    )
    const [row] = await api.sql`
      select user_id, name, email, subscription_id from withdrawals where id = ${body.withdrawal.id}`
    expect(row).toEqual({ userId: null, name: null, email: null, subscriptionId: plan })
  })
})

describe.concurrent('an operator', () => {
  test('refunds a withdrawal at the provider, whose webhook ends the plan', async () => {
    const { customer, plan } = await subscriber()
    const { id } = (await withdraw(customer, plan)).body.withdrawal
    expect(await openIds()).toContain(id)
    const refunded = await act('refund', id)
    expect(refunded).toMatchObject({ status: 200, body: { withdrawal: { refunded: 'provider', refund_error: null } } })
    expect((await customer.listSandboxSubscriptions()).at(-1)).toMatchObject({ status: 'ended' })
    await eventually(
      () => customer.fetchSubscription(),
      ({ plan_tier }) => plan_tier === 'free',
    )
    expect(await openIds()).not.toContain(id)
    expect((await listOf(customer)).withdrawals).toMatchObject([{ id, refunded_at: expect.any(String) }])
    // A second click changes nothing.
    for (const name of ['refund', 'mark-refunded'] as const)
      expect((await act(name, id)).body.withdrawal).toEqual(refunded.body.withdrawal)
    expect(await actionsOf(customer)).toEqual(['contract_withdrawn', 'withdrawal_refunded'])
    const [entry] = await api.sql`
      select initiator, detail from audit_entries where user_id = ${customer.userId} and action = 'withdrawal_refunded'`
    expect(entry).toMatchObject({ initiator: 'operator', detail: { withdrawal_id: id, reason: 'ticket 4711' } })
  })

  test('marks a withdrawal as refunded that was refunded elsewhere', async () => {
    const { customer, plan } = await subscriber()
    const { id } = (await withdraw(customer, plan)).body.withdrawal
    expect((await act('mark-refunded', id)).body.withdrawal).toMatchObject({ refunded: 'elsewhere' })
    expect((await customer.listSandboxSubscriptions()).at(-1)).toMatchObject({ status: 'active' })
    const { body } = await api.get<{ withdrawals: readonly Withdrawal[] }>(
      '/admin/billing/withdrawals?state=refunded',
      { headers: operator },
    )
    expect(body.withdrawals.map((withdrawal) => withdrawal.id)).toContain(id)
  })

  test('can not refund a withdrawal of a provider that is no longer in use, and marks it', async () => {
    const { customer, plan } = await subscriber()
    const { id } = (await withdraw(customer, plan)).body.withdrawal
    await api.sql`update withdrawals set provider = 'stripe' where id = ${id}`
    expect(statusAndCode(await act('refund', id))).toEqual([502, 'billing_provider_error'])
    expect((await act('mark-refunded', id)).status).toBe(200)
  })

  test('finds no withdrawal that does not exist', async () => {
    for (const name of ['refund', 'mark-refunded'] as const)
      expect(statusAndCode(await act(name, randomUUID()))).toEqual([404, 'not_found'])
  })
})

// It changes the mailer that concurrent tests share, so it runs by itself.
test('a withdrawal is not recorded when its receipt can not be', async () => {
  const { customer, plan } = await subscriber()
  const { mailer } = api.services
  const send = mailer.send
  Object.assign(mailer, { send: () => Promise.reject(new Error('the outbox fails')) })
  const failed = await withdraw(customer, plan).finally(() => Object.assign(mailer, { send }))
  expect([failed.status, (await listOf(customer)).withdrawals, await actionsOf(customer)]).toEqual([500, [], []])
  expect((await withdraw(customer, plan)).status).toBe(200)
})

test('without withdrawals in the configuration none is offered or taken', async () => {
  const { api: without } = await startFakeRelayService({ variables: { SVC_WITHDRAWAL: 'false' } })
  const customer = await newCustomer(without)
  const plan = await customer.buy({ plan: 'paid' })
  expect((await listOf(customer, without)).contracts).toEqual([])
  expect(statusAndCode(await withdraw(customer, plan, {}, without))).toEqual([409, 'not_withdrawable'])
})

describe('at Stripe', () => {
  let vendor: TestApi
  let double: Awaited<ReturnType<typeof startBillingApiDouble>>

  beforeAll(async () => {
    double = await startBillingApiDouble()
    vendor = await startVendorApi({ ...stripeVariables, SVC_STRIPE_API_URL: double.url })
  })

  test('a refund that fails leaves the withdrawal open with the error, until a later one succeeds', async () => {
    const customer = createCustomer(vendor, await vendor.given.user())
    const metadata = { user_id: customer.userId, kind: 'plan' }
    const now = Math.floor(Date.now() / 1000)
    const id = `sub_${randomUUID().replaceAll('-', '')}`
    const subscription = stripeSubscription(id, { created: now }, { metadata })
    const [item] = subscription.items.data
    Object.assign(item ?? {}, { current_period_start: now, current_period_end: now + 2_592_000 })
    const account = createStripeAccount(subscription)
    double.answer = account.answer
    await sendAccepted(vendor, stripeDelivery('customer.subscription.created', subscription, { created: now }))
    await eventually(
      () => listOf(customer, vendor),
      ({ contracts }) => contracts.length === 1,
    )
    const withdrawal = (await withdraw(customer, id, {}, vendor)).body.withdrawal
    double.failWith('status 500', ({ path }) => path === '/v1/refunds')
    const failed = await act('refund', withdrawal.id, vendor)
    expect(statusAndCode(failed)).toEqual([502, 'billing_provider_error'])
    expect(failed.body.error?.message).toContain('stripe answered 500')
    expect(await openIds(vendor)).toContain(withdrawal.id)
    expect((await readMetrics(vendor))('svc_billing_withdrawals_open')).toBe(1)
    const [row] = await vendor.sql`select refund_error from withdrawals where id = ${withdrawal.id}`
    expect(row?.refundError).toBe('stripe answered 500')
    double.recover()
    expect((await act('refund', withdrawal.id, vendor)).body.withdrawal).toMatchObject({
      refunded: 'provider',
      refund_error: null,
    })
    expect([account.subscriptions.get(id)?.status, account.refunds]).toEqual(['canceled', [`pi_of_in_of_${id}`]])
    expect(await actionsOf(customer, vendor)).toEqual([
      'contract_withdrawn',
      'withdrawal_refund_failed',
      'withdrawal_refunded',
    ])
  })
})

test('where the provider is the seller, its form is linked and no withdrawal is taken', async () => {
  const form = 'https://seller.example/withdrawal'
  const vendor = await startVendorApi({ ...lemonSqueezyVariables, SVC_WITHDRAWAL_URL: form })
  const customer = createCustomer(vendor, await vendor.given.user())
  const id = String(Date.now())
  const at = new Date(Date.now() - 60_000).toISOString()
  const renewsAt = new Date(Date.now() + 30 * 86_400_000).toISOString()
  const bought = lemonSqueezySubscription(id, { created_at: at, updated_at: at, renews_at: renewsAt })
  await sendAccepted(vendor, lemonSqueezyDelivery('subscription_created', bought, customer.userId))
  const { contracts } = await eventually(
    () => listOf(customer, vendor),
    (listed) => listed.contracts.length === 1,
  )
  expect(contracts).toMatchObject([{ subscription_id: id, form_url: form }])
  expect(statusAndCode(await withdraw(customer, id, {}, vendor))).toEqual([409, 'not_withdrawable'])
})
