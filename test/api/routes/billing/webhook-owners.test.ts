/** A subscription that its provider moves from one account to another. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { WebhookDelivery } from '../../../../providers/billing/provider.ts'
import type { GivenUser } from '../../../support/api.ts'
import {
  fetchSubscription,
  sendAccepted,
  stripeSubscriptionDelivery,
  stripeVariables,
  waitForPlanStatus,
} from '../../../support/billing-deliveries.ts'
import { stripeDelivery, stripeInvoice } from '../../../support/billing-stripe.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, type TestService } from '../../../support/relays.ts'

let service: TestService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: stripeVariables })
})

const now = Math.floor(Date.now() / 1000)
const newSubscriptionId = () => `sub_${randomUUID().replaceAll('-', '')}`

const send = (delivery: WebhookDelivery) => sendAccepted(service.api, delivery)

/** Resolves when no event and no account that lost one waits for a workflow. */
const untilAllApplied = () =>
  eventually(
    () => service.api.sql`
      select id from billing_events where status = 'pending'
      union all select id from users where inbox_changed_at is not null`,
    (waiting) => waiting.length === 0,
  )

const statusesOf = async (users: readonly GivenUser[]) => {
  await untilAllApplied()
  return Promise.all(users.map(async (user) => (await fetchSubscription(service.api, user)).plan_status))
}

describe('a subscription whose metadata name another account', () => {
  test('moves to that account, and the previous account loses the plan', async () => {
    const [first, second] = [await service.api.given.user(), await service.api.given.user()]
    const id = newSubscriptionId()
    await send(stripeSubscriptionDelivery('created', id, first, now - 300))
    await waitForPlanStatus(service.api, first, 'active')
    await send(stripeSubscriptionDelivery('updated', id, second, now - 200))
    await waitForPlanStatus(service.api, second, 'active')
    await waitForPlanStatus(service.api, first, 'none')
    await send(stripeSubscriptionDelivery('deleted', id, second, now - 100, { status: 'canceled' }))
    await waitForPlanStatus(service.api, second, 'none')
    expect(await statusesOf([first, second])).toEqual(['none', 'none'])
  })

  test('has the same owner in every order of arrival', async () => {
    const names = ['created', 'updated', 'paused', 'resumed'] as const
    const orders = [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [1, 0, 3, 2],
      [2, 3, 0, 1],
      [1, 3, 0, 2],
    ]
    for (const order of orders) {
      const users = [await service.api.given.user(), await service.api.given.user()] as const
      const id = newSubscriptionId()
      const owners = [users[0], users[1], users[1], users[0]]
      const deliveries = names.map((name, index) => {
        const status = name === 'paused' ? 'paused' : 'active'
        return stripeSubscriptionDelivery(name, id, owners[index] ?? users[0], now - 1000 + index, { status })
      })
      for (const index of order) await send(deliveries[index] ?? ({} as WebhookDelivery))
      expect(await statusesOf(users), order.join()).toEqual(['active', 'none'])
      const [row] = await service.api.sql`
        select count(distinct user_id)::int as owners from billing_events where subscription_id = ${id}`
      expect(row).toEqual({ owners: 1 })
    }
  })

  test('does not move back because of an earlier invoice', async () => {
    const [first, second] = [await service.api.given.user(), await service.api.given.user()]
    const id = newSubscriptionId()
    await send(stripeSubscriptionDelivery('created', id, first, now - 300))
    await send(stripeSubscriptionDelivery('updated', id, second, now - 200))
    const details = { subscription: id, metadata: { user_id: first.userId, kind: 'plan' } }
    const parent = { type: 'subscription_details', quote_details: null, subscription_details: details }
    const invoice = stripeInvoice(`in_${id}`, { parent })
    await send(stripeDelivery('invoice.paid', invoice, { id: `evt_${id}_paid`, created: now - 100 }))
    expect(await statusesOf([first, second])).toEqual(['none', 'active'])
    await send(stripeSubscriptionDelivery('deleted', id, second, now - 50, { status: 'canceled' }))
    expect(await statusesOf([first, second])).toEqual(['none', 'none'])
  })

  test('has one owner after concurrent events for two accounts', async () => {
    const users = [await service.api.given.user(), await service.api.given.user()] as const
    const ids = Array.from({ length: 8 }, newSubscriptionId)
    await Promise.all(
      ids.flatMap((id) => [
        send(stripeSubscriptionDelivery('created', id, users[0], now - 300)),
        send(stripeSubscriptionDelivery('updated', id, users[1], now - 200)),
      ]),
    )
    expect(await statusesOf(users)).toEqual(['none', 'active'])
  })
})
