/** The sandbox: outcomes of subscriptions, and the webhooks that they send. */
import { beforeAll, describe, expect, test } from 'vitest'
import { startApi, statusAndCode, type TestApi } from '../../../support/api.ts'
import { waitForPlanStatus } from '../../../support/billing-deliveries.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { startService } from '../../../support/relays.ts'
import { type Customer, newCustomer } from '../../../support/sandbox-customers.ts'

let api: TestApi
beforeAll(async () => {
  api = (await startFakeRelayService()).api
})

const statusAndOutcomes = async (customer: Customer) => {
  const [{ status, outcomes } = { status: '', outcomes: [] }] = await customer.listSandboxSubscriptions()
  return [status, outcomes]
}

/** Kinds of all events that were taken of the account, in order. */
const eventsOf = async ({ userId }: Customer): Promise<string[]> =>
  (await api.sql<{ type: string }[]>`select type from billing_events where user_id = ${userId} order by seq`).map(
    ({ type }) => type,
  )

describe.concurrent('an outcome of a subscription', () => {
  test('depends on its status and sends one webhook', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.openSubscription({ plan: 'paid' })
    expect(await statusAndOutcomes(customer)).toEqual(['open', ['pay']])
    const steps = [
      ['pay', 'active', ['pay', 'fail', 'cancel', 'refund', 'end']],
      ['fail', 'past_due', ['fail', 'recover', 'cancel', 'end']],
      ['recover', 'active', ['pay', 'fail', 'cancel', 'refund', 'end']],
      ['cancel', 'cancelled', ['resume', 'refund', 'end']],
      ['resume', 'active', ['pay', 'fail', 'cancel', 'refund', 'end']],
      ['end', 'ended', []],
    ] as const
    for (const [what, status, outcomes] of steps) {
      const { body } = await customer.play(plan, what)
      expect(body.subscription).toMatchObject({ subscription_id: plan, kind: 'plan', quantity: 1, status, outcomes })
      expect(await statusAndOutcomes(customer)).toEqual([status, outcomes])
    }
    expect(await eventsOf(customer)).toEqual([
      'subscription.activated',
      'payment.failed',
      'payment.recovered',
      'subscription.cancelled',
      'subscription.activated',
      'subscription.downgraded',
    ])
  })

  test('that is not possible is refused and sends no webhook', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.openSubscription({ plan: 'paid' })
    for (const what of ['fail', 'recover', 'cancel', 'resume', 'refund', 'end'])
      expect(statusAndCode(await customer.play(plan, what))).toEqual([409, 'invalid_transition'])
    expect(await statusAndOutcomes(customer)).toEqual(['open', ['pay']])
    expect(await eventsOf(customer)).toEqual([])
  })

  test('has changed the account when the reply is sent, unless that takes three seconds', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
    for (const [what, status] of [
      ['fail', 'past_due'],
      ['recover', 'active'],
      ['cancel', 'cancelled'],
      ['resume', 'active'],
      ['refund', 'none'],
    ] as const) {
      const began = performance.now()
      await customer.playOnce(plan, what)
      if (performance.now() - began > 3000) await waitForPlanStatus(api, customer, status)
      expect([what, (await customer.fetchSubscription()).plan_status]).toEqual([what, status])
    }
  })

  test('`pay` renews an active subscription from the end of its period', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    const { renews_at: first } = await customer.fetchSubscription()
    await customer.play(plan, 'pay')
    const { renews_at: second } = await customer.fetchSubscription()
    const days = (Date.parse(second ?? '') - Date.parse(first ?? '')) / 86_400_000
    expect(days).toBeGreaterThanOrEqual(28)
    expect(days).toBeLessThanOrEqual(31)
  })

  test('`pay` changes the number of add-ons', async () => {
    const customer = await newCustomer(api)
    await customer.buy({ plan: 'paid' })
    const addons = await customer.buy({ addons: 1 })
    for (const quantity of [3, 2, 0]) {
      expect((await customer.play(addons, 'pay', { quantity })).body.subscription).toMatchObject({ quantity })
      expect(await customer.fetchSubscription()).toMatchObject({ addons: quantity })
    }
    for (const quantity of [4, -1, 1.5, '2'])
      expect(statusAndCode(await customer.play(addons, 'pay', { quantity }))).toEqual([400, 'invalid_request'])
  })

  test('is accepted for one of two concurrent requests', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    const answers = await Promise.all([customer.play(plan, 'cancel'), customer.play(plan, 'cancel')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    expect((await eventsOf(customer)).filter((type) => type === 'subscription.cancelled')).toHaveLength(1)
  })
})

