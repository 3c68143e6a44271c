import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { billingEvent, sandboxSender } from '../../support/billing.ts'
import { readMetrics } from '../../support/metrics.ts'
import { operator, paperRelays, startService } from '../../support/relays.ts'

const { api } = await startService({ around: paperRelays().around })
const provider = sandboxSender(api)

/** How much the counter of these events grew. */
async function counted(action: string, outcome: string, act: () => Promise<unknown>, source = 'sandbox') {
  const series = `svc_billing_events_total{provider="${source}",action="${action}",outcome="${outcome}"}`
  const before = (await readMetrics(api))(series) ?? 0
  await act()
  return ((await readMetrics(api))(series) ?? 0) - before
}

test('events are counted by provider, action and what became of them when they came', async () => {
  const { userId } = await api.given.user()
  const activation = billingEvent('subscription.activated', { user_id: userId })
  const id = randomUUID()
  expect(await counted('activate', 'pending', () => provider.send(activation, { id }))).toBe(1)
  expect(await counted('activate', 'repeated', () => provider.send(activation, { id }))).toBe(1)
  const unknown = billingEvent('payment.failed', { user_id: randomUUID() })
  expect(await counted('payment_failed', 'parked', () => provider.send(unknown))).toBe(1)
  expect(await counted('none', 'parked', () => provider.send('{"type":"something else"}'))).toBe(1)
  const forged = sandboxSender(api, `whsec_${Buffer.alloc(32, 1).toString('base64')}`)
  expect(await counted('none', 'invalid_signature', () => forged.send(activation))).toBe(1)
})

test('what operators give and take is counted too', async () => {
  const { userId } = await api.given.user()
  const grant = (plan_tier: string) => () =>
    api.post(`/admin/users/${userId}/grant`, { plan_tier }, { headers: operator })
  expect(await counted('grant', 'pending', grant('paid'), 'operator')).toBe(1)
  expect(await counted('withdraw', 'pending', grant('free'), 'operator')).toBe(1)
})

test('no label holds an account, a subscription or a key', async () => {
  const { userId } = await api.given.user()
  const event = billingEvent('subscription.activated', { user_id: userId, subscription_id: 'sub_of_nobody_else' })
  const id = randomUUID()
  await provider.send(event, { id })
  const text = await (await fetch(`${api.url}/metrics`)).text()
  for (const secret of [userId, 'sub_of_nobody_else', id]) expect(text).not.toContain(secret)
})
