/** A webhook that was read, in the form in which the billing inbox keeps it. */
import type { ReceivedBillingEvent } from '../../platform/received-billing-event.ts'
import type { BillingProviderName, ParsedEvent } from './provider.ts'

/** Of two events the later one counts: one that is dated beyond this would outweigh all that really come after it. */
const aheadMillisMax = 366 * 86_400_000

export function buildBillingEvent(
  provider: BillingProviderName,
  parsed: ParsedEvent,
  body: Buffer,
): ReceivedBillingEvent {
  const { key, type } = parsed
  const bare = { provider, key, type, body, userRef: null, event: null, problem: null }
  if (parsed.meaning === 'ignored') return bare
  const named = { ...bare, userRef: parsed.userRef }
  if (parsed.meaning === 'unusable') return { ...named, problem: parsed.why }
  if (parsed.meaning === 'unresolved') {
    const { action, subscriptionId } = parsed
    return { ...named, unresolved: { action, subscriptionId } }
  }
  if (parsed.event.at > Date.now() + aheadMillisMax) return { ...named, problem: 'is dated more than a year ahead' }
  return { ...named, ...(parsed.userRefSource && { userRefSource: parsed.userRefSource }), event: parsed.event }
}

/**
 * The same for an event that is read again from the bytes that were kept. Its key stays as it was: headers, which may have
 * named it, are not kept.
 */
export function rebuildBillingEvent(
  kept: ReceivedBillingEvent,
  parsed: ParsedEvent,
  body: Buffer,
): ReceivedBillingEvent {
  const read = buildBillingEvent(kept.provider as BillingProviderName, parsed, body)
  return { ...read, key: kept.key, event: read.event && { ...read.event, key: kept.key } }
}
