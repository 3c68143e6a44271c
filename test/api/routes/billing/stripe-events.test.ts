/** What Stripe's webhooks do to an account, over HTTP and by its workflow. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { ignoredTypes } from '../../../../providers/billing/event-types.ts'
import { startBillingApiDouble } from '../../../support/billing-api.ts'
import { sendAccepted, startVendorApi, stripeVariables } from '../../../support/billing-deliveries.ts'
import {
  stripeCharge,
  stripeDelivery,
  stripeInvoice,
  stripeRefund,
  stripeSubscription,
} from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { readMetrics } from '../../../support/metrics.ts'
import { eventually } from '../../../support/relays.ts'
import { createCustomer } from '../../../support/sandbox-customers.ts'

await startFakeRelayService()
const double = await startBillingApiDouble()
const api = await startVendorApi({ ...stripeVariables, SVC_STRIPE_API_URL: double.url })

const now = Math.floor(Date.now() / 1000)
const send = (type: string, object: object, created = now) =>
  sendAccepted(api, stripeDelivery(type, object, { id: `evt_${randomUUID()}`, created }))

/** A customer whose one subscription contains the plan and two add-ons. */
async function buyPlanWithAddons() {
  const customer = createCustomer(api, await api.given.user())
  const metadata = { user_id: customer.userId, kind: 'plan' }
  const { items, ...subscription } = stripeSubscription(`sub_${randomUUID().replaceAll('-', '')}`, {}, { metadata })
  const period = { current_period_start: now - 3600, current_period_end: now + 86_400 }
  const data = items.data.flatMap((item) => [
    { ...item, ...period, quantity: 2, price: { ...item.price, id: 'price_addon' } },
    { ...item, ...period },
  ])
  await send('customer.subscription.created', { ...subscription, items: { data } }, now - 3600)
  const plan = (expected: object) =>
    eventually(
      () => customer.fetchSubscription(),
      (own) => Object.entries(expected).every(([name, value]) => own[name as keyof typeof own] === value),
    )
  const invoice = stripeInvoice('in_1', {}, { metadata })
  const parent = { subscription_details: { metadata, subscription: subscription.id } }
  return { plan, invoice: { ...invoice, parent } }
}

test('add-ons in the subscription of the plan count', async () => {
  const { plan } = await buyPlanWithAddons()
  expect(await plan({ plan_tier: 'paid', addons: 2 })).toMatchObject({ subscriptions: [{ kind: 'plan', quantity: 1 }] })
})

test('a refund ends the plan with its add-ons, and one that fails later brings both back', async () => {
  const { plan, invoice } = await buyPlanWithAddons()
  double.answer = ({ path }) =>
    path === '/v1/invoice_payments' ? { json: { object: 'list', data: [{ id: 'inpay_1', invoice }] } } : undefined
  await send('charge.refunded', stripeCharge(), now - 60)
  await plan({ plan_tier: 'free', addons: 0 })
  await send('refund.failed', stripeRefund({ status: 'failed' }))
  await plan({ plan_tier: 'paid', plan_status: 'active', addons: 2 })
})

test('ignored events are counted by their type, and unknown types as other', async () => {
  const counted = async (type: string) =>
    (await readMetrics(api))(`svc_billing_events_ignored_total{provider="stripe",type="${type}"}`) ?? 0
  for (const [type, label] of [
    ['invoice.voided', 'invoice.voided'],
    ['refund.updated', 'refund.updated'],
    ['radar.early_fraud_warning.created', 'other'],
    [`made.up.${randomUUID()}`, 'other'],
  ] as const) {
    const before = await counted(label)
    await send(type, stripeRefund())
    expect(await counted(label)).toBe(before + 1)
  }
})

test('the documentation names each type that is ignored on purpose', async () => {
  const text = await readFile(new URL('../../../../docs/billing.md', import.meta.url), 'utf8')
  const types = Object.values(ignoredTypes).flat()
  expect(types.filter((type) => !text.includes(`\`${type}\``))).toEqual([])
})
