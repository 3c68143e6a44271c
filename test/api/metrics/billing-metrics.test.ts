/** The metrics of billing: webhooks and grants, without the names of accounts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { billingEvent, sandboxSender } from '../../support/billing.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { readMetrics } from '../../support/metrics.ts'
import { operator } from '../../support/relays.ts'

const { api } = await startFakeRelayService()
const provider = sandboxSender(api)

/** Returns how much the counter of these events grew. */
async function countIncrease(action: string, outcome: string, act: () => Promise<unknown>, source = 'sandbox') {
  const series = `svc_billing_events_total{provider="${source}",action="${action}",outcome="${outcome}"}`
  const before = (await readMetrics(api))(series) ?? 0
  await act()
  return ((await readMetrics(api))(series) ?? 0) - before
}

test('webhooks are counted by provider, action and outcome', async () => {
  const { userId } = await api.given.user()
  const activation = billingEvent('subscription.activated', { user_id: userId })
  const id = randomUUID()
  expect(await countIncrease('activate', 'pending', () => provider.send(activation, { id }))).toBe(1)
  expect(await countIncrease('activate', 'repeated', () => provider.send(activation, { id }))).toBe(1)
  const unknown = billingEvent('payment.failed', { user_id: randomUUID() })
  expect(await countIncrease('payment_failed', 'parked', () => provider.send(unknown))).toBe(1)
  expect(await countIncrease('none', 'parked', () => provider.send('{"type":"something else"}'))).toBe(1)
  const forged = sandboxSender(api, `whsec_${Buffer.alloc(32, 1).toString('base64')}`)
  expect(await countIncrease('none', 'invalid_signature', () => forged.send(activation))).toBe(1)
})

test('grants and withdrawals of operators are counted', async () => {
  const { userId } = await api.given.user()
  const grant = (plan_tier: string) => () =>
    api.post(`/admin/users/${userId}/grant`, { plan_tier }, { headers: operator })
  expect(await countIncrease('grant', 'pending', grant('paid'), 'operator')).toBe(1)
  expect(await countIncrease('withdraw', 'pending', grant('free'), 'operator')).toBe(1)
})

test('no label contains an account, a subscription or an event key', async () => {
  const { userId } = await api.given.user()
  const event = billingEvent('subscription.activated', { user_id: userId, subscription_id: 'sub_in_no_label' })
  const id = randomUUID()
  await provider.send(event, { id })
  const text = await (await fetch(`${api.url}/metrics`)).text()
  for (const secret of [userId, 'sub_in_no_label', id]) expect(text).not.toContain(secret)
})
