/** Events that require a call to the provider, while its API fails. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { WebhookDelivery } from '../../../../providers/billing/provider.ts'
import type { Answer, GivenUser, TestApi } from '../../../support/api.ts'
import { type EventView, findEvent } from '../../../support/billing.ts'
import { type BillingApiDouble, startBillingApiDouble } from '../../../support/billing-api.ts'
import {
  fetchSubscription,
  lemonSqueezyVariables,
  sendAccepted,
  stripeSubscriptionDelivery,
  stripeVariables,
  waitForPlanStatus,
} from '../../../support/billing-deliveries.ts'
import {
  lemonSqueezyDelivery,
  lemonSqueezyInvoice,
  lemonSqueezySubscription,
  startLemonSqueezyDouble,
} from '../../../support/billing-lemonsqueezy.ts'
import { stripeCharge, stripeDelivery, stripeInvoice, stripeSubscription } from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { suspendJob } from '../../../support/jobs.ts'
import { eventually, operator } from '../../../support/relays.ts'
import { passTime } from '../../../support/subscribers.ts'

let stripe: BillingApiDouble
let lemonSqueezy: BillingApiDouble
let api: TestApi
let lemonSqueezyService: TestApi
beforeAll(async () => {
  stripe = await startBillingApiDouble()
  lemonSqueezy = await startLemonSqueezyDouble()
  api = (await startFakeRelayService({ variables: { ...stripeVariables, SVC_STRIPE_API_URL: stripe.url } })).api
  lemonSqueezyService = (await startFakeRelayService({ variables: lemonSqueezyVariables })).api
})
afterEach(() => {
  stripe.recover()
  lemonSqueezy.recover()
})

const now = Math.floor(Date.now() / 1000)
const hour = 3600

interface Account {
  readonly user: GivenUser
  readonly subscriptionId: string
}

/** An account whose plan was activated some days ago. */
async function paidAccount(): Promise<Account> {
  const user = await api.given.user()
  const subscriptionId = `sub_${randomUUID().replaceAll('-', '')}`
  await send(stripeSubscriptionDelivery('created', subscriptionId, user, now - 72 * hour, { latest_invoice: 'in_1' }))
  await waitForPlanStatus(api, user, 'active')
  return { user, subscriptionId }
}

const send = async (delivery: WebhookDelivery, to: TestApi = api) => await sendAccepted(to, delivery)

/** An invoice that says neither what it is for nor, without metadata, whose it is. */
const invoiceOf = ({ subscriptionId }: Account, id: string, attributes: object = {}, metadata: object = {}) => {
  const details = { subscription: subscriptionId, metadata }
  const parent = { type: 'subscription_details', quote_details: null, subscription_details: details }
  return stripeInvoice(id, { parent, ...attributes }, { price: 'price_of_before' })
}

const newKey = () => `evt_${randomUUID().replaceAll('-', '')}`

/** A refund, of which only Stripe knows what it pays back. Answers its key. */
async function refund(): Promise<string> {
  const id = newKey()
  await send(stripeDelivery('charge.refunded', stripeCharge(), { id, created: now }))
  return id
}

/** What Stripe knows of the account's subscription, and which invoice a charge paid. */
const answer = (
  { user }: Account,
  invoice: object,
  of: object = { metadata: { user_id: user.userId, kind: 'plan' } },
) => {
  stripe.answer = ({ path }) =>
    path === '/v1/invoice_payments'
      ? { json: { object: 'list', has_more: false, data: [{ invoice }] } }
      : { json: stripeSubscription(path.split('/').at(-1) ?? '', {}, of) }
}

const untilEvent = (key: string, isWanted: (event: EventView) => boolean, at: TestApi = api) =>
  eventually(
    () => findEvent(at, key),
    (event) => event !== undefined && isWanted(event),
  )

const replay = (id: string): Promise<Answer<{ event: EventView }>> =>
  api.post<{ event: EventView }>(`/admin/billing/events/${id}/replay`, {}, { headers: operator })

const resolutionJob = 'resolve_billing_events'

/** Lets the delay before the next attempt pass. */
async function attemptNow(key: string, at: TestApi = api): Promise<void> {
  await at.sql`update billing_events set next_attempt_at = now() where event_key = ${key}`
  await at.sql`update jobs set due_at = now() where name = ${resolutionJob}`
}

/** Makes the next attempt the last one. */
async function exhaustAttempts(key: string): Promise<void> {
  await api.sql`update billing_events set attempts = 79 where event_key = ${key}`
  await attemptNow(key)
}

