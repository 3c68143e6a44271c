/** The subscriptions of an account, what is billed without effect, and cancelling. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type ErrorBody, statusAndCode, type TestApi } from '../../../support/api.ts'
import { billingEvent, sandboxSender } from '../../../support/billing.ts'
import { startBillingApiDouble } from '../../../support/billing-api.ts'
import { sendAccepted, startVendorApi, stripeVariables } from '../../../support/billing-deliveries.ts'
import { createStripeAccount, stripeDelivery, stripeSubscription } from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, operator } from '../../../support/relays.ts'
import { type Customer, createCustomer, newCustomer, type OwnSubscription } from '../../../support/sandbox-customers.ts'

const { api } = await startFakeRelayService()
const double = await startBillingApiDouble()

type Cancelled = Answer<{ readonly subscription: OwnSubscription } & Partial<ErrorBody>>

const cancel = (at: TestApi, { bearer }: { readonly bearer: string }, id: string): Promise<Cancelled> =>
  at.post(`/billing/subscriptions/${id}/cancel`, undefined, { bearer })

const ownOf = async (customer: Customer) => (await customer.fetchSubscription()).subscriptions

const eventTypes = async ({ userId }: Customer) =>
  (await api.sql<{ type: string }[]>`select type from billing_events where user_id = ${userId} order by seq`).map(
    ({ type }) => type,
  )

const audited = async (at: TestApi, { userId }: Customer, action: string) =>
  (
    await at.get<{ entries: { actor: string; action: string; detail: object }[] }>(`/admin/audit?user_id=${userId}`, {
      headers: operator,
    })
  ).body.entries
    .filter((entry) => entry.action === action)
    .map(({ actor, detail }) => [actor, detail])

/** An account whose plan has ended, with two add-ons that go on. */
async function customerWithAddonsOnly() {
  const customer = await newCustomer(api)
  const plan = await customer.buy({ plan: 'paid' })
  const addons = await customer.buy({ addons: 2 })
  await customer.play(plan, 'end')
  return { customer, addons }
}

describe.concurrent('the subscriptions of an account', () => {
  test('are listed with their next date until they end', async () => {
    const customer = await newCustomer(api)
    expect(await ownOf(customer)).toEqual([])
    const plan = await customer.buy({ plan: 'paid' })
    const addons = await customer.buy({ addons: 2 })
    const [planEnd, addonsEnd] = (await customer.listSandboxSubscriptions()).map(({ period_end }) => period_end)
    const good = { billed_without_plan: false, billed_twice: false, ends_at: null, can_cancel: true }
    expect(await ownOf(customer)).toEqual([
      { ...good, subscription_id: plan, kind: 'plan', status: 'active', quantity: 1, renews_at: planEnd },
      { ...good, subscription_id: addons, kind: 'addon', status: 'active', quantity: 2, renews_at: addonsEnd },
    ])
    await customer.play(addons, 'cancel')
    await customer.play(plan, 'fail')
    expect(await ownOf(customer)).toMatchObject([
      { subscription_id: plan, status: 'past_due', renews_at: null, ends_at: null, can_cancel: true },
      { subscription_id: addons, status: 'cancelled', renews_at: null, ends_at: addonsEnd, can_cancel: false },
    ])
    for (const id of [plan, addons]) await customer.play(id, 'end')
    expect(await ownOf(customer)).toEqual([])
  })
})

describe.concurrent('add-ons of a plan that has ended', () => {
  test('are shown as billed without a plan until they are cancelled', async () => {
    const { customer, addons } = await customerWithAddonsOnly()
    expect(await ownOf(customer)).toMatchObject([{ subscription_id: addons, billed_without_plan: true }])
    const answer = await cancel(api, customer, addons)
    expect(statusAndCode(answer)).toEqual([200, undefined])
    expect(answer.body.subscription).toMatchObject({
      subscription_id: addons,
      status: 'cancelled',
      ends_at: expect.any(String),
      billed_without_plan: false,
      can_cancel: false,
    })
    expect(await ownOf(customer)).toEqual([answer.body.subscription])
    expect((await customer.listSandboxSubscriptions()).at(-1)).toMatchObject({
      subscription_id: addons,
      status: 'cancelled',
    })
    expect((await eventTypes(customer)).at(-1)).toBe('subscription.cancelled')
  })

  test('are not shown as billed without a plan while there is another plan', async () => {
    const { customer } = await customerWithAddonsOnly()
    await customer.buy({ plan: 'paid' })
    expect((await ownOf(customer)).map(({ billed_without_plan }) => billed_without_plan)).toEqual([false, false])
  })

  test('are recorded in the audit each time that a plan ends', async () => {
    const { customer } = await customerWithAddonsOnly()
    const entry = ['system', { addons: 2 }]
    expect(await audited(api, customer, 'addons_billed_without_plan')).toEqual([entry])
    const again = await customer.buy({ plan: 'paid' })
    for (const what of ['fail', 'recover', 'cancel', 'resume']) await customer.play(again, what)
    expect(await audited(api, customer, 'addons_billed_without_plan')).toEqual([entry])
    await customer.play(again, 'refund')
    expect(await audited(api, customer, 'addons_billed_without_plan')).toEqual([entry, entry])
  })

  test('do not count as billed if their number is 0', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    const addons = await customer.buy({ addons: 1 })
    await customer.play(addons, 'pay', { quantity: 0 })
    await customer.play(plan, 'end')
    expect(await ownOf(customer)).toMatchObject([{ quantity: 0, billed_without_plan: false }])
    expect(await audited(api, customer, 'addons_billed_without_plan')).toEqual([])
  })
})

