/** Webhooks of the billing provider. An event is stored before the reply; its account's workflow is woken after it. */
import { z } from 'zod'
import { recordCustomers } from '../../../db/billing/customers.ts'
import { createUnresolvedEvents } from '../../../db/transactions/resolve-billing-event.ts'
import { countedType } from '../../../providers/billing/event-types.ts'
import { buildReceivedEvent } from '../../../providers/billing/received-event.ts'
import { resolveEvent } from '../../../providers/billing/resolution.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok, route } from '../../http/route.ts'
import type { Services } from '../../services.ts'

export const webhook = route.none({
  summary: 'Receive an event of the billing provider',
  bytesMax: 256 * 1024,
  answers: { 200: z.object({ received: z.literal(true) }) },
  refuses: ['invalid_signature'],
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

/** Makes the first attempt to resolve a stored event, and wakes the workflows of the changed accounts. A job makes further attempts. */
async function resolveAndSignal(id: string, { billing, sql, deliveries, subscriptions }: Services): Promise<void> {
  const deps = { provider: billing.provider, events: createUnresolvedEvents(sql) }
  for (const userId of await resolveEvent({ id, attempts: 0 }, deps))
    deliveries.signal(() => subscriptions.wake(userId))
}