describe('a webhook that needs a request to its provider', () => {
  test('is accepted and stored while the provider fails, and applied once it answers', async () => {
    const account = await paidAccount()
    stripe.failWith('status 500')
    const key = await refund()
    const event = await untilEvent(key, ({ error }) => error !== null)
    expect(event).toMatchObject({ status: 'unresolved', action: 'refund', user_id: null, error: 'stripe answered 500' })
    answer(account, invoiceOf(account, 'in_1'))
    stripe.recover()
    await attemptNow(key)
    expect(await untilEvent(key, ({ status }) => status === 'applied')).toMatchObject({
      user_id: account.user.userId,
      error: null,
    })
    await waitForPlanStatus(api, account.user, 'none')
  })

  test('keeps the plan if it refunds a manual fee', async () => {
    const account = await paidAccount()
    const invoice = invoiceOf(account, 'in_fee', { billing_reason: 'manual' })
    answer(account, invoice)
    const paid = newKey()
    await send(stripeDelivery('invoice.paid', invoice, { id: paid, created: now - hour }))
    const refunded = await refund()
    for (const key of [paid, refunded])
      await untilEvent(key, ({ status, user_id }) => status === 'applied' && user_id === account.user.userId)
    expect(await fetchSubscription(api, account.user)).toMatchObject({ plan_status: 'active' })
  })

  test('is retried with a stored backoff, one attempt at a time', async () => {
    await suspendJob(api.sql, resolutionJob)
    stripe.failWith('status 500')
    const from = stripe.requests.length
    const key = await refund()
    await send(stripeDelivery('charge.refunded', stripeCharge(), { id: key, created: now }))
    /** Times in seconds, by the clock of Postgres. */
    const readAttempts = async () => {
      const [row] = await api.sql<{ attempts: number; receivedAt: number; nextAt: number; now: number }[]>`
        select attempts, extract(epoch from received_at)::float8 as received_at,
          extract(epoch from next_attempt_at)::float8 as next_at, extract(epoch from clock_timestamp())::float8 as now
        from billing_events where event_key = ${key}`
      if (!row) throw new Error('the event is not stored')
      return row
    }
    // The first attempt follows the acceptance, without the job.
    await untilEvent(key, ({ error }) => error !== null)
    const first = await readAttempts()
    expect(first.attempts).toBe(1)
    expect(first.nextAt).toBeGreaterThanOrEqual(first.receivedAt + 5)
    expect(first.nextAt).toBeLessThanOrEqual(first.now + 5)
    await attemptNow(key)
    // A claimed event has a longer delay until its attempt has failed.
    const second = await eventually(readAttempts, (row) => row.attempts > 1 && row.nextAt <= row.now + 10)
    expect(second.attempts).toBe(2)
    expect(second.nextAt).toBeGreaterThanOrEqual(first.now + 10)
    const lookups = stripe.requests.slice(from).filter(({ path }) => path === '/v1/invoice_payments')
    expect(lookups.length).toBeGreaterThanOrEqual(2)
    expect(await api.sql`select from billing_events where event_key = ${key}`).toHaveLength(1)
    await api.sql`delete from billing_events where event_key = ${key}`
  })

  test('is parked with the problem after days of failures, and resolved when an operator replays it', async () => {
    const account = await paidAccount()
    stripe.failWith('status 500')
    const key = await refund()
    await untilEvent(key, ({ error }) => error !== null)
    await exhaustAttempts(key)
    const parked = await untilEvent(key, ({ status }) => status === 'parked')
    expect(parked?.error).toBe('not resolved by the provider in 80 attempts: stripe answered 500')
    expect((await replay(parked?.id ?? '')).body.event).toMatchObject({ status: 'unresolved' })
    answer(account, invoiceOf(account, 'in_1'))
    stripe.recover()
    expect((await replay(parked?.id ?? '')).body.event).toMatchObject({ user_id: account.user.userId })
    await waitForPlanStatus(api, account.user, 'none')
  })

  test('keeps its effect when it is replayed while the provider fails', async () => {
    const account = await paidAccount()
    answer(account, invoiceOf(account, 'in_1'))
    const key = await refund()
    const event = await untilEvent(key, ({ status }) => status === 'applied')
    stripe.failWith('status 500')
    expect((await replay(event?.id ?? '')).status).toBe(503)
    expect(await findEvent(api, key)).toEqual(event)
    expect(await fetchSubscription(api, account.user)).toMatchObject({ plan_status: 'none' })
  })

  test('does not delay other webhooks while the provider hangs', async () => {
    stripe.failWith('nothing')
    const keys = await Promise.all(Array.from({ length: 20 }, refund))
    const user = await api.given.user()
    await send(stripeSubscriptionDelivery('created', `sub_${randomUUID()}`, user, now))
    await waitForPlanStatus(api, user, 'active')
    // Some of them have not been attempted, or are still being attempted.
    const unanswered = await api.sql`
      select from billing_events where event_key = any(${keys}) and status = 'unresolved' and error is null`
    expect(unanswered).not.toHaveLength(0)
    await api.sql`delete from billing_events where event_key = any(${keys})`
  })
})