describe.concurrent('two plans of one account', () => {
  /** Two checkouts that were open at the same time, and both paid. */
  async function customerWithTwoPlans() {
    const customer = await newCustomer(api)
    const [first, second] = [
      await customer.openSubscription({ plan: 'paid' }),
      await customer.openSubscription({ plan: 'paid' }),
    ]
    for (const id of [first, second]) expect((await customer.play(id, 'pay')).status).toBe(200)
    return { customer, first, second }
  }

  test('are both shown as billed twice until one is cancelled, and recorded in the audit once', async () => {
    const { customer, first, second } = await customerWithTwoPlans()
    expect((await ownOf(customer)).map(({ kind, billed_twice }) => [kind, billed_twice])).toEqual([
      ['plan', true],
      ['plan', true],
    ])
    expect(await audited(api, customer, 'plan_billed_twice')).toEqual([['system', { plans: 2 }]])
    expect((await cancel(api, customer, first)).body.subscription).toMatchObject({
      status: 'cancelled',
      billed_twice: false,
    })
    expect(
      (await ownOf(customer)).map(({ subscription_id, status, billed_twice }) => [
        subscription_id,
        status,
        billed_twice,
      ]),
    ).toEqual(
      expect.arrayContaining([
        [first, 'cancelled', false],
        [second, 'active', false],
      ]),
    )
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
    expect(await audited(api, customer, 'plan_billed_twice')).toHaveLength(1)
  })

  test('exist after buying again while a payment is outstanding, and a cancellation ends the first one at once', async () => {
    const customer = await newCustomer(api)
    const first = await customer.buy({ plan: 'paid' })
    await customer.play(first, 'fail')
    await api.sql`
      update billing_events set event = jsonb_set(event, '{at}', to_jsonb((event ->> 'at')::numeric - 3 * 86400000))
      where user_id = ${customer.userId}`
    await sandboxSender(api).send(
      billingEvent('payment.failed', { user_id: customer.userId, subscription_id: first, invoice_id: 'inv_of_before' }),
    )
    await eventually(
      () => customer.fetchSubscription(),
      ({ plan_tier }) => plan_tier === 'free',
    )
    await customer.buy({ plan: 'paid' })
    const failing = (await ownOf(customer)).find(({ status }) => status === 'past_due')
    expect(failing).toMatchObject({ subscription_id: first, billed_twice: true })
    expect((await cancel(api, customer, first)).body.subscription).toMatchObject({
      status: 'ended',
      billed_twice: false,
    })
    expect(await ownOf(customer)).toMatchObject([{ status: 'active', billed_twice: false }])
  })

  test('do not count as billed twice if one is complimentary or cancelled', async () => {
    const customer = await newCustomer(api)
    const first = await customer.buy({ plan: 'paid' })
    await api.post(`/admin/users/${customer.userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
    await customer.play(first, 'cancel')
    await api.post(`/admin/users/${customer.userId}/grant`, { plan_tier: 'free' }, { headers: operator })
    await customer.buy({ plan: 'paid' })
    expect((await ownOf(customer)).map(({ billed_twice }) => billed_twice)).toEqual([false, false])
    expect(await audited(api, customer, 'plan_billed_twice')).toEqual([])
  })
})

describe.concurrent('a cancellation', () => {
  test('can be repeated, also five times at once', async () => {
    const { customer, addons } = await customerWithAddonsOnly()
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => cancel(api, customer, addons)))
    answers.push(await cancel(api, customer, addons))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(answers.map(({ body }) => body.subscription.status)).toEqual(answers.map(() => 'cancelled'))
    expect((await eventTypes(customer)).filter((type) => type === 'subscription.cancelled')).toHaveLength(1)
  })

  test('is recorded in the audit with the user', async () => {
    const { customer, addons } = await customerWithAddonsOnly()
    for (const _time of [1, 2]) await cancel(api, customer, addons)
    expect(await audited(api, customer, 'subscription_cancelled')).toEqual([
      ['user', { subscription_id: addons, kind: 'addon' }],
    ])
  })

  test('of a subscription whose payment is outstanding ends it at once', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    await customer.play(plan, 'fail')
    expect((await cancel(api, customer, plan)).body.subscription).toMatchObject({ status: 'ended', ends_at: null })
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'free', subscriptions: [] })
  })

  test('of another account’s or an unknown subscription is not found', async () => {
    const { customer: owner, addons } = await customerWithAddonsOnly()
    const other = await newCustomer(api)
    const open = await other.openSubscription({ plan: 'paid' })
    for (const id of [addons, open, 'sub_none', '%00', '%27', 'x'.repeat(300)])
      expect(statusAndCode(await cancel(api, other, id))).toEqual([404, 'not_found'])
    expect(statusAndCode(await api.post(`/billing/subscriptions/${addons}/cancel`))).toEqual([401, 'unauthorized'])
    expect(await ownOf(owner)).toMatchObject([{ status: 'active' }])
  })

  test('that fails at the provider is a provider error and changes nothing', async () => {
    const customer = await newCustomer(api)
    const event = billingEvent('subscription.activated', {
      user_id: customer.userId,
      subscription_id: `sub_${randomUUID()}`,
    })
    await sandboxSender(api).send(event)
    await eventually(
      () => ownOf(customer),
      (own) => own.length === 1,
    )
    const [before] = await ownOf(customer)
    expect(statusAndCode(await cancel(api, customer, before?.subscription_id ?? ''))).toEqual([
      502,
      'billing_provider_error',
    ])
    expect(await ownOf(customer)).toEqual([before])
    expect(await audited(api, customer, 'subscription_cancelled')).toEqual([])
  })

  test('is refused for a subscription of another provider than the configured one', async () => {
    const customer = await newCustomer(api)
    await api.sql`
      insert into subscriptions (provider, subscription_id, kind, user_id, status)
      values ('stripe', 'sub_1', 'plan', ${customer.userId}, 'active')`
    expect(await ownOf(customer)).toMatchObject([{ subscription_id: 'sub_1', can_cancel: false }])
    expect(statusAndCode(await cancel(api, customer, 'sub_1'))).toEqual([502, 'billing_provider_error'])
  })
})

describe('at Stripe', () => {
  let stripe: TestApi
  beforeAll(async () => {
    stripe = await startVendorApi({ ...stripeVariables, SVC_STRIPE_API_URL: double.url })
  })

  test('a cancellation changes the stored subscription only when its webhook arrives', async () => {
    const customer = createCustomer(stripe, await stripe.given.user())
    const of = { price: 'price_addon', quantity: 2, metadata: { user_id: customer.userId, kind: 'addon' } }
    const bought = stripeSubscription('sub_1', { customer: 'cus_7' }, of)
    const account = createStripeAccount(bought)
    double.answer = account.answer
    const now = Math.floor(Date.now() / 1000)
    const sendUpdate = async (id: string, created: number) =>
      sendAccepted(
        stripe,
        stripeDelivery('customer.subscription.updated', account.subscriptions.get('sub_1'), { id, created }),
      )
    await sendUpdate('evt_bought', now - 60)
    await eventually(
      () => ownOf(customer),
      (own) => own.length === 1,
    )
    const answer = await cancel(stripe, customer, 'sub_1')
    expect([answer.status, answer.body.subscription]).toMatchObject([
      200,
      { status: 'active', billed_without_plan: true },
    ])
    expect(account.subscriptions.get('sub_1')).toMatchObject({ cancel_at_period_end: true })
    await sendUpdate('evt_cancelled', now)
    await eventually(
      () => ownOf(customer),
      (own) => own.every(({ status }) => status !== 'active'),
    )
    double.failWith('status 500')
    expect(statusAndCode(await cancel(stripe, customer, 'sub_1'))).toEqual([502, 'billing_provider_error'])
    double.recover()
  })
})
