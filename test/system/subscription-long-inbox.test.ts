/** Megabytes of events, whose way through Temporal takes most of the time. */
import { beforeAll, expect, test } from 'vitest'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import {
  isPastDue,
  longRelayTimeouts,
  newPaidSubscriber,
  paymentGraceMillis,
  subscriptionHandle,
} from '../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
})

/** The longest id that the sandbox accepts, with four bytes per character. */
const longId = (name: string): string => `${name}${'𝔵'.repeat(90)}`

test('all events of an inbox count that is larger than one message of Temporal', async () => {
  const subscriber = await newPaidSubscriber(service)
  const { userId, subscriptionId } = subscriber
  const failedAt = Date.now() - paymentGraceMillis / 2
  const event = {
    action: 'payment_failed',
    provider: 'sandbox',
    subscriptionId: longId('sub_'),
    kind: 'plan',
    quantity: null,
    amount: null,
    periodStart: null,
    periodEnd: null,
  }
  const { sql } = service.api
  await sql`
    insert into billing_events (provider, event_key, type, action, user_ref, subscription_id, user_id, event, body, status)
    select 'sandbox', key, 'payment.failed', 'payment_failed', ${userId}, ${event.subscriptionId}, ${userId},
      ${sql.json(event)} || jsonb_build_object('key', key, 'at', ${failedAt}::bigint - n, 'invoiceId', ${longId('inv_')} || n), '', 'pending'
    from generate_series(1, 4200) n, lateral (select n || repeat('k', 200) as key) named`
  await subscriber.sendEvent('payment.failed', { subscription_id: subscriptionId, invoice_id: 'inv_2' }, failedAt)
  const plan = await subscriber.waitForPlan(isPastDue)
  expect(plan.paymentGraceEndsAt).toEqual(new Date(failedAt + paymentGraceMillis))
  expect(await sql`select from billing_events where user_id = ${userId} and status = 'pending'`).toHaveLength(0)
  const { events } = await subscriptionHandle(service, subscriber).fetchHistory()
  expect(events?.filter(({ workflowTaskFailedEventAttributes: failed }) => failed)).toEqual([])
})
