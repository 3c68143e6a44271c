/** The operators' view of what an account pays for, and of its subscription workflow. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { maskEmail } from '../../../../domain/identity/masked-email.ts'
import { startApi, statusAndCode } from '../../../support/api.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { readMetrics } from '../../../support/metrics.ts'
import { eventually, operator } from '../../../support/relays.ts'
import { type Customer, newCustomer } from '../../../support/sandbox-customers.ts'

const { api } = await startFakeRelayService()

const get = <Body extends object>(path: string) => api.get<Body>(`/admin${path}`, { headers: operator })

interface OperatorSubscription {
  readonly subscription_id: string
  readonly status: string
  readonly customer_id: string | null
}

const subscriptionsOf = async ({ userId }: Customer) =>
  (await get<{ subscriptions: readonly OperatorSubscription[] }>(`/users/${userId}/subscriptions`)).body.subscriptions

/** A plan that ends, with add-ons that are still billed. */
async function withAddonsOnly(quantity: number): Promise<Customer> {
  const customer = await newCustomer(api)
  const plan = await customer.buy({ plan: 'paid' })
  await customer.buy({ addons: quantity })
  await customer.play(plan, 'end')
  return customer
}

async function withTwoPlans(): Promise<Customer> {
  const customer = await newCustomer(api)
  const orders = [await customer.openSubscription({ plan: 'paid' }), await customer.openSubscription({ plan: 'paid' })]
  for (const id of orders) await customer.play(id, 'pay')
  return customer
}

describe('the operators’ list of an account’s subscriptions', () => {
  test('includes ended ones, each with the provider’s customer', async () => {
    const customer = await newCustomer(api)
    expect(await subscriptionsOf(customer)).toEqual([])
    const plan = await customer.buy({ plan: 'paid' })
    const addons = await customer.buy({ addons: 2 })
    await customer.play(plan, 'end')
    await api.sql`
      insert into billing_customers (provider, subscription_id, customer_id) values ('sandbox', ${addons}, 'cus_7')`
    const [, { period_end: periodEnd } = { period_end: null }] = await customer.listSandboxSubscriptions()
    const seen = { provider: 'sandbox', period_start: expect.any(String), updated_at: expect.any(String) }
    expect(await subscriptionsOf(customer)).toEqual([
      {
        ...seen,
        subscription_id: addons,
        kind: 'addon',
        status: 'active',
        quantity: 2,
        period_end: periodEnd,
        customer_id: 'cus_7',
      },
      {
        ...seen,
        subscription_id: plan,
        kind: 'plan',
        status: 'ended',
        quantity: 1,
        period_end: expect.any(String),
        customer_id: null,
      },
    ])
  })
})

test('the subscriptions of an unknown account are not found, and are for operators only', async () => {
  for (const id of [randomUUID(), '1'])
    expect(statusAndCode(await get(`/users/${id}/subscriptions`))).toEqual([404, 'not_found'])
  const { userId, bearer } = await newCustomer(api)
  const path = `/admin/users/${userId}/subscriptions`
  expect(statusAndCode(await api.get(path, { bearer }))).toEqual([401, 'invalid_operator'])
})

