/** What the billing provider tells: kept before it is answered, taken by the account's actor behind the answer. */
import { z } from 'zod'
import { keepEvent } from '../db/billing-events.ts'
import { createUnresolvedEvents } from '../db/billing-resolution.ts'
import { buildBillingEvent } from '../providers/billing/inbox-event.ts'
import { resolveEvent } from '../providers/billing/resolution.ts'
import { Refusal } from './refusals.ts'
import { ok, route } from './route.ts'
import type { Services } from './services.ts'

export const webhook = route({
  method: 'POST',
  path: '/billing/webhook',
  summary: "The billing provider's events, with its signature over the raw body. Safe to repeat",
  caller: 'none',
  bytesMax: 256 * 1024,
  answers: { 200: z.object({ received: z.literal(true) }) },
  refuses: ['invalid_signature'],
  handle: async ({ headers, bytes }, services) => {
    const { billing, sql, deliveries, subscriptions } = services
    const { provider } = billing
    if (!provider.verify({ headers, body: bytes }, Date.now())) throw new Refusal('invalid_signature')
    const parsed = await provider.parse({ headers, body: bytes })
    const kept = await keepEvent(sql, buildBillingEvent(provider.name, parsed, bytes))
    for (const userId of kept?.accounts ?? []) deliveries.tell(() => subscriptions.tell(userId))
    if (kept?.status === 'unresolved') deliveries.ask(() => resolveAndSignal(kept.id, services))
    return ok({ received: true })
  },
})

/** Makes the first attempt to resolve a kept event, and wakes the accounts that it concerns. A job makes the others. */
async function resolveAndSignal(id: string, { billing, sql, deliveries, subscriptions }: Services): Promise<void> {
  const deps = { provider: billing.provider, events: createUnresolvedEvents(sql) }
  for (const userId of await resolveEvent({ id, attempts: 0 }, deps)) deliveries.tell(() => subscriptions.tell(userId))
}
