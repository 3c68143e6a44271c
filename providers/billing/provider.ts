/**
 * The common interface of the billing providers: verifies and parses webhooks, opens pages for payment and management,
 * cancels and lists subscriptions. What an account is entitled to is decided by its subscription workflow
 * (docs/billing.md).
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { BillingEvent, BillingSource } from '../../domain/billing/event.ts'
import type { SubscriptionKind } from '../../domain/billing/plans.ts'
import type { UnresolvedPart, UserRefSource } from '../../domain/billing/received-event.ts'

export type BillingProviderName = Exclude<BillingSource, 'operator'>

/** A webhook request, before any parsing. */
export interface WebhookDelivery {
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

interface EventName {
  /**
   * 1 to 300 printable characters: identical in every repetition of the event, and unique among the provider's events.
   */
  readonly key: string
  /**
   * The provider's name of the event type, at most 200 characters without controls; empty if it is missing or unusable.
   */
  readonly type: string
}

/** A webhook that was parsed without a request to the provider. */
export type ParsedEvent =
  | ResolvedEvent
  /** The rest requires a request to the provider: {@link BillingProvider.resolve}. */
  | (EventName & { readonly meaning: 'unresolved'; readonly userRef: string | null } & UnresolvedPart)

export type ResolvedEvent = EventName &
  (
    | {
        readonly meaning: 'event'
        readonly event: BillingEvent
        /** Our account id as the provider states it; if null, the subscription's other events name the account. */
        readonly userRef: string | null
        /** `subscription` unless given. */
        readonly userRefSource?: UserRefSource
      }
    /** A known event type that does not concern this service. */
    | { readonly meaning: 'ignored' }
    /** An unknown event type or an invalid payload, parked for an operator. */
    | { readonly meaning: 'unusable'; readonly problem: string; readonly userRef: string | null }
  )

/** Returns the kind of a subscription according to earlier events; undefined if there are none. */
export type FindKind = (subscriptionId: string) => Promise<SubscriptionKind | undefined>

export interface CheckoutRequest {
  readonly userId: string
  readonly email: string | null
  readonly kind: SubscriptionKind
  /** Number of add-ons to buy; 1 for the plan. */
  readonly quantity: number
  /** The page to open after the payment. */
  readonly returnUrl: string
  /** The page to open if the checkout is cancelled. */
  readonly cancelUrl: string
  /** The provider's customer id from an earlier purchase, so that cards and invoices stay together. */
  readonly customerId?: string | undefined
}

export interface PortalRequest {
  /** The provider's customer id, if known. */
  readonly customerId: string | undefined
  /** The account's address, if it is verified. */
  readonly verifiedEmail: string | undefined
  /** The page to open afterwards. */
  readonly returnUrl: string
}

/** The provider's customer who owns a subscription. */
export interface SubscriptionCustomer {
  readonly subscriptionId: string
  readonly customerId: string
}

/** The present state of one subscription, as the billing event that leads to the same state here. */
export interface ListedSubscription {
  readonly userRef: string | null
  /**
   * The `action` is activate, update_addon, cancelled, downgrade or payment_failed; the `key` is a hash of the content.
   */
  readonly event: BillingEvent
  readonly customerId?: string | undefined
}

export interface BillingProvider {
  readonly name: BillingProviderName
  /**
   * Whether one of the webhook secrets signed these bytes, and recently if the signature has a timestamp. Never throws.
   * @param now milliseconds since 1970.
   */
  verify(delivery: WebhookDelivery, now: number): boolean
  /**
   * Parses a verified webhook without a request to the provider, so that it can be stored first. Rejects only if
   * Postgres does.
   */
  parse(delivery: WebhookDelivery): Promise<ParsedEvent>
  /** Returns the customer in a verified webhook about a subscription. Never throws. */
  parseCustomer(delivery: WebhookDelivery): SubscriptionCustomer | undefined
  /** Parses a verified webhook with requests to the provider. Rejects with {@link BillingProviderError}. */
  resolve(delivery: WebhookDelivery): Promise<ResolvedEvent>
  /** Returns the URL of a payment page. Rejects with {@link BillingProviderError}. */
  checkout(request: CheckoutRequest): Promise<string>
  /**
   * Returns the URL of a page where the customer manages payments without a sign-in: a secret that expires soon.
   * Undefined if the provider has no such page for the customer. Rejects with {@link BillingProviderError}.
   */
  portal(request: PortalRequest): Promise<string | undefined>
  /**
   * Ends a subscription with its paid period. One with an outstanding payment ends at once, without further attempts to
   * collect it. No effect on a subscription that has ended or is cancelled. Rejects with {@link BillingProviderError}.
   */
  cancel(subscriptionId: string): Promise<void>
  /**
   * Ends a subscription at once and refunds in full what was paid for it. Safe to repeat, also after it has failed in
   * part. The webhooks of the provider bring the result. Rejects with {@link BillingProviderError}.
   */
  refund(subscriptionId: string): Promise<void>
  /** Returns all subscriptions, never a part of them: rejects with {@link BillingProviderError} instead. */
  list(): Promise<ListedSubscription[]>
  /**
   * Reads something with the configured credentials. Rejects with {@link BillingProviderError} when they do not work.
   */
  check(): Promise<void>
}

/** The provider gave no response, none in time, or an undocumented one. */
export class BillingProviderError extends Error {
  override name = 'BillingProviderError'
}
