/** Parses Stripe's webhooks. docs/billing.md lists the event types in a table. */
import { z } from 'zod'
import type { ProviderAction, RefundAmount } from '../../domain/billing/event.ts'
import type { SubscriptionKind } from '../../domain/billing/plans.ts'
import type { UnresolvedPart } from '../../domain/billing/received-event.ts'
import {
  createBillingEvent,
  describeIssue,
  type EventFields,
  parseJson,
  parseType,
  rejectTestMode,
  sha256Hex,
  unixTime,
} from './payload.ts'
import type { FindKind, ParsedEvent, ResolvedEvent, WebhookDelivery } from './provider.ts'
import {
  kindFromPrices,
  parseInvoiceReason,
  StripeCharge,
  StripeDispute,
  StripeInvoice,
  type StripePrices,
  StripeRefund,
  StripeSubscription,
  stripeActionFrom,
  stripeEventFieldsFrom,
  userRefFrom,
} from './stripe-shapes.ts'

/** Requests for what events omit. Each rejects with BillingProviderError. */
export interface StripeLookups {
  findSubscription(id: string): Promise<z.infer<typeof StripeSubscription>>
  /** Returns undefined if the payment was not for an invoice. */
  findInvoice(paymentIntentId: string): Promise<z.infer<typeof StripeInvoice> | undefined>
}

interface Deps extends StripePrices {
  readonly acceptsTestMode: boolean
  readonly findKind: FindKind
  /** Null if no requests must be made: events that need one are unresolved. */
  readonly lookups: StripeLookups | null
}

type Unresolved = UnresolvedPart & { readonly userRef: string | null }

type Reading =
  | { readonly fields: Omit<EventFields, 'key' | 'at' | 'provider'>; readonly userRef: string | null }
  | { readonly problem: string; readonly userRef?: string | null }
  | { readonly unresolved: Unresolved }
  | 'ignored'

const Event = z.object({
  type: z.string(),
  created: unixTime,
  livemode: z.boolean().nullish(),
  data: z.object({ object: z.unknown() }),
})

export async function parseStripeEvent(
  delivery: WebhookDelivery,
  deps: Deps & { readonly lookups: StripeLookups },
): Promise<ResolvedEvent>
export async function parseStripeEvent(delivery: WebhookDelivery, deps: Deps): Promise<ParsedEvent>
/** Parses a verified webhook. Rejects only if a function of `deps` does. */
export async function parseStripeEvent({ body }: WebhookDelivery, deps: Deps): Promise<ParsedEvent> {
  const json = parseJson(body) as { id?: unknown; type?: unknown } | null | undefined
  const key = typeof json?.id === 'string' && /^[\x21-\x7e]{1,255}$/.test(json.id) ? json.id : sha256Hex(body)
  const name = { key, type: parseType(json?.type) }
  const { data: envelope, error } = Event.safeParse(json)
  if (error) return { ...name, meaning: 'unusable', problem: describeIssue(error), userRef: null }
  const parsed = toParsedEvent(name, envelope, await readEvent(envelope.type, envelope.data.object, deps))
  return envelope.livemode === false && !deps.acceptsTestMode ? rejectTestMode(parsed, 'livemode') : parsed
}

function toParsedEvent(
  name: { readonly key: string; readonly type: string },
  { created: at, type }: z.infer<typeof Event>,
  reading: Reading,
): ParsedEvent {
  if (reading === 'ignored') return { ...name, meaning: 'ignored' }
  if ('unresolved' in reading) return { ...name, meaning: 'unresolved', ...reading.unresolved }
  const { userRef = null } = reading
  if ('problem' in reading) return { ...name, meaning: 'unusable', problem: reading.problem, userRef }
  return {
    ...name,
    meaning: 'event',
    event: createBillingEvent({ ...reading.fields, key: name.key, at, provider: 'stripe' }),
    userRef,
    ...(hasInvoiceMetadata(type) && { userRefSource: 'invoice' }),
  }
}

