/** Webhooks of a provider's test mode, where the service takes real money. */
import { beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../support/api.ts'
import { eventPage } from '../../support/billing.ts'
import { accepted, lemonSqueezyVariables, sendDelivery, stripeVariables } from '../../support/billing-deliveries.ts'
import { aDelivery, aSubscription } from '../../support/billing-lemonsqueezy.ts'
import { aStripeDelivery, aStripeSubscription } from '../../support/billing-stripe.ts'
import { operatorPassword } from '../../support/relays.ts'

let stripe: TestApi
let lemonSqueezy: TestApi
beforeAll(async () => {
  const production = { NODE_ENV: 'production', SVC_OPERATOR_PASSWORD: operatorPassword }
  stripe = await startApi({ ...production, ...stripeVariables, SVC_STRIPE_API_KEY: 'sk_live_1' })
  lemonSqueezy = await startApi({ ...production, ...lemonSqueezyVariables })
})

test('a webhook of test mode is accepted and parked for operators, and one of live mode counts', async () => {
  const [atStripe, atLemonSqueezy] = [await stripe.given.user(), await lemonSqueezy.given.user()]
  const ofStripe = (livemode: boolean) => {
    const metadata = { user_id: atStripe.userId, kind: 'plan' }
    const subscription = aStripeSubscription(`sub_${livemode}`, { livemode }, { metadata })
    return aStripeDelivery('customer.subscription.created', subscription, { id: `evt_${livemode}`, livemode })
  }
  const ofLemonSqueezy = (isTest: boolean) =>
    aDelivery('subscription_created', aSubscription(isTest ? '1' : '2'), atLemonSqueezy.userId, { test_mode: isTest })
  for (const delivery of [ofStripe(false), ofStripe(true)])
    expect(await sendDelivery(stripe, delivery)).toEqual(accepted)
  for (const delivery of [ofLemonSqueezy(true), ofLemonSqueezy(false)])
    expect(await sendDelivery(lemonSqueezy, delivery)).toEqual(accepted)
  for (const [api, { userId }, field] of [
    [stripe, atStripe, 'livemode'],
    [lemonSqueezy, atLemonSqueezy, 'meta.test_mode'],
  ] as const) {
    const error = `${field}: is of test mode, which is not accepted here`
    expect((await eventPage(api)).events).toMatchObject([
      { status: 'pending', action: 'activate', user_id: userId },
      { status: 'parked', action: null, user_id: userId, error },
    ])
  }
})
