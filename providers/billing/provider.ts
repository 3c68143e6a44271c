/**
 * A billing provider: who signed this, what does it say, where does one pay, manage and cancel, and what does the provider
 * itself believe. Everything else about money is the subscription actor's (docs/billing.md).
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { BillingEvent } from '../../domain/billing-event.ts'
import type { UnresolvedPart, UserRefSource } from '../../platform/received-billing-event.ts'

export type BillingProviderName = 'sandbox' | 'lemonsqueezy' | 'stripe'

/** A webhook as it came. */
export interface WebhookDelivery {
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** What names an event, whatever became of its meaning. */
interface ReadEvent {
  /** 1 to 300 printable characters: the same in every repetition, different for every other event. */
  readonly key: string
  /** The provider's own name for what happened, at most 200 characters without controls; empty when it can't be told. */
  readonly type: string
}

/** An event that was read without asking the provider. */
export type ParsedEvent =
  | ResolvedEvent
  /** The provider has to be asked for the rest: {@link BillingProvider.resolve}. */
  | (ReadEvent & { readonly meaning: 'unresolved'; readonly userRef: string | null } & UnresolvedPart)

export type ResolvedEvent = ReadEvent &
  (
    | {
        readonly meaning: 'event'
        readonly event: BillingEvent
        /** Our id of the account, as far as the provider knows it; else the subscription tells whose it is. */
        readonly userRef: string | null
        /** `subscription` unless given. */
        readonly userRefSource?: UserRefSource
      }
    /** Known, and nothing to us. */
    | { readonly meaning: 'ignored' }
    /** Unknown, or not as it should be: kept for an operator, with the reason. */
    | { readonly meaning: 'unusable'; readonly why: string; readonly userRef: string | null }
  )

export interface CheckoutRequest {
  readonly userId: string
  readonly email: string | null
  readonly kind: 'plan' | 'addon'
  /** Add-ons to buy now; 1 for the plan. */
  readonly quantity: number
  /** Where the provider leads people who have paid. */
  readonly returnUrl: string
  /** Where it leads those who leave without. */
  readonly cancelUrl: string
  /** The provider's id of the customer who bought here before, so that cards and invoices stay together. */
  readonly customerId?: string | undefined
}

export interface PortalRequest {
  /** The provider's id of the customer, where it is known. */
  readonly customerId: string | undefined
  /** The account's address, if it is verified. */
  readonly verifiedEmail: string | undefined
  /** Where the provider leads people who are done. */
  readonly returnUrl: string
}

/** The provider's own customer who has a subscription. */
export interface SubscriptionCustomer {
  readonly subscriptionId: string
  readonly customerId: string
}

/** One subscription as the provider has it now, as the billing event that leads to the same state here. */
export interface ListedSubscription {
  readonly userRef: string | null
  /** Its `action` is one of activate, update_addon, cancelled, downgrade, payment_failed; its `key` follows from its content. */
  readonly event: BillingEvent
  readonly customerId?: string | undefined
}

export interface BillingProvider {
  readonly name: BillingProviderName
  /** Whether one of our secrets signed these very bytes, lately where the provider dates its signatures. Never throws. */
  verify(delivery: WebhookDelivery, now: number): boolean
  /** Reads a verified webhook without asking the provider, so that it can be kept first. Rejects only when Postgres does. */
  parse(delivery: WebhookDelivery): Promise<ParsedEvent>
  /** The customer whom a verified webhook about a subscription names. Never throws. */
  customerIn(delivery: WebhookDelivery): SubscriptionCustomer | undefined
  /** Reads it with the provider's answers. Rejects with {@link BillingProviderError} when the provider can't be asked now. */
  resolve(delivery: WebhookDelivery): Promise<ResolvedEvent>
  /** The address of a page where a person pays. Rejects with {@link BillingProviderError}. */
  checkout(request: CheckoutRequest): Promise<string>
  /**
   * The address of a page where this customer manages payments, without a sign-in: it is a secret, and soon expires.
   * Nothing when the provider has no such page for them. Rejects with {@link BillingProviderError}.
   */
  portal(request: PortalRequest): Promise<string | undefined>
  /**
   * Ends a subscription: with the period that is paid, or at once and without further tries to collect when a payment is
   * outstanding. Does nothing to one that has ended or is going to. Rejects with {@link BillingProviderError}.
   */
  cancel(subscriptionId: string): Promise<void>
  /** All subscriptions, or none: rejects with {@link BillingProviderError} rather than answer a part of the list. */
  list(): Promise<ListedSubscription[]>
}

/** The provider did not answer, not in time, or not as documented. */
export class BillingProviderError extends Error {
  override name = 'BillingProviderError'
}