/** An invoice has a copy of its subscription's metadata; a charge or a dispute is resolved through its invoice. */
const hasInvoiceMetadata = (type: string): boolean => !type.startsWith('customer.subscription.')

function readEvent(type: string, object: unknown, deps: Deps): Reading | Promise<Reading> {
  switch (type) {
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.paused':
    case 'customer.subscription.resumed':
      return readSubscription(object, deps)
    case 'customer.subscription.deleted':
      return readSubscription(object, deps, 'downgrade')
    case 'invoice.paid':
      return readInvoice(object, 'payment_recovery', deps)
    case 'invoice.payment_failed':
      return readInvoice(object, 'payment_failed', deps)
    case 'charge.refunded':
      return readCharge(object, deps)
    case 'charge.dispute.created':
    case 'charge.dispute.funds_withdrawn':
      return readDispute(object, deps)
    case 'charge.dispute.closed':
    case 'charge.dispute.funds_reinstated':
      return readReturnedMoney(StripeDispute, ['won'], object, deps)
    case 'charge.refund.updated':
    case 'refund.updated':
    case 'refund.failed':
      return readReturnedMoney(StripeRefund, ['failed', 'canceled'], object, deps)
    default:
      // Stripe has hundreds of event types, and a webhook endpoint may receive all of them.
      return 'ignored'
  }
}

function readSubscription(object: unknown, prices: StripePrices, namedAction?: ProviderAction): Reading {
  const { data: subscription, error } = StripeSubscription.safeParse(object)
  if (error) return { problem: `data.object.${describeIssue(error)}` }
  const userRef = userRefFrom(subscription.metadata)
  const kind = kindFromSubscription(subscription, prices)
  // Without our account id in its metadata, the subscription is for another product.
  if (!kind)
    return userRef === null ? 'ignored' : { problem: 'neither the price of the plan nor of the add-on', userRef }
  const action = namedAction ?? stripeActionFrom(subscription)
  if (action === 'ignored') return action
  if (!action) return { problem: 'data.object.status: unknown status', userRef }
  const fields = { ...stripeEventFieldsFrom(subscription, kind, action, prices), subscriptionId: subscription.id, kind }
  if (action !== 'activate' || kind !== 'addon') return { fields, userRef }
  return { fields: { ...fields, action: 'update_addon', invoiceId: null }, userRef }
}

const kindFromSubscription = ({ items, metadata }: z.infer<typeof StripeSubscription>, prices: StripePrices) =>
  kindFromPrices(
    items.data.map(({ price }) => price.id),
    metadata,
    prices,
  )

async function readInvoice(object: unknown, action: ProviderAction, deps: Deps): Promise<Reading> {
  const { data: invoice, error } = StripeInvoice.safeParse(object)
  if (error) return { problem: `data.object.${describeIssue(error)}` }
  const owner = await findInvoicedSubscription(invoice, deps)
  if (!owner) return 'ignored'
  if (owner === 'unresolved') return { unresolved: unresolvedPart(invoice, action) }
  const { userRef, ...subscription } = owner
  const invoiceReason = parseInvoiceReason(invoice.billing_reason)
  const period = action === 'payment_recovery' && invoiceReason !== 'other' ? paidPeriod(invoice) : undefined
  const { start: periodStart = null, end: periodEnd = null } = period ?? {}
  return { fields: { ...subscription, action, invoiceId: invoice.id, invoiceReason, periodStart, periodEnd }, userRef }
}

interface InvoicedSubscription {
  readonly subscriptionId: string
  readonly kind: SubscriptionKind
  readonly userRef: string | null
}