describe.concurrent('five concurrent requests', () => {
  const five = <Result>(send: () => Promise<Result>) => Promise.all(Array.from({ length: 5 }, send))
  const refused = [409, 'invalid_transition']
  const oneOfFive = [[200, undefined], ...Array.from({ length: 4 }, () => refused)]
  const outcomes = (answers: readonly Parameters<typeof statusAndCode>[0][]) => answers.map(statusAndCode).sort()

  test('pay an open subscription once', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.openSubscription({ plan: 'paid' })
    expect(outcomes(await five(() => customer.play(plan, 'pay')))).toEqual(oneOfFive)
    expect(await eventsOf(customer)).toEqual(['subscription.activated'])
    const [paid] = await customer.listSandboxSubscriptions()
    expect(Date.parse(paid?.period_end ?? '')).toBeLessThan(Date.now() + 32 * 86_400_000)
  })

  test.each([
    ['pay', []],
    ['fail', []],
    ['recover', ['fail']],
    ['cancel', []],
    ['resume', ['cancel']],
    ['refund', []],
    ['end', []],
  ] as const)('play %s once', async (what, before) => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    for (const step of before) await customer.play(plan, step)
    const count = (await eventsOf(customer)).length
    expect(outcomes(await five(() => customer.play(plan, what)))).toEqual(oneOfFive)
    expect(await eventsOf(customer)).toHaveLength(count + 1)
  })

  test('change the number of add-ons once, without a renewal', async () => {
    const customer = await newCustomer(api)
    const addons = await customer.buy({ addons: 1 })
    const [bought] = await customer.listSandboxSubscriptions()
    expect(outcomes(await five(() => customer.play(addons, 'pay', { quantity: 3 })))).toEqual(oneOfFive)
    expect(await eventsOf(customer)).toEqual(['subscription.activated', 'addon.updated'])
    expect(await customer.listSandboxSubscriptions()).toMatchObject([{ quantity: 3, period_end: bought?.period_end }])
  })
})

describe.concurrent('a request with a version of the subscription', () => {
  const versionOf = async (customer: Customer) => (await customer.listSandboxSubscriptions())[0]?.version

  test('is refused once the subscription has changed', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.openSubscription({ plan: 'paid' })
    const version = await versionOf(customer)
    expect(statusAndCode(await customer.play(plan, 'pay', { version }))).toEqual([200, undefined])
    for (let count = 1; count <= 4; count += 1)
      expect(statusAndCode(await customer.play(plan, 'pay', { version }))).toEqual([409, 'invalid_transition'])
    expect(await eventsOf(customer)).toEqual(['subscription.activated'])
  })

  test('changes the present version and returns the next one', async () => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    const { body } = await customer.play(plan, 'pay', { version: await versionOf(customer) })
    expect(body.subscription.version).toBe(await versionOf(customer))
    expect((await customer.play(plan, 'cancel', { version: body.subscription.version })).status).toBe(200)
  })

  test.each(['', 'then', 7, null])('%j is not the version of a subscription', async (version) => {
    const customer = await newCustomer(api)
    const plan = await customer.buy({ plan: 'paid' })
    const answer = await customer.play(plan, 'cancel', { version })
    expect(statusAndCode(answer)[0]).toBeGreaterThanOrEqual(400)
    expect(statusAndCode(answer)[0]).toBeLessThan(500)
    expect(await eventsOf(customer)).toEqual(['subscription.activated'])
  })
})

describe.concurrent('another account’s subscription', () => {
  test('is not listed and not found, like an unknown one', async () => {
    const [owner, other] = [await newCustomer(api), await newCustomer(api)]
    const plan = await owner.buy({ plan: 'paid' })
    expect(await other.listSandboxSubscriptions()).toEqual([])
    const answers = [
      await other.play(plan, 'refund'),
      await other.play('sub_of-nobody', 'refund'),
      await owner.play(plan, 'explode'),
      await owner.play('%27', 'refund'),
    ]
    expect(answers.map(statusAndCode)).toEqual(answers.map(() => [404, 'not_found']))
    expect(await owner.fetchSubscription()).toMatchObject({ plan_status: 'active' })
  })

  test('requires a bearer token', async () => {
    const owner = await newCustomer(api)
    const plan = await owner.openSubscription({ plan: 'paid' })
    const path = '/billing/sandbox/subscriptions'
    expect(statusAndCode(await api.get(path))).toEqual([401, 'unauthorized'])
    expect(statusAndCode(await api.post(`${path}/${plan}/pay`))).toEqual([401, 'unauthorized'])
  })
})

test.concurrent('a webhook that is not accepted is a provider error, and the outcome remains', async () => {
  // It listens at a port of the system's choice, and its sandbox sends to the one that was configured: to none.
  const elsewhere = await startApi({ PORT: '0' })
  const customer = await newCustomer(elsewhere)
  const plan = await customer.openSubscription({ plan: 'paid' })
  expect(statusAndCode(await customer.play(plan, 'pay'))).toEqual([502, 'billing_provider_error'])
  expect(await statusAndOutcomes(customer)).toMatchObject(['active', {}])
  expect(await customer.fetchSubscription()).toMatchObject({ plan_tier: 'free', manage_url: null })
})

test.concurrent('without a worker the reply is sent all the same, and the event is stored', async () => {
  const { api: alone } = await startService({ worker: false })
  const customer = await newCustomer(alone)
  const plan = await customer.openSubscription({ plan: 'paid' })
  expect((await customer.playOnce(plan, 'pay')).status).toBe(200)
  const kept = await alone.sql`select status from billing_events where user_id = ${customer.userId}`
  expect(kept.map(({ status }) => status)).toEqual(['pending'])
})
