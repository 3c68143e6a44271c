/** The vendors' own events through the front door: what they have in common is tested with the sandbox's. */
import { expect, test } from 'vitest'
import type { WebhookDelivery } from '../../../../providers/billing/provider.ts'
import type { GivenUser, TestApi } from '../../../support/api.ts'
import { fetchEvents } from '../../../support/billing.ts'
import {
  lemonSqueezyConfig,
  lemonSqueezyDelivery,
  lemonSqueezyInvoice,
  lemonSqueezySubscription,
} from '../../../support/billing-lemonsqueezy.ts'
import { stripeConfig, stripeDelivery, stripeInvoice, stripeSubscription } from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually } from '../../../support/relays.ts'
import type { SubscriptionBody } from '../../../support/sandbox-customers.ts'

const { api: lemonSqueezy } = await startFakeRelayService({
  variables: {
    SVC_BILLING_PROVIDER: 'lemonsqueezy',
    SVC_BILLING_WEBHOOK_SECRET: lemonSqueezyConfig.secrets.join(),
    SVC_LEMONSQUEEZY_API_KEY: lemonSqueezyConfig.apiKey,
    SVC_LEMONSQUEEZY_STORE_ID: lemonSqueezyConfig.storeId,
    SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: lemonSqueezyConfig.planVariantId,
    SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: lemonSqueezyConfig.addonVariantId,
  },
})
const { api: stripe } = await startFakeRelayService({
  variables: {
    SVC_BILLING_PROVIDER: 'stripe',
    SVC_BILLING_WEBHOOK_SECRET: stripeConfig.secrets.join(),
    SVC_STRIPE_API_KEY: stripeConfig.apiKey,
    SVC_STRIPE_PLAN_PRICE_ID: stripeConfig.planPriceId,
    SVC_STRIPE_ADDON_PRICE_ID: stripeConfig.addonPriceId,
  },
})

const hour = 3600
const now = Math.floor(Date.now() / 1000)
/** As Lemon Squeezy writes times: of whole seconds. */
const textOf = (seconds: number) => new Date(seconds * 1000).toISOString().replace('.000Z', '.000000Z')

async function send(api: TestApi, { headers, body }: WebhookDelivery): Promise<void> {
  const answer = await fetch(`${api.url}/api/v1/billing/webhook`, {
    method: 'POST',
    headers: headers as Record<string, string>,
    body: new Uint8Array(body),
  })
  expect([answer.status, await answer.json()]).toEqual([200, { received: true }])
}

/** The subscription, once all events of the account are taken. */
async function settled(api: TestApi, { bearer, userId }: GivenUser): Promise<SubscriptionBody> {
  await eventually(
    async () => (await fetchEvents(api)).events.filter(({ user_id }) => user_id === userId),
    (events) => events.length > 0 && events.every(({ status }) => status === 'applied'),
  )
  return (await api.get<SubscriptionBody>('/billing/subscription', { bearer })).body
}

const eventsOf = async (api: TestApi, { userId }: GivenUser) =>
  (await fetchEvents(api)).events.filter(({ user_id }) => user_id === userId)

test('two updates of Lemon Squeezy within one second are both applied, and a repetition a month later is not', async () => {
  const user = await lemonSqueezy.given.user()
  const made = { created_at: textOf(now - hour), renews_at: textOf(now + 700 * hour) }
  const updated = (id: string, attributes: object) =>
    lemonSqueezyDelivery(
      'subscription_updated',
      lemonSqueezySubscription(id, { ...made, updated_at: textOf(now - 60), ...attributes }),
      user.userId,
    )
  const addons = (quantity: number) =>
    updated('8', { variant_id: Number(lemonSqueezyConfig.addonVariantId), first_subscription_item: { quantity } })
  const all = [updated('7', {}), addons(1), addons(2)]
  for (const delivery of all) await send(lemonSqueezy, delivery)
  expect(await settled(lemonSqueezy, user)).toMatchObject({ plan_tier: 'paid', plan_status: 'active', addons: 2 })

  await lemonSqueezy.sql`
    update billing_events set received_at = received_at - interval '30 days' where user_id = ${user.userId}`
  for (const delivery of all) await send(lemonSqueezy, delivery)
  expect(await eventsOf(lemonSqueezy, user)).toHaveLength(all.length)
  expect(await settled(lemonSqueezy, user)).toMatchObject({ addons: 2 })
})

test('a payment of Lemon Squeezy goes to the owner of its subscription', async () => {
  const user = await lemonSqueezy.given.user()
  const bought = lemonSqueezySubscription('9', { created_at: textOf(now - hour), updated_at: textOf(now - hour) })
  await send(lemonSqueezy, lemonSqueezyDelivery('subscription_created', bought, user.userId))
  // What the payment is for stands in the account's subscriptions.
  expect(await settled(lemonSqueezy, user)).toMatchObject({ plan_status: 'active' })
  const invoice = { subscription_id: 9, status: 'pending', updated_at: textOf(now - 60) }
  await send(lemonSqueezy, lemonSqueezyDelivery('subscription_payment_failed', lemonSqueezyInvoice('901', invoice)))
  expect(await settled(lemonSqueezy, user)).toMatchObject({
    plan_status: 'past_due',
    grace_ends_at: new Date((now - 60 + 48 * hour) * 1000).toISOString(),
  })
})

test('repeated failures of one Stripe invoice start one grace period, which ends when it is paid', async () => {
  const user = await stripe.given.user()
  const of = { metadata: { user_id: user.userId, kind: 'plan' } }
  const at = (id: string, created: number) => ({ id: `evt_${id}`, created })
  const invoice = stripeInvoice('in_2', {}, of)
  const bought = stripeSubscription('sub_1', { latest_invoice: 'in_1' }, of)
  await send(stripe, stripeDelivery('customer.subscription.created', bought, at('created', now - 60 * hour)))
  for (const [retry, created] of [now - 30 * hour, now - 20 * hour, now - 10 * hour].entries())
    await send(stripe, stripeDelivery('invoice.payment_failed', invoice, at(`failed_${retry}`, created)))
  expect(await settled(stripe, user)).toMatchObject({
    plan_tier: 'paid',
    plan_status: 'past_due',
    grace_ends_at: new Date((now + 18 * hour) * 1000).toISOString(),
  })
  expect(await eventsOf(stripe, user)).toHaveLength(4)
  await send(stripe, stripeDelivery('invoice.paid', invoice, at('paid', now - hour)))
  expect(await settled(stripe, user)).toMatchObject({ plan_status: 'active', grace_ends_at: null })
})