describe('accounts with unused billing', () => {
  type Accounts = {
    readonly accounts: readonly {
      user_id: string
      masked_email: string | null
      addons_without_plan: number
      billed_plans: number
    }[]
    readonly next_cursor: string | null
  }
  const list = (query: string) => get<Accounts>(`/billing/accounts${query}`)

  test('are counted by gauges and listed by type', async () => {
    const earlier = await readMetrics(api)
    const [idle, twice, good] = [await withAddonsOnly(2), await withTwoPlans(), await newCustomer(api)]
    await good.buy({ plan: 'paid' })
    const metrics = await readMetrics(api)
    for (const [name, more] of [
      ['svc_billing_addons_without_plan', 2],
      ['svc_billing_accounts_with_two_plans', 1],
      ['svc_accounts{plan_tier="paid",plan_status="active"}', 2],
      ['svc_accounts{plan_tier="free",plan_status="none"}', 1],
    ] as const)
      expect([name, metrics(name)]).toEqual([name, (earlier(name) ?? Number.NaN) + more])
    const listed = async (billed: string) => (await list(`?billed=${billed}`)).body.accounts
    const ofIdle = {
      user_id: idle.userId,
      masked_email: maskEmail(idle.email),
      addons_without_plan: 2,
      billed_plans: 0,
    }
    expect(await listed('without_plan')).toContainEqual(ofIdle)
    expect(await listed('twice')).toEqual([
      { user_id: twice.userId, masked_email: maskEmail(twice.email), addons_without_plan: 0, billed_plans: 2 },
    ])
    const [addons] = (await idle.fetchSubscription()).subscriptions
    await api.post(`/billing/subscriptions/${addons?.subscription_id}/cancel`, undefined, { bearer: idle.bearer })
    expect(await listed('without_plan')).not.toContainEqual(ofIdle)
    expect((await readMetrics(api))('svc_billing_addons_without_plan')).toBe(earlier('svc_billing_addons_without_plan'))
  })

  test('are listed with pagination', async () => {
    const apart = await startApi({ SVC_OPERATOR_PASSWORD: 'an operator of these tests' })
    await apart.sql`
      insert into users (email, stream_token_sealed, stream_token_hash, billed_plans)
      select n || '@example.com', 'sealed', sha256(n::text::bytea), 2 from generate_series(1, 120) n`
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = `?billed=twice${cursor ? `&cursor=${cursor}` : ''}`
      const { body }: { body: Accounts } = await apart.get<Accounts>(`/admin/billing/accounts${query}`, {
        headers: operator,
      })
      expect(body.accounts.length).toBeLessThanOrEqual(50)
      seen.push(...body.accounts.map(({ user_id }) => user_id))
      cursor = body.next_cursor
    }
    expect([seen.length, new Set(seen).size]).toEqual([120, 120])
  })

  test.each(['', '?billed=', '?billed=once', '?billed=twice&cursor=1'])(
    'cannot be listed with the query "%s"',
    async (query) => {
      expect(statusAndCode(await list(query))).toEqual([400, 'invalid_request'])
    },
  )

  test('are for operators only', async () => {
    const { bearer } = await newCustomer(api)
    expect(statusAndCode(await api.get('/admin/billing/accounts?billed=twice', { bearer }))).toEqual([
      401,
      'invalid_operator',
    ])
  })
})

test('the gauge of accounts has every plan, also those without an account', async () => {
  const apart = await startApi()
  const metrics = await readMetrics(apart)
  for (const [tier, status] of [
    ['free', 'none'],
    ['paid', 'active'],
    ['paid', 'past_due'],
    ['paid', 'cancelled'],
  ])
    expect(metrics(`svc_accounts{plan_tier="${tier}",plan_status="${status}"}`)).toBe(0)
  await apart.sql`
    insert into users (email, stream_token_sealed, stream_token_hash, plan_tier, plan_status)
    values ('a@example.com', 'sealed', sha256('a'), 'paid', 'past_due')`
  await eventually(
    async () => (await readMetrics(apart))('svc_accounts{plan_tier="paid",plan_status="past_due"}'),
    (count) => count === 1,
  )
})

interface SubscriptionReply {
  readonly entitlement: { readonly plan_tier: string }
  readonly live: Readonly<Record<string, unknown>> | null
  readonly live_missing: string | null
  readonly workflow_id: string
  readonly temporal_ui_url: string
}

describe('the operators’ view of an account’s subscription', () => {
  test('has the entitlement, the snapshot of the workflow, and where to find it', async () => {
    const customer = await newCustomer(api)
    await customer.buy({ plan: 'paid' })
    await customer.buy({ addons: 2 })
    const { body } = await get<SubscriptionReply>(`/users/${customer.userId}/subscription`)
    expect(body.entitlement.plan_tier).toBe('paid')
    expect(body.live).toEqual({
      plan_tier: 'paid',
      plan_status: 'active',
      addons: 2,
      grace_ends_at: null,
      ends_at: null,
      wakes_at: expect.toSatisfy((at: unknown) => at === null || typeof at === 'string'),
    })
    expect(body.live_missing).toBeNull()
    expect(body.workflow_id).toBe(`subscription/${customer.userId}`)
    expect(body.temporal_ui_url).toContain(`/workflows/subscription%2F${customer.userId}`)
  })

  test('is part of the account’s view', async () => {
    const customer = await newCustomer(api)
    await customer.buy({ plan: 'paid' })
    const { entitlement: _, ...workflow } = (await get<SubscriptionReply>(`/users/${customer.userId}/subscription`))
      .body
    const { body } = await get<{ subscription: SubscriptionReply }>(`/users/${customer.userId}`)
    expect(body.subscription).toEqual(workflow)
    expect(body.subscription.live).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
  })

  test('has no snapshot of an account that never had a plan', async () => {
    const { userId } = await api.given.user()
    const { body } = await get<SubscriptionReply>(`/users/${userId}/subscription`)
    expect([body.entitlement.plan_tier, body.live, body.live_missing]).toEqual(['free', null, 'not_running'])
    expect(statusAndCode(await get(`/users/${randomUUID()}/subscription`))).toEqual([404, 'not_found'])
  })
})
