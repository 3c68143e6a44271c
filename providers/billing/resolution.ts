/**
 * Asks the provider for what kept events leave out. An attempt that fails is repeated with backoff, which the event itself
 * stores, so that any process can make the next one.
 */
import type { ReceivedBillingEvent } from '../../platform/received-billing-event.ts'
import { rebuildBillingEvent } from './inbox-event.ts'
import { type BillingProvider, BillingProviderError } from './provider.ts'

export interface UnresolvedEvent {
  readonly id: string
  /** Attempts that were made before. */
  readonly attempts: number
}

/** The billing inbox, as far as it concerns events that are not resolved. */
export interface UnresolvedEvents {
  /** Takes the event for one attempt; nothing when another process has taken it, or when it is resolved. */
  claim(event: UnresolvedEvent, leaseSeconds: number): Promise<ReceivedBillingEvent | undefined>
  /** Puts what was read in its place. Answers the accounts whose inbox changed. */
  replace(id: string, event: ReceivedBillingEvent): Promise<readonly string[]>
  /** Notes why the attempt failed, and when the next one is due. */
  postpone(id: string, why: string, seconds: number): Promise<void>
}

interface Deps {
  readonly provider: BillingProvider
  readonly events: UnresolvedEvents
}

/** An attempt asks up to three questions of ten seconds each. After this another process may make the next one. */
const attemptSecondsMax = 45
const firstDelaySeconds = 5
const delaySecondsMax = 3600
/** With those delays about three days. */
const attemptsMax = 80

/** Makes one attempt. Answers the accounts whose inbox changed. Rejects only when the inbox can't be read or written. */
export async function resolveEvent(event: UnresolvedEvent, { provider, events }: Deps): Promise<readonly string[]> {
  const kept = await events.claim(event, attemptSecondsMax)
  if (!kept) return []
  const answer = await askProvider(kept, provider)
  if (typeof answer !== 'string') return events.replace(event.id, answer)
  const attempts = event.attempts + 1
  if (attempts >= attemptsMax) {
    const problem = `the provider could not be asked in ${attempts} attempts: ${answer}`
    return events.replace(event.id, { ...kept, unresolved: undefined, problem })
  }
  await events.postpone(event.id, answer, Math.min(delaySecondsMax, firstDelaySeconds * 2 ** (attempts - 1)))
  return []
}

/** The event with the provider's answers, or why there are none. */
async function askProvider(
  kept: ReceivedBillingEvent,
  provider: BillingProvider,
): Promise<ReceivedBillingEvent | string> {
  const { body } = kept
  if (kept.provider !== provider.name || body === null) return `it is of ${kept.provider}, which is not in use`
  try {
    return rebuildBillingEvent(kept, await provider.resolve({ headers: {}, body }), body)
  } catch (error) {
    if (error instanceof BillingProviderError) return error.message
    throw error
  }
}
