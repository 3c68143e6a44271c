/** Bodies of webhooks contain names and addresses and are deleted after a while, without an effect on entitlements. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import type { WebhookDelivery } from '../../../../providers/billing/provider.ts'
import type { GivenUser, TestApi } from '../../../support/api.ts'
import { type EventView, fetchEvents } from '../../../support/billing.ts'
import {
  fetchSubscription,
  sendAccepted,
  stripeSubscriptionDelivery,
  stripeVariables,
  waitForPlanStatus,
} from '../../../support/billing-deliveries.ts'
import { stripeDelivery, stripeInvoice, stripeSubscription } from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, operator } from '../../../support/relays.ts'
import { deleteExpiredRows } from '../../../support/retention.ts'

let api: TestApi
beforeAll(async () => {
  api = (await startFakeRelayService({ variables: stripeVariables })).api
})

const now = Math.floor(Date.now() / 1000)
const hour = 3600

const send = (delivery: WebhookDelivery) => sendAccepted(api, delivery)

/** A past-due plan with add-ons, which several events make up. */
async function debtor(): Promise<{ user: GivenUser; subscriptionId: string }> {
  const user = await api.given.user()
  const subscriptionId = `sub_${randomUUID().replaceAll('-', '')}`
  const addons = stripeSubscription(
    `${subscriptionId}_addons`,
    {},
    { price: 'price_addon', quantity: 2, metadata: { user_id: user.userId, kind: 'addon' } },
  )
  const details = { subscription: subscriptionId, metadata: { user_id: user.userId, kind: 'plan' } }
  const parent = { type: 'subscription_details', quote_details: null, subscription_details: details }
  await send(stripeSubscriptionDelivery('created', subscriptionId, user, now - 60 * hour))
  await send(
    stripeDelivery('customer.subscription.created', addons, {
      id: `evt_${subscriptionId}_2`,
      created: now - 59 * hour,
    }),
  )
  const invoice = stripeInvoice(`in_${subscriptionId}`, { parent })
  await send(stripeDelivery('invoice.payment_failed', invoice, { id: `evt_${subscriptionId}_3`, created: now - hour }))
  await waitForPlanStatus(api, user, 'past_due')
  return { user, subscriptionId }
}

const eventsOf = async ({ userId }: GivenUser): Promise<readonly EventView[]> =>
  (await fetchEvents(api)).events.filter(({ user_id }) => user_id === userId)

const untilApplied = (user: GivenUser) =>
  eventually(
    () => eventsOf(user),
    (events) => events.every(({ status }) => status === 'applied'),
  )

const subscriptionsOf = ({ userId }: GivenUser) => api.sql`
  select subscription_id, kind, status, quantity, period_start, period_end from subscriptions
  where user_id = ${userId} order by subscription_id`

/** The entitlement of the account. */
const judgementOf = async (user: GivenUser) => [await fetchSubscription(api, user), await subscriptionsOf(user)]

test('the entitlement is the same after the bodies of events are deleted, also with replays and later events', async () => {
  const { user, subscriptionId } = await debtor()
  await untilApplied(user)
  const before = await judgementOf(user)
  await api.sql`update billing_events set settled_at = settled_at - interval '91 days' where user_id = ${user.userId}`
  await deleteExpiredRows(api)
  expect(await api.sql`select from billing_events where user_id = ${user.userId} and body is not null`).toHaveLength(0)

  const events = await eventsOf(user)
  expect(events).toHaveLength(3)
  for (const event of events) {
    const path = `/admin/billing/events/${event.id}/replay`
    const { status, body } = await api.post<{ event: EventView }>(path, {}, { headers: operator })
    expect([status, { ...body.event, status: 'applied' }]).toEqual([200, event])
  }
  expect(await untilApplied(user)).toEqual(events)
  expect(await judgementOf(user)).toEqual(before)

  const recovered = stripeSubscriptionDelivery('updated', subscriptionId, user, now)
  await send(recovered)
  await waitForPlanStatus(api, user, 'active')
  expect(await fetchSubscription(api, user)).toMatchObject({ plan_tier: 'paid', addons: 2 })
})

test('a webhook is recognised as a repetition after its body was deleted', async () => {
  const user = await api.given.user()
  const delivery = stripeSubscriptionDelivery('created', `sub_${randomUUID()}`, user, now)
  await send(delivery)
  await waitForPlanStatus(api, user, 'active')
  await api.sql`update billing_events set settled_at = settled_at - interval '91 days' where user_id = ${user.userId}`
  await deleteExpiredRows(api)
  const before = await eventsOf(user)
  await send(delivery)
  expect(await eventsOf(user)).toEqual(before)
})
