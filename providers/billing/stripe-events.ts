/** Stripe's webhooks: what each event says to us. docs/billing.md has the same as a table. */
import { z } from 'zod'
import type { BillingEvent, ProviderAction } from '../../domain/billing-event.ts'
import type { UnresolvedPart } from '../../platform/received-billing-event.ts'
import { billingEventFrom, readJson, refuseTestMode, sha256, timeSeconds, typeOf, whyNot } from './payload.ts'
import type { ParsedEvent, ResolvedEvent, WebhookDelivery } from './provider.ts'
import {
  invoiceReasonOf,
  kindOfPrices,
  StripeCharge,
  StripeDispute,
  StripeInvoice,
  type StripePrices,
  StripeSubscription,
  stripeActionOf,
  stripeSnapshotOf,
  userOf,
} from './stripe-shapes.ts'

/** What events leave out. Each rejects with BillingProviderError when Stripe can't be asked. */
export interface StripeAnswers {
  subscription(id: string): Promise<z.infer<typeof StripeSubscription>>
  /** Of a payment; nothing when it was for no invoice. */
  invoiceOf(paymentIntentId: string): Promise<z.infer<typeof StripeInvoice> | undefined>
}

interface Needs extends StripePrices {
  readonly acceptsTestMode: boolean
  /** What we know of a subscription, before Stripe is asked. */
  readonly kindOf: (subscriptionId: string) => Promise<'plan' | 'addon' | undefined>
  /** Null when Stripe is not to be asked: what it would have to be asked for is unresolved. */
  readonly answers: StripeAnswers | null
}

type Unresolved = UnresolvedPart & { readonly userRef: string | null }

type Reading =
  | { readonly event: Omit<BillingEvent, 'key' | 'at' | 'provider'>; readonly userRef: string | null }
  | { readonly why: string; readonly userRef?: string | null }
  | { readonly unresolved: Unresolved }
  /** Known, and nothing to us. */
  | 'ignored'

const Event = z.object({
  type: z.string(),
  created: timeSeconds,
  livemode: z.boolean().nullish(),
  data: z.object({ object: z.unknown() }),
})

export async function parseStripeEvent(
  delivery: WebhookDelivery,
  needs: Needs & { readonly answers: StripeAnswers },
): Promise<ResolvedEvent>
export async function parseStripeEvent(delivery: WebhookDelivery, needs: Needs): Promise<ParsedEvent>
/** Reads a verified webhook. Rejects only as the answers of `needs` do. */
export async function parseStripeEvent({ body }: WebhookDelivery, needs: Needs): Promise<ParsedEvent> {
  const json = readJson(body) as { id?: unknown; type?: unknown } | null | undefined
  const key = typeof json?.id === 'string' && /^[\x21-\x7e]{1,255}$/.test(json.id) ? json.id : sha256(body)
  const named = { key, type: typeOf(json?.type) }
  const { data: delivered, error } = Event.safeParse(json)
  if (error) return { ...named, meaning: 'unusable', why: whyNot(error), userRef: null }
  const parsed = parsedAs(named, delivered, await read(delivered.type, delivered.data.object, needs))
  return delivered.livemode === false && !needs.acceptsTestMode ? refuseTestMode(parsed, 'livemode') : parsed
}

function parsedAs(
  named: { readonly key: string; readonly type: string },
  delivered: z.infer<typeof Event>,
  reading: Reading,
): ParsedEvent {
  if (reading === 'ignored') return { ...named, meaning: 'ignored' }
  if ('unresolved' in reading) return { ...named, meaning: 'unresolved', ...reading.unresolved }
  const { userRef = null } = reading
  if ('why' in reading) return { ...named, meaning: 'unusable', why: reading.why, userRef }
  const event: BillingEvent = { ...reading.event, key: named.key, at: delivered.created, provider: 'stripe' }
  return {
    ...named,
    meaning: 'event',
    event,
    userRef,
    ...(isOfInvoice(delivered.type) && { userRefSource: 'invoice' }),
  }
}

