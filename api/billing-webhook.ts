/** What the billing provider tells: kept before it is answered, taken by the account's actor behind the answer. */
import { z } from 'zod'
import { type BillingEvent, keepEvent } from '../db/billing-events.ts'
import { BillingProviderError, type BillingProviderName, type ParsedEvent } from '../providers/billing/provider.ts'
import { Refusal } from './refusals.ts'
import { ok, route } from './route.ts'

export const webhook = route({
  method: 'POST',
  path: '/billing/webhook',
  summary: "The billing provider's events, with its signature over the raw body. Safe to repeat",
  caller: 'none',
  bytesMax: 256 * 1024,
  answers: { 200: z.object({ received: z.literal(true) }) },
  refuses: ['invalid_signature'],
  handle: async ({ headers, bytes }, { billing, sql, deliveries, subscriptions }) => {
    const { provider } = billing
    if (!provider.verify({ headers, body: bytes }, Date.now())) throw new Refusal('invalid_signature')
    const parsed = await provider.parse({ headers, body: bytes }).catch(tryAgain)
    const kept = await keepEvent(sql, inboxEvent(provider.name, parsed, bytes))
    for (const userId of kept?.accounts ?? []) deliveries.tell(() => subscriptions.tell(userId))
    return ok({ received: true })
  },
})

/** The event can't be understood without asking its provider, who is away: it will send the event again. */
export function tryAgain(error: unknown): never {
  if (error instanceof BillingProviderError)
    throw new Refusal('temporarily_unavailable', undefined, { 'Retry-After': '5' })
  throw error
}

/** Of two things the later one counts: what is dated beyond this would outdo everything that really comes after it. */
const aheadMillisMax = 366 * 86_400_000

/** A parsed webhook as the inbox keeps it. */
export function inboxEvent(provider: BillingProviderName, parsed: ParsedEvent, body: Buffer): BillingEvent {
  const { key, type } = parsed
  const bare = { provider, key, type, body, userRef: null, fact: null, problem: null }
  if (parsed.meaning === 'ignored') return bare
  const told = { ...bare, userRef: parsed.userRef }
  if (parsed.meaning === 'unusable') return { ...told, problem: parsed.why }
  if (parsed.fact.at > Date.now() + aheadMillisMax) return { ...told, problem: 'is dated more than a year ahead' }
  return { ...told, ...(parsed.userRefSource && { userRefSource: parsed.userRefSource }), fact: parsed.fact }
}
