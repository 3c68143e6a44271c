/** Lemon Squeezy's webhooks: what each event says to us. docs/billing.md has the same as a table. */
import type { z } from 'zod'
import type { BillingEvent, ProviderAction } from '../../domain/billing-event.ts'
import type { UnresolvedPart } from '../../platform/received-billing-event.ts'
import {
  invoiceReasonOf,
  kindOfVariant,
  LemonSqueezyInvoice,
  LemonSqueezyOrder,
  LemonSqueezySubscription,
  type LemonSqueezyVariants,
  snapshotOf,
} from './lemonsqueezy-shapes.ts'
import { billingEventFrom, readJson, refuseTestMode, sha256, typeOf, userRefOf, whyNot } from './payload.ts'
import type { ParsedEvent, ResolvedEvent, WebhookDelivery } from './provider.ts'

/** Events with a subscription in them: what the name says, or null where its status tells. */
const subscriptionEvents: Readonly<Record<string, ProviderAction | null>> = {
  subscription_created: null,
  subscription_updated: null,
  subscription_resumed: null,
  subscription_unpaused: null,
  subscription_plan_changed: null,
  subscription_cancelled: 'cancelled',
  subscription_expired: 'downgrade',
  subscription_paused: 'downgrade',
}

/** Events with an invoice of a subscription in them. */
const paymentEvents: Readonly<Record<string, ProviderAction>> = {
  subscription_payment_success: 'payment_recovery',
  subscription_payment_recovered: 'payment_recovery',
  subscription_payment_failed: 'payment_failed',
  subscription_payment_refunded: 'refund',
}

const others = [
  'order_created',
  'license_key_created',
  'license_key_updated',
  'affiliate_activated',
  'customer_updated',
]

/** What a subscription is of; nothing when we don't sell it. */
type Kind = 'plan' | 'addon' | undefined

interface Needs<Answer = Kind | 'unresolved'> extends LemonSqueezyVariants {
  readonly acceptsTestMode: boolean
  /** Of a payment, which does not say what it is for; `unresolved` when only Lemon Squeezy knows and is not to be asked. */
  kindOf(subscriptionId: string): Promise<Answer>
}

type Reading =
  | { readonly event: Omit<BillingEvent, 'key'> }
  | { readonly unresolved: UnresolvedPart }
  | { readonly why: string }
  /** Known, and nothing to us. */
  | 'ignored'

interface Envelope {
  readonly meta?: {
    readonly event_name?: unknown
    readonly test_mode?: unknown
    readonly custom_data?: { readonly user_id?: unknown } | null
  } | null
  readonly data?: unknown
}

export async function parseLemonSqueezyEvent(delivery: WebhookDelivery, needs: Needs<Kind>): Promise<ResolvedEvent>
export async function parseLemonSqueezyEvent(delivery: WebhookDelivery, needs: Needs): Promise<ParsedEvent>
/** Reads a verified webhook. Rejects only as `kindOf` does. */
export async function parseLemonSqueezyEvent({ body }: WebhookDelivery, needs: Needs): Promise<ParsedEvent> {
  const json = (readJson(body) ?? null) as Envelope | null
  const named = { key: sha256(body), type: typeOf(json?.meta?.event_name) }
  const userRef = userRefOf(json?.meta?.custom_data?.user_id)
  const parsed = parsedAs(named, userRef, await read(named.type, json?.data, userRef, needs))
  return json?.meta?.test_mode === true && !needs.acceptsTestMode ? refuseTestMode(parsed, 'meta.test_mode') : parsed
}

function parsedAs(
  named: { readonly key: string; readonly type: string },
  userRef: string | null,
  reading: Reading,
): ParsedEvent {
  if (reading === 'ignored') return { ...named, meaning: 'ignored' }
  if ('unresolved' in reading) return { ...named, meaning: 'unresolved', ...reading.unresolved, userRef }
  if ('why' in reading) return { ...named, meaning: 'unusable', why: reading.why, userRef }
  return { ...named, meaning: 'event', event: { ...reading.event, key: named.key }, userRef }
}

async function read(type: string, data: unknown, userRef: string | null, needs: Needs): Promise<Reading> {
  if (Object.hasOwn(subscriptionEvents, type)) return readSubscription(type, data, userRef, needs)
  if (Object.hasOwn(paymentEvents, type)) return readPayment(type, data, needs)
  if (type === 'order_refunded') return readOrder(data, needs)
  return others.includes(type) ? 'ignored' : { why: 'meta.event_name: unknown' }
}

function readSubscription(type: string, data: unknown, userRef: string | null, needs: Needs): Reading {
  const { data: subscription, error } = LemonSqueezySubscription.safeParse(data)
  if (error) return { why: whyNot(error) }
  const kind = kindOfVariant(subscription.attributes.variant_id, needs)
  // Without our mark it is something else that the store sells.
  if (!kind)
    return userRef === null ? 'ignored' : { why: 'data.attributes.variant_id: neither the plan nor the add-on' }
  const told = snapshotOf(subscription, kind, subscriptionEvents[type] ?? undefined)
  const action = told.action === 'activate' && kind === 'addon' ? 'update_addon' : told.action
  return { event: billingEventFrom({ ...told, key: '', action }) }
}

async function readPayment(type: string, data: unknown, needs: Needs): Promise<Reading> {
  const { data: invoice, error } = LemonSqueezyInvoice.safeParse(data)
  if (error) return { why: whyNot(error) }
  const { subscription_id: subscriptionId, updated_at: at } = invoice.attributes
  const kind = await needs.kindOf(subscriptionId)
  const action = paymentEvents[type]
  if (!kind || !action) return 'ignored'
  if (kind === 'unresolved') return { unresolved: { action, subscriptionId } }
  const amount = action === 'refund' ? amountOf(invoice.attributes) : null
  const ofInvoice = { invoiceId: invoice.id, invoiceReason: invoiceReasonOf(invoice.attributes.billing_reason) }
  return {
    event: billingEventFrom({
      key: '',
      action,
      provider: 'lemonsqueezy',
      subscriptionId,
      kind,
      at,
      ...ofInvoice,
      amount,
    }),
  }
}

async function readOrder(data: unknown, needs: Needs): Promise<Reading> {
  const { data: order, error } = LemonSqueezyOrder.safeParse(data)
  if (error) return { why: whyNot(error) }
  const { subscription_id: subscriptionId, updated_at: at } = order.attributes
  const kind = subscriptionId ? await needs.kindOf(subscriptionId) : undefined
  if (!subscriptionId || !kind) return 'ignored'
  if (kind === 'unresolved') return { unresolved: { action: 'refund', subscriptionId } }
  const amount = amountOf(order.attributes)
  return {
    event: billingEventFrom({ key: '', action: 'refund', provider: 'lemonsqueezy', subscriptionId, kind, at, amount }),
  }
}

function amountOf({
  status,
  total,
  refunded_amount: refunded,
}: z.infer<typeof LemonSqueezyOrder>['attributes']): 'full' | 'partial' {
  return status === 'refunded' || (refunded != null && total != null && refunded >= total) ? 'full' : 'partial'
}