/** Invoices keep a copy of their subscription's metadata, and charges have none but their invoice's. */
const isOfInvoice = (type: string): boolean => !type.startsWith('customer.subscription.')

function read(type: string, object: unknown, needs: Needs): Reading | Promise<Reading> {
  switch (type) {
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.paused':
    case 'customer.subscription.resumed':
      return readSubscription(object, needs)
    case 'customer.subscription.deleted':
      return readSubscription(object, needs, 'downgrade')
    case 'invoice.paid':
      return readInvoice(object, 'payment_recovery', needs)
    case 'invoice.payment_failed':
      return readInvoice(object, 'payment_failed', needs)
    case 'charge.refunded':
      return readCharge(object, needs)
    case 'charge.dispute.created':
    case 'charge.dispute.funds_withdrawn':
      return readDispute(object, needs)
    case 'charge.dispute.closed':
      return readClosedDispute(object, needs)
    default:
      // They have hundreds of kinds, and an endpoint may be set to send all of them.
      return 'ignored'
  }
}

function readSubscription(object: unknown, prices: StripePrices, named?: ProviderAction): Reading {
  const { data: subscription, error } = StripeSubscription.safeParse(object)
  if (error) return { why: `data.object.${whyNot(error)}` }
  const userRef = userOf(subscription.metadata)
  const kind = kindOf(subscription, prices)
  // Without our mark it is something else that the account sells.
  if (!kind) return userRef === null ? 'ignored' : { why: 'neither the price of the plan nor of the add-on', userRef }
  const action = named ?? stripeActionOf(subscription)
  if (action === 'ignored') return action
  if (!action) return { why: 'data.object.status: unknown', userRef }
  const told = stripeSnapshotOf(subscription, kind, action, prices)
  const isAddon = told.action === 'activate' && kind === 'addon'
  const event = { ...told, ...(isAddon && { action: 'update_addon' as const, invoiceId: null }) }
  return { event: bare({ ...event, subscriptionId: subscription.id, kind }), userRef }
}

const kindOf = ({ items, metadata }: z.infer<typeof StripeSubscription>, prices: StripePrices) =>
  kindOfPrices(
    items.data.map(({ price }) => price.id),
    metadata,
    prices,
  )

async function readInvoice(object: unknown, action: ProviderAction, needs: Needs): Promise<Reading> {
  const { data: invoice, error } = StripeInvoice.safeParse(object)
  if (error) return { why: `data.object.${whyNot(error)}` }
  const of = await subscriptionOf(invoice, needs)
  if (!of) return 'ignored'
  if (of === 'unresolved') return { unresolved: unresolvedOf(invoice, action) }
  const { userRef, ...subscription } = of
  const invoiceReason = invoiceReasonOf(invoice.billing_reason)
  const paidFor = action === 'payment_recovery' && invoiceReason !== 'other' ? periodOf(invoice) : undefined
  const { start: periodStart = null, end: periodEnd = null } = paidFor ?? {}
  const ofInvoice = { invoiceId: invoice.id, invoiceReason }
  return { event: bare({ ...subscription, action, ...ofInvoice, periodStart, periodEnd }), userRef }
}

interface OfSubscription {
  readonly subscriptionId: string
  readonly kind: 'plan' | 'addon'
  readonly userRef: string | null
}

/** What an invoice is for. Nothing when it is for something that we don't sell. */
async function subscriptionOf(
  invoice: z.infer<typeof StripeInvoice>,
  { answers, kindOf: knownKindOf, ...prices }: Needs,
): Promise<OfSubscription | 'unresolved' | undefined> {
  const details = invoice.parent?.subscription_details
  if (!details) return undefined
  const { subscription: subscriptionId, metadata } = details
  const userRef = userOf(metadata)
  const told = kindOfPrices(invoice.lines.data.map(priceOf), metadata, prices)
  if (told && userRef !== null) return { subscriptionId, kind: told, userRef }
  // The subscription's own events say whose it is.
  const known = await knownKindOf(subscriptionId)
  if (known) return { subscriptionId, kind: told ?? known, userRef }
  if (!answers) return 'unresolved'
  const asked = await answers.subscription(subscriptionId)
  const kind = told ?? kindOf(asked, prices)
  return kind && { subscriptionId, kind, userRef: userRef ?? userOf(asked.metadata) }
}