describe('while the provider fails, a payment that was accepted during the grace period', () => {
  interface Debtor extends Account {
    readonly graceEndsAt: number
  }

  /** An account whose plan is past due for another hour. From now on the provider fails. */
  async function debtor(): Promise<Debtor> {
    const account = await paidAccount()
    const { user, subscriptionId } = account
    const failedAt = Math.floor(Date.now() / 1000) - 47 * hour
    await send(
      stripeSubscriptionDelivery('updated', subscriptionId, user, failedAt, {
        status: 'past_due',
        latest_invoice: 'in_2',
      }),
    )
    await waitForPlanStatus(api, user, 'past_due')
    stripe.failWith('status 500')
    return { ...account, graceEndsAt: (failedAt + 48 * hour) * 1000 }
  }

  /** A payment for a new subscription of the account, which does not say what that is of. Answers its key. */
  async function payForAnother({ user }: Debtor): Promise<string> {
    const key = newKey()
    const invoice = invoiceOf({ user, subscriptionId: `sub_${key}` }, 'in_1', {}, { user_id: user.userId })
    await send(stripeDelivery('invoice.paid', invoice, { id: key, created: now }))
    expect(await untilEvent(key, ({ error }) => error !== null)).toMatchObject({
      status: 'unresolved',
      action: 'payment_recovery',
      user_id: user.userId,
    })
    return key
  }

  const plansHad = async ({ user }: Account) =>
    (
      await api.sql<{ status: string }[]>`
        select detail ->> 'plan_status' as status from audit_entries
        where user_id = ${user.userId} and action = 'plan_changed' order by id`
    ).map(({ status }) => status)

  /** The plan after the 48 hours, once their end was held back. */
  async function planAfterGrace({ user, graceEndsAt }: Debtor) {
    const millis = 2 * hour * 1000
    await passTime(api, user, millis)
    return eventually(
      () => fetchSubscription(api, user),
      ({ plan_tier, grace_ends_at }) =>
        plan_tier === 'free' || Date.parse(grace_ends_at ?? '') > graceEndsAt - millis + 24 * hour * 1000,
    )
  }

  test('applies at once if its subscription is stored', async () => {
    const account = await debtor()
    await send(stripeDelivery('invoice.paid', invoiceOf(account, 'in_2'), { id: newKey(), created: now }))
    await waitForPlanStatus(api, account.user, 'active')
  })

  test('holds back the end of the plan, and applies once the provider answers', async () => {
    const account = await debtor()
    const key = await payForAnother(account)
    expect(await planAfterGrace(account)).toMatchObject({ plan_tier: 'paid', plan_status: 'past_due' })
    answer(account, {})
    stripe.recover()
    await attemptNow(key)
    await waitForPlanStatus(api, account.user, 'active')
    expect(await plansHad(account)).toEqual(['active', 'past_due', 'active'])
  })

  test('stops holding it back once it is for another product or parked', async () => {
    const [other, givenUp] = await Promise.all([debtor(), debtor()])
    const keys = [await payForAnother(other), await payForAnother(givenUp)] as const
    for (const account of [other, givenUp])
      expect(await planAfterGrace(account)).toMatchObject({ plan_tier: 'paid', plan_status: 'past_due' })
    await exhaustAttempts(keys[1])
    await waitForPlanStatus(api, givenUp.user, 'none')
    answer(other, {}, { price: 'price_of_something_else', metadata: {} })
    stripe.recover()
    await attemptNow(keys[0])
    await waitForPlanStatus(api, other.user, 'none')
    expect(await findEvent(api, keys[0])).toMatchObject({ status: 'ignored' })
    expect(await findEvent(api, keys[1])).toMatchObject({ status: 'parked' })
  })
})

test('a payment of Lemon Squeezy before its subscription is stored while requests fail, and then goes to the account', async () => {
  const user = await lemonSqueezyService.given.user()
  lemonSqueezy.failWith('status 500')
  const times = { created_at: '2026-03-01T10:00:00.000000Z', updated_at: '2026-03-01T10:00:30.000000Z' }
  const payment = lemonSqueezyDelivery(
    'subscription_payment_success',
    lemonSqueezyInvoice('901', { subscription_id: 71, ...times }),
  )
  await send(payment, lemonSqueezyService)
  const events = () => lemonSqueezyService.sql<
    { eventKey: string; status: string; userId: string | null; error: string | null }[]
  >`
    select event_key, status, user_id, error from billing_events where type = 'subscription_payment_success'`
  const [unresolved] = await eventually(events, ([event]) => event?.error === 'lemonsqueezy answered 500')
  await send(
    lemonSqueezyDelivery('subscription_created', lemonSqueezySubscription('71', times), user.userId),
    lemonSqueezyService,
  )
  await waitForPlanStatus(lemonSqueezyService, user, 'active')
  // Its kind is known by now, so that Lemon Squeezy need not answer.
  await attemptNow(unresolved?.eventKey ?? '', lemonSqueezyService)
  await eventually(events, ([event]) => event?.status === 'applied' && event.userId === user.userId)
})