/** Returns undefined if the invoice is for another product. */
async function findInvoicedSubscription(
  invoice: z.infer<typeof StripeInvoice>,
  { lookups, findKind, ...prices }: Deps,
): Promise<InvoicedSubscription | 'unresolved' | undefined> {
  const details = invoice.parent?.subscription_details
  if (!details) return undefined
  const { subscription: subscriptionId, metadata } = details
  const userRef = userRefFrom(metadata)
  const invoicedKind = kindFromPrices(invoice.lines.data.map(priceOf), metadata, prices)
  if (invoicedKind === 'plan' && userRef !== null) return { subscriptionId, kind: invoicedKind, userRef }
  // If `userRef` is null here, the subscription's own events name the account.
  const storedKind = await findKind(subscriptionId)
  // An invoice for add-ons alone may be of a subscription that contains them beside the plan.
  if (storedKind)
    return { subscriptionId, kind: storedKind === 'plan' ? 'plan' : (invoicedKind ?? storedKind), userRef }
  if (invoicedKind && userRef !== null) return { subscriptionId, kind: invoicedKind, userRef }
  if (!lookups) return 'unresolved'
  const subscription = await lookups.findSubscription(subscriptionId)
  const kind = invoicedKind ?? kindFromSubscription(subscription, prices)
  return kind && { subscriptionId, kind, userRef: userRef ?? userRefFrom(subscription.metadata) }
}

const unresolvedPart = ({ parent }: z.infer<typeof StripeInvoice>, action: ProviderAction): Unresolved => ({
  action,
  subscriptionId: parent?.subscription_details?.subscription ?? null,
  userRef: userRefFrom(parent?.subscription_details?.metadata),
})

type Line = z.infer<typeof StripeInvoice>['lines']['data'][number]

const priceOf = ({ pricing }: Line) => pricing?.price_details?.price

/** The latest period on the invoice, without prorations; undefined if it has none. */
const paidPeriod = ({ lines }: z.infer<typeof StripeInvoice>) =>
  lines.data
    .filter(({ parent }) => parent?.subscription_item_details?.proration !== true)
    .map(({ period }) => period)
    .filter(({ start, end }) => start < end)
    .sort((a, b) => b.end - a.end)[0]

async function readCharge(object: unknown, deps: Deps): Promise<Reading> {
  const { data: charge, error } = StripeCharge.safeParse(object)
  if (error) return { problem: `data.object.${describeIssue(error)}` }
  return readRefund(charge.payment_intent, charge.refunded ? 'full' : 'partial', deps)
}

async function readDispute(object: unknown, deps: Deps): Promise<Reading> {
  const { data: dispute, error } = StripeDispute.safeParse(object)
  if (error) return { problem: `data.object.${describeIssue(error)}` }
  // An inquiry of the bank, without a withdrawal of money.
  if (dispute.status.startsWith('warning_')) return 'ignored'
  return readRefund(dispute.payment_intent, 'full', deps)
}

/** A refund that failed and a dispute that was won undo what they did before. */
async function readReturnedMoney(
  shape: typeof StripeDispute | typeof StripeRefund,
  statuses: readonly string[],
  object: unknown,
  deps: Deps,
): Promise<Reading> {
  const { data: returned, error } = shape.safeParse(object)
  if (error) return { problem: `data.object.${describeIssue(error)}` }
  if (!returned.status || !statuses.includes(returned.status)) return 'ignored'
  return readRefund(returned.payment_intent, 'none', deps)
}

async function readRefund(
  paymentIntentId: string | null | undefined,
  amount: RefundAmount,
  deps: Deps,
): Promise<Reading> {
  if (!paymentIntentId) return 'ignored'
  if (!deps.lookups) return { unresolved: { action: 'refund', subscriptionId: null, userRef: null } }
  const invoice = await deps.lookups.findInvoice(paymentIntentId)
  const owner = invoice && (await findInvoicedSubscription(invoice, deps))
  if (!owner || owner === 'unresolved') return 'ignored'
  const { userRef, ...subscription } = owner
  const invoiceReason = parseInvoiceReason(invoice.billing_reason)
  return { fields: { ...subscription, action: 'refund', invoiceId: invoice.id, invoiceReason, amount }, userRef }
}