const unresolvedOf = ({ parent }: z.infer<typeof StripeInvoice>, action: ProviderAction): Unresolved => ({
  action,
  subscriptionId: parent?.subscription_details?.subscription ?? null,
  userRef: userOf(parent?.subscription_details?.metadata),
})

type Line = z.infer<typeof StripeInvoice>['lines']['data'][number]

const priceOf = ({ pricing }: Line) => pricing?.price_details?.price

/** The period that the invoice pays for, if it is not about a change within one. */
const periodOf = ({ lines }: z.infer<typeof StripeInvoice>) =>
  lines.data
    .filter(({ parent }) => parent?.subscription_item_details?.proration !== true)
    .map(({ period }) => period)
    .filter(({ start, end }) => start < end)
    .sort((one, other) => other.end - one.end)[0]

async function readCharge(object: unknown, needs: Needs): Promise<Reading> {
  const { data: charge, error } = StripeCharge.safeParse(object)
  if (error) return { why: `data.object.${whyNot(error)}` }
  return refundOf(charge.payment_intent, charge.refunded ? 'full' : 'partial', needs)
}

async function readDispute(object: unknown, needs: Needs): Promise<Reading> {
  const { data: dispute, error } = StripeDispute.safeParse(object)
  if (error) return { why: `data.object.${whyNot(error)}` }
  // Only a question of the bank's: no money has moved.
  if (dispute.status.startsWith('warning_')) return 'ignored'
  return refundOf(dispute.payment_intent, 'full', needs)
}

async function refundOf(
  payment: string | null | undefined,
  amount: 'full' | 'partial',
  needs: Needs,
): Promise<Reading> {
  if (!payment) return 'ignored'
  if (!needs.answers) return { unresolved: { action: 'refund', subscriptionId: null, userRef: null } }
  const invoice = await needs.answers.invoiceOf(payment)
  const of = invoice && (await subscriptionOf(invoice, needs))
  if (!of || of === 'unresolved') return 'ignored'
  const { userRef, ...subscription } = of
  const ofInvoice = { invoiceId: invoice.id, invoiceReason: invoiceReasonOf(invoice.billing_reason) }
  return { event: bare({ ...subscription, action: 'refund', ...ofInvoice, amount }), userRef }
}

/**
 * A dispute that we won is money that came back. Told without its invoice, which the dispute has taken away for good, and
 * only while the subscription goes on: it may long be over when the bank has decided.
 */
async function readClosedDispute(object: unknown, needs: Needs): Promise<Reading> {
  const { data: dispute, error } = StripeDispute.safeParse(object)
  if (error) return { why: `data.object.${whyNot(error)}` }
  if (dispute.status !== 'won' || !dispute.payment_intent) return 'ignored'
  const { answers } = needs
  if (!answers) return { unresolved: { action: 'payment_recovery', subscriptionId: null, userRef: null } }
  const invoice = await answers.invoiceOf(dispute.payment_intent)
  const of = invoice && (await subscriptionOf(invoice, needs))
  if (!of || of === 'unresolved') return 'ignored'
  const { userRef, ...subscription } = of
  const { status } = await answers.subscription(subscription.subscriptionId)
  if (status !== 'active' && status !== 'trialing') return 'ignored'
  const invoiceReason = invoiceReasonOf(invoice.billing_reason)
  return { event: bare({ ...subscription, action: 'payment_recovery', invoiceReason }), userRef }
}

type Bare = Omit<BillingEvent, 'key' | 'at' | 'provider'>

const bare = (told: Pick<Bare, 'action' | 'subscriptionId' | 'kind'> & Partial<Bare>): Bare => {
  const {
    key: _key,
    at: _at,
    provider: _provider,
    ...event
  } = billingEventFrom({ key: '', at: 0, provider: 'stripe', ...told })
  return event
}
