/** Webhooks of a provider's test mode, where the service takes real money. */
import { beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../../support/api.ts'
import { fetchEvents } from '../../../support/billing.ts'
import { lemonSqueezyVariables, sendAccepted, stripeVariables } from '../../../support/billing-deliveries.ts'
import { lemonSqueezyDelivery, lemonSqueezySubscription } from '../../../support/billing-lemonsqueezy.ts'
import { stripeDelivery, stripeSubscription } from '../../../support/billing-stripe.ts'
import { operatorPassword } from '../../../support/relays.ts'

let stripe: TestApi
let lemonSqueezy: TestApi
beforeAll(async () => {
  const production = { NODE_ENV: 'production', SVC_OPERATOR_PASSWORD: operatorPassword }
  stripe = await startApi({ ...production, ...stripeVariables, SVC_STRIPE_API_KEY: 'sk_live_1' })
  lemonSqueezy = await startApi({ ...production, ...lemonSqueezyVariables })
})

test('a webhook of test mode is parked, and one of live mode is applied', async () => {
  const [atStripe, atLemonSqueezy] = [await stripe.given.user(), await lemonSqueezy.given.user()]
  const ofStripe = (livemode: boolean) => {
    const metadata = { user_id: atStripe.userId, kind: 'plan' }
    const subscription = stripeSubscription(`sub_${livemode}`, { livemode }, { metadata })
    return stripeDelivery('customer.subscription.created', subscription, { id: `evt_${livemode}`, livemode })
  }
  const ofLemonSqueezy = (isTest: boolean) =>
    lemonSqueezyDelivery('subscription_created', lemonSqueezySubscription(isTest ? '1' : '2'), atLemonSqueezy.userId, {
      test_mode: isTest,
    })
  for (const delivery of [ofStripe(false), ofStripe(true)]) await sendAccepted(stripe, delivery)
  for (const delivery of [ofLemonSqueezy(true), ofLemonSqueezy(false)]) await sendAccepted(lemonSqueezy, delivery)
  for (const [api, { userId }, field] of [
    [stripe, atStripe, 'livemode'],
    [lemonSqueezy, atLemonSqueezy, 'meta.test_mode'],
  ] as const) {
    const error = `${field}: test mode is not accepted (SVC_BILLING_TEST_MODE)`
    expect((await fetchEvents(api)).events).toMatchObject([
      { status: 'pending', action: 'activate', user_id: userId },
      { status: 'parked', action: null, user_id: userId, error },
    ])
  }
})
