/**
 * Requests the missing parts of stored events from the provider. The backoff of failed attempts is stored with the
 * event, so that any process can make the next attempt.
 */
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import { type BillingProvider, BillingProviderError } from './provider.ts'
import { rebuildReceivedEvent } from './received-event.ts'

export interface UnresolvedEvent {
  readonly id: string
  /** The number of earlier attempts. */
  readonly attempts: number
}

/** The part of the billing inbox that holds unresolved events. */
export interface UnresolvedEventStore {
  /** Reserves the event for one attempt; undefined if another process has reserved it, or if it is resolved. */
  claim(event: UnresolvedEvent, leaseSeconds: number): Promise<ReceivedBillingEvent | undefined>
  /** Replaces the stored event. Returns the accounts whose inbox changed. */
  replace(id: string, event: ReceivedBillingEvent): Promise<readonly string[]>
  /** Stores the problem and the time of the next attempt. */
  postpone(id: string, problem: string, seconds: number): Promise<void>
}

interface Deps {
  readonly provider: BillingProvider
  readonly events: UnresolvedEventStore
}

/**
 * An attempt makes up to three requests of ten seconds each. After this time another process may make the next attempt.
 */
const attemptSecondsMax = 45
const firstDelaySeconds = 5
const delaySecondsMax = 3600
/** With these delays, attempts continue for about three days. */
const attemptsMax = 80

/** Makes one attempt. Returns the accounts whose inbox changed. Rejects only if the inbox cannot be read or written. */
export async function resolveEvent(event: UnresolvedEvent, { provider, events }: Deps): Promise<readonly string[]> {
  const stored = await events.claim(event, attemptSecondsMax)
  if (!stored) return []
  const { resolved, problem } = await requestMissingParts(stored, provider)
  if (resolved) return events.replace(event.id, resolved)
  const attempts = event.attempts + 1
  if (attempts >= attemptsMax) {
    const lastProblem = `not resolved by the provider in ${attempts} attempts: ${problem}`
    return events.replace(event.id, { ...stored, unresolved: undefined, problem: lastProblem })
  }
  await events.postpone(event.id, problem, Math.min(delaySecondsMax, firstDelaySeconds * 2 ** (attempts - 1)))
  return []
}

type Attempt =
  | { readonly resolved: ReceivedBillingEvent; readonly problem?: never }
  | { readonly resolved?: never; readonly problem: string }

async function requestMissingParts(stored: ReceivedBillingEvent, provider: BillingProvider): Promise<Attempt> {
  const { body } = stored
  if (stored.provider !== provider.name || body === null)
    return { problem: `the event is from ${stored.provider}, which is not the configured provider` }
  try {
    return { resolved: rebuildReceivedEvent(stored, await provider.resolve({ headers: {}, body }), body) }
  } catch (error) {
    if (error instanceof BillingProviderError) return { problem: error.message }
    throw error
  }
}
