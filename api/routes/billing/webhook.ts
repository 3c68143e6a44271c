/** Webhooks of the billing provider. An event is stored before the reply; its account's workflow is woken after it. */
import { z } from 'zod'
import { recordCustomers } from '../../../db/billing/customers.ts'
import { createUnresolvedEvents } from '../../../db/transactions/resolve-billing-event.ts'
import { countedType } from '../../../providers/billing/event-types.ts'
import { buildReceivedEvent } from '../../../providers/billing/received-event.ts'
import { resolveEvent } from '../../../providers/billing/resolution.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'

const webhookExamples: OperationExamples = {
  requests: {
    sandbox: {
      summary: 'Sandbox: a plan begins',
      value: {
        type: 'subscription.activated',
        occurred_at: '2026-08-01T18:00:00.000Z',
        data: { user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364', subscription_id: 'sub_1042', kind: 'plan' },
      },
    },
    stripe: {
      summary: 'Stripe: a subscription changes',
      value: {
        id: 'evt_1042',
        type: 'customer.subscription.updated',
        created: 1785607200,
        livemode: false,
        data: { object: { id: 'sub_1042', object: 'subscription', status: 'active' } },
      },
    },
    lemonsqueezy: {
      summary: 'Lemon Squeezy: a subscription changes',
      value: {
        meta: {
          event_name: 'subscription_updated',
          custom_data: { user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364' },
        },
        data: { type: 'subscriptions', id: '1042', attributes: { status: 'active' } },
      },
    },
  },
  replies: { 200: { stored: { summary: 'The event is stored', value: { received: true } } } },
}

export const webhook = route.none({
  id: 'receiveBillingEvent',
  summary: 'Receive an event of the billing provider',
  description:
    "For the configured billing provider. The signature covers the bytes of the body as they are sent, so any content type is accepted. 200 means that the event is stored, also if it is repeated, unknown or of an unknown account; the account's plan follows after the reply. Safe to repeat.\n\n| provider | signature |\n|---|---|\n| sandbox | `webhook-id`, `webhook-timestamp` and `webhook-signature`, as in Standard Webhooks 1.0 |\n| Stripe | `Stripe-Signature` |\n| Lemon Squeezy | `X-Signature` |",
  bytesMax: 256 * 1024,
  answers: { 200: z.object({ received: z.literal(true) }) },
  refuses: ['invalid_signature'],
  optionalHeaders: {
    'webhook-id': 'Sandbox: the unique id of the event.',
    'webhook-timestamp': 'Sandbox: seconds since 1970, at most 300 seconds from the present.',
    'webhook-signature':
      'Sandbox: `v1,` and the HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64. Several signatures are separated by spaces.',
    'Stripe-Signature':
      'Stripe: `t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>" in hexadecimal>`, at most 300 seconds old.',
    'X-Signature': 'Lemon Squeezy: the HMAC-SHA256 of the body in hexadecimal.',
  },
  examples: webhookExamples,
  handle: async ({ headers, bytes }, services) => {
    const { billing, billingMetrics, recordBillingEvent, sql, deliveries, subscriptions } = services
    const { provider } = billing
    if (!provider.verify({ headers, body: bytes }, Date.now())) {
      billingMetrics.countEvent({ provider: provider.name, action: 'none', outcome: 'invalid_signature' })
      throw new Refusal('invalid_signature')
    }
    const parsed = await provider.parse({ headers, body: bytes })
    const received = buildReceivedEvent(provider.name, parsed, bytes)
    const recorded = await recordBillingEvent(received)
    const action = received.event?.action ?? received.unresolved?.action ?? 'none'
    billingMetrics.countEvent({ provider: provider.name, action, outcome: recorded?.status ?? 'repeated' })
    if (recorded?.status === 'ignored')
      billingMetrics.countIgnored({ provider: provider.name, type: countedType(provider.name, received.type) })
    const customer = provider.parseCustomer({ headers, body: bytes })
    if (customer && parsed.meaning === 'event') await recordCustomers(sql, provider.name, [customer])
    for (const userId of recorded?.accounts ?? []) deliveries.signal(() => subscriptions.wake(userId))
    if (recorded?.status === 'unresolved') deliveries.runInBackground(() => resolveAndSignal(recorded.id, services))
    return ok({ received: true })
  },
})

/**
 * Makes the first attempt to resolve a stored event, and wakes the workflows of the changed accounts. A job makes
 * further attempts.
 */
async function resolveAndSignal(id: string, { billing, sql, deliveries, subscriptions }: Services): Promise<void> {
  const deps = { provider: billing.provider, events: createUnresolvedEvents(sql) }
  for (const userId of await resolveEvent({ id, attempts: 0 }, deps))
    deliveries.signal(() => subscriptions.wake(userId))
}
