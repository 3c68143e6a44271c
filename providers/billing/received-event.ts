/** A parsed webhook in the form that the billing inbox stores. */
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import type { BillingProviderName, ParsedEvent } from './provider.ts'

/** The latest of several events applies: one with a later date than this would outweigh all real events. */
const aheadMillisMax = 366 * 86_400_000

export function buildReceivedEvent(
  provider: BillingProviderName,
  parsed: ParsedEvent,
  body: Buffer,
): ReceivedBillingEvent {
  const { key, type } = parsed
  const unread = { provider, key, type, body, userRef: null, event: null, problem: null }
  if (parsed.meaning === 'ignored') return unread
  const withUser = { ...unread, userRef: parsed.userRef }
  if (parsed.meaning === 'unusable') return { ...withUser, problem: parsed.problem }
  if (parsed.meaning === 'unresolved') {
    const { action, subscriptionId } = parsed
    return { ...withUser, unresolved: { action, subscriptionId } }
  }
  if (parsed.event.at > Date.now() + aheadMillisMax)
    return { ...withUser, problem: 'is dated more than a year in the future' }
  return { ...withUser, ...(parsed.userRefSource && { userRefSource: parsed.userRefSource }), event: parsed.event }
}

/** Builds an event again from its stored bytes. Keeps its key, which may come from a header; headers are not stored. */
export function rebuildReceivedEvent(
  stored: ReceivedBillingEvent,
  parsed: ParsedEvent,
  body: Buffer,
): ReceivedBillingEvent {
  const rebuilt = buildReceivedEvent(stored.provider as BillingProviderName, parsed, body)
  return { ...rebuilt, key: stored.key, event: rebuilt.event && { ...rebuilt.event, key: stored.key } }
}
