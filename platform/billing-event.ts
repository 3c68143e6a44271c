/** A provider's event as the billing inbox keeps it: what its adapter read, beside the bytes that it was read from. */
import type { BillingAction, BillingFact, BillingSource } from './billing-fact.ts'

export interface BillingEvent {
  readonly provider: BillingSource
  readonly key: string
  /** The source's own name for what happened. */
  readonly type: string
  /** Our id of the account as the provider names it; null when the event names none, and goes with its subscription. */
  readonly userRef: string | null
  /** Where `userRef` comes from; see {@link UserRefSource}. `subscription` unless given. */
  readonly userRefSource?: UserRefSource
  /** What the actor takes from it; null when it takes nothing. */
  readonly fact: BillingFact | null
  /** Why an event that should say something can't be taken. */
  readonly problem: string | null
  /** Set when the provider has to be asked before there can be a fact. */
  readonly unresolved?: UnresolvedPart | undefined
  /** The bytes as they came; null when there are none, or none any more. */
  readonly body: Buffer | null
}

/**
 * `subscription`: the account that the subscription named at the time of the event. `invoice`: the account that it named when
 * an invoice was made, which may be another one by the time that the invoice is paid.
 */
export type UserRefSource = 'subscription' | 'invoice'

/** What is known of an event before its provider has been asked for the rest. */
export interface UnresolvedPart {
  readonly action: BillingAction
  /** Null when only the provider knows which subscription it is about. */
  readonly subscriptionId: string | null
}
