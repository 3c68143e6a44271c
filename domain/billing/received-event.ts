/** A provider's event as the billing inbox stores it: its normalised form, and the bytes that it was read from. */
import type { BillingEvent, BillingSource, ProviderAction } from './event.ts'

export interface ReceivedBillingEvent {
  readonly provider: BillingSource
  readonly key: string
  /** The provider's own name of the event type. */
  readonly type: string
  /** Our account id as the provider states it; null when the event states none: then its subscription decides. */
  readonly userRef: string | null
  /** Where `userRef` comes from; see {@link UserRefSource}. `subscription` unless given. */
  readonly userRefSource?: UserRefSource
  /** The normalised form, which the subscription workflow applies; null when there is nothing to apply. */
  readonly event: BillingEvent | null
  /** Why a relevant event cannot be used. */
  readonly problem: string | null
  /** Set when the event can only be normalised after a request to its provider. */
  readonly unresolved?: UnresolvedPart | undefined
  /** The bytes as received; null when there are none, or when they were purged. */
  readonly body: Buffer | null
}

/**
 * `subscription`: the account that the subscription named at the time of the event. `invoice`: the account that it
 * named when the invoice was created; the subscription may have another owner when the invoice is paid.
 */
export type UserRefSource = 'subscription' | 'invoice'

/** The parts of an event that are readable without a request to its provider. */
export interface UnresolvedPart {
  readonly action: ProviderAction
  /** Null when only the provider can name the subscription. */
  readonly subscriptionId: string | null
}
