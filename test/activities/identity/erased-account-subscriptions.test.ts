/**
 * What is billed for an account after its erasure is cancelled at the provider: here Stripe, by webhooks and by its
 * list.
 */
import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { reconcile } from '../../../activities/billing/reconciliation.ts'
import { accountDeletionJobs } from '../../../activities/identity/account-deletion-jobs.ts'
import { assignParkedEvents } from '../../../db/transactions/assign-parked-events.ts'
import { createLog } from '../../../platform/log.ts'
import { startBillingApiDouble } from '../../support/billing-api.ts'
import { sendAccepted, stripeVariables } from '../../support/billing-deliveries.ts'
import { createStripeAccount, stripeDelivery, stripeSubscription } from '../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { readMetrics } from '../../support/metrics.ts'

const stripe = await startBillingApiDouble()
const variables = { ...stripeVariables, SVC_STRIPE_API_URL: stripe.url }
// The tests run the jobs themselves.
const { api } = await startFakeRelayService({ worker: false, variables })
const { sql } = api
const { billing } = api.services
const log = createLog('worker', 'silent')

const runJob = async (name: string) =>
  accountDeletionJobs({ sql, log, billing })
    .find((job) => job.name === name)
    ?.run()

/** Lets the time pass until the next attempt, and runs the jobs as workers do. */
async function round() {
  await assignParkedEvents(sql)
  await sql`
    update erased_account_subscriptions set next_attempt_at = now() - interval '1 second' where next_attempt_at is not null`
  await runJob('cancel_erased_subscriptions')
}

async function erasedAccount(): Promise<string> {
  const { userId, password, bearer } = await api.given.user()
  expect((await api.post('/auth/account/delete', { password }, { bearer })).status).toBe(200)
  await sql`update users set deletion_due_at = now(), deletion_attempt_at = now() where id = ${userId}`
  await runJob('delete_accounts')
  expect(await sql`select from users where id = ${userId}`).toHaveLength(0)
  return userId
}

/** A subscription that a payment page sold for the account. */
function sell(userId: string, attributes: object = {}) {
  const id = `sub_${randomUUID().replaceAll('-', '')}`
  const account = createStripeAccount(
    stripeSubscription(id, { ...attributes }, { metadata: { user_id: userId, kind: 'plan' } }),
  )
  stripe.answer = account.answer
  const now = Math.floor(Date.now() / 1000)
  return {
    id,
    state: () => account.subscriptions.get(id),
    set: (changes: object) =>
      account.subscriptions.set(id, { ...stripeSubscription(id), ...account.subscriptions.get(id), ...changes }),
    send: (name = 'created', created = now) =>
      sendAccepted(
        api,
        stripeDelivery(`customer.subscription.${name}`, account.subscriptions.get(id), {
          id: `evt_${randomUUID()}`,
          created,
        }),
      ),
  }
}

const outstanding = async () => (await readMetrics(api))('svc_billing_erased_accounts_billed')
const audited = async (id: string) =>
  (
    await sql`
      select from audit_entries
      where action = 'erased_subscription_cancelled' and initiator = 'system' and detail ->> 'subscription_id' = ${id}`
  ).length
const isCancelled = { cancel_at_period_end: true }

afterEach(() => stripe.recover())

test('a purchase after the erasure is cancelled once, and stands in the audit', async () => {
  const sold = sell(await erasedAccount())
  await sold.send()
  await round()
  expect([sold.state(), await outstanding(), await audited(sold.id)]).toMatchObject([isCancelled, 0, 1])
  await sold.send('updated')
  const from = stripe.requests.length
  await round()
  expect([stripe.requests.length, await audited(sold.id)]).toEqual([from, 1])
})

test('a subscription that is resumed after that is cancelled again', async () => {
  const sold = sell(await erasedAccount())
  await sold.send()
  await round()
  sold.set({ cancel_at_period_end: false })
  await sold.send('updated')
  await round()
  expect([sold.state(), await audited(sold.id)]).toMatchObject([isCancelled, 2])
})

test('a subscription with an unpaid invoice ends at once', async () => {
  const sold = sell(await erasedAccount(), { status: 'past_due' })
  await sold.send('updated')
  await round()
  expect(sold.state()).toMatchObject({ status: 'canceled' })
})

test('what only the list of the provider shows is cancelled too, and is not reported as unknown', async () => {
  const sold = sell(await erasedAccount(), { latest_invoice: null })
  const dry = await reconcile({ sql, log, provider: billing.provider, dryRun: true })
  expect(dry.unknown).toEqual([sold.id])
  await round()
  expect(sold.state()).toMatchObject({ cancel_at_period_end: false })
  expect(await reconcile({ sql, log, provider: billing.provider })).toMatchObject({ listed: 1, unknown: [] })
  await round()
  expect(sold.state()).toMatchObject(isCancelled)
  expect(await reconcile({ sql, log, provider: billing.provider })).toMatchObject({ listed: 1, unknown: [] })
  await round()
  expect(await audited(sold.id)).toBe(1)
})

test('a cancellation that fails is counted, and repeated with a growing delay until it succeeds', async () => {
  const sold = sell(await erasedAccount())
  await sold.send()
  stripe.failWith('status 500')
  for (const seconds of [5, 10, 20]) {
    await round()
    const [row] = await sql<{ delay: number; lastError: string }[]>`
      select extract(epoch from next_attempt_at - now())::float8 as delay, last_error
      from erased_account_subscriptions where subscription_id = ${sold.id}`
    expect(row?.lastError).toBe('stripe answered 500')
    expect(row?.delay).toBeGreaterThan(seconds - 4)
    expect(row?.delay).toBeLessThanOrEqual(seconds)
  }
  expect(await outstanding()).toBe(1)
  stripe.recover()
  await round()
  expect([sold.state(), await outstanding()]).toMatchObject([isCancelled, 0])
})

test('a worker that ends between the cancellation and its record repeats it without harm', async () => {
  const sold = sell(await erasedAccount())
  await sold.send()
  await assignParkedEvents(sql)
  await billing.provider.cancel(sold.id)
  expect(await outstanding()).toBe(1)
  await round()
  expect([sold.state(), await outstanding()]).toMatchObject([isCancelled, 0])
})

test('a subscription that another account owns by now is left alone', async () => {
  const sold = sell(await erasedAccount())
  await sold.send('created', 1_772_400_000)
  const { userId } = await api.given.user()
  sold.set({ metadata: { user_id: userId, kind: 'plan' } })
  await sold.send('updated')
  await round()
  expect([sold.state(), await outstanding(), await audited(sold.id)]).toMatchObject([
    { cancel_at_period_end: false },
    0,
    0,
  ])
})

test('a subscription at a provider that is not in use any more stays counted, with what to do', async () => {
  const userId = await erasedAccount()
  await sql`
    insert into erased_account_subscriptions (provider, subscription_id, account_id) values ('lemonsqueezy', '7', ${userId})`
  await round()
  const [row] = await sql<{ lastError: string }[]>`
    select last_error from erased_account_subscriptions where subscription_id = '7'`
  expect([row?.lastError, await outstanding()]).toEqual([expect.stringContaining('has to be cancelled there'), 1])
  await sql`delete from erased_account_subscriptions where subscription_id = '7'`
})
