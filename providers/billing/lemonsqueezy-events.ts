/** Parses Lemon Squeezy's webhooks. docs/billing.md lists the event types in a table. */
import type { z } from 'zod'
import type { ProviderAction, RefundAmount } from '../../domain/billing/event.ts'
import type { SubscriptionKind } from '../../domain/billing/plans.ts'
import type { UnresolvedPart } from '../../domain/billing/received-event.ts'
import { ignoredTypes } from './event-types.ts'
import {
  eventFieldsFrom,
  kindFromVariant,
  LemonSqueezyInvoice,
  LemonSqueezyOrder,
  LemonSqueezySubscription,
  type LemonSqueezyVariants,
  parseInvoiceReason,
} from './lemonsqueezy-shapes.ts'
import {
  createBillingEvent,
  describeIssue,
  type EventFields,
  parseJson,
  parseType,
  parseUserRef,
  rejectTestMode,
  sha256Hex,
} from './payload.ts'
import type { ParsedEvent, ResolvedEvent, WebhookDelivery } from './provider.ts'

/** Event types that contain a subscription, with their action; null if the subscription's status decides. */
const subscriptionEvents: Readonly<Record<string, ProviderAction | null>> = {
  subscription_created: null,
  subscription_updated: null,
  subscription_resumed: null,
  subscription_unpaused: null,
  subscription_paused: null,
  subscription_plan_changed: null,
  subscription_cancelled: 'cancelled',
  subscription_expired: 'downgrade',
}

/** Event types that contain an invoice of a subscription. */
const paymentEvents: Readonly<Record<string, ProviderAction>> = {
  subscription_payment_success: 'payment_recovery',
  subscription_payment_recovered: 'payment_recovery',
  subscription_payment_failed: 'payment_failed',
  subscription_payment_refunded: 'refund',
}

/** The kind of a subscription; undefined for other products of the store. */
type FoundKind = SubscriptionKind | undefined

interface Deps<Kind = FoundKind | 'unresolved'> extends LemonSqueezyVariants {
  readonly acceptsTestMode: boolean
  /** For payments, which do not state the kind; `unresolved` if it requires a request that must not be made now. */
  findKind(subscriptionId: string): Promise<Kind>
}

type Reading =
  | { readonly fields: Omit<EventFields, 'key' | 'provider'> }
  | { readonly unresolved: UnresolvedPart }
  | { readonly problem: string }
  | 'ignored'

interface Envelope {
  readonly meta?: {
    readonly event_name?: unknown
    readonly test_mode?: unknown
    readonly custom_data?: { readonly user_id?: unknown } | null
  } | null
  readonly data?: unknown
}

export async function parseLemonSqueezyEvent(delivery: WebhookDelivery, deps: Deps<FoundKind>): Promise<ResolvedEvent>
export async function parseLemonSqueezyEvent(delivery: WebhookDelivery, deps: Deps): Promise<ParsedEvent>
/** Parses a verified webhook. Rejects only if `findKind` does. */
export async function parseLemonSqueezyEvent({ body }: WebhookDelivery, deps: Deps): Promise<ParsedEvent> {
  const json = (parseJson(body) ?? null) as Envelope | null
  const name = { key: sha256Hex(body), type: parseType(json?.meta?.event_name) }
  const userRef = parseUserRef(json?.meta?.custom_data?.user_id)
  const parsed = toParsedEvent(name, userRef, await readEvent(name.type, json?.data, userRef, deps))
  return json?.meta?.test_mode === true && !deps.acceptsTestMode ? rejectTestMode(parsed, 'meta.test_mode') : parsed
}

function toParsedEvent(
  name: { readonly key: string; readonly type: string },
  userRef: string | null,
  reading: Reading,
): ParsedEvent {
  if (reading === 'ignored') return { ...name, meaning: 'ignored' }
  if ('unresolved' in reading) return { ...name, meaning: 'unresolved', ...reading.unresolved, userRef }
  if ('problem' in reading) return { ...name, meaning: 'unusable', problem: reading.problem, userRef }
  const event = createBillingEvent({ ...reading.fields, key: name.key, provider: 'lemonsqueezy' })
  return { ...name, meaning: 'event', event, userRef }
}

async function readEvent(type: string, data: unknown, userRef: string | null, deps: Deps): Promise<Reading> {
  if (Object.hasOwn(subscriptionEvents, type)) return readSubscription(type, data, userRef, deps)
  if (Object.hasOwn(paymentEvents, type)) return readPayment(type, data, deps)
  if (type === 'order_refunded') return readOrder(data, deps)
  return ignoredTypes.lemonsqueezy.includes(type) ? 'ignored' : { problem: 'meta.event_name: unknown event type' }
}

function readSubscription(type: string, data: unknown, userRef: string | null, deps: Deps): Reading {
  const { data: subscription, error } = LemonSqueezySubscription.safeParse(data)
  if (error) return { problem: describeIssue(error) }
  const kind = kindFromVariant(subscription.attributes.variant_id, deps)
  // Without our account id in its custom data, the purchase is another product of the store.
  if (!kind)
    return userRef === null ? 'ignored' : { problem: 'data.attributes.variant_id: neither the plan nor the add-on' }
  const fields = eventFieldsFrom(subscription, kind, subscriptionEvents[type] ?? undefined)
  const action = fields.action === 'activate' && kind === 'addon' ? 'update_addon' : fields.action
  return { fields: { ...fields, action } }
}

async function readPayment(type: string, data: unknown, deps: Deps): Promise<Reading> {
  const { data: invoice, error } = LemonSqueezyInvoice.safeParse(data)
  if (error) return { problem: describeIssue(error) }
  const { subscription_id: subscriptionId, updated_at: at, billing_reason: reason } = invoice.attributes
  const kind = await deps.findKind(subscriptionId)
  const action = paymentEvents[type]
  if (!kind || !action) return 'ignored'
  if (kind === 'unresolved') return { unresolved: { action, subscriptionId } }
  return {
    fields: {
      action,
      subscriptionId,
      kind,
      at,
      invoiceId: invoice.id,
      invoiceReason: parseInvoiceReason(reason),
      amount: action === 'refund' ? parseRefundAmount(invoice.attributes) : null,
    },
  }
}

async function readOrder(data: unknown, deps: Deps): Promise<Reading> {
  const { data: order, error } = LemonSqueezyOrder.safeParse(data)
  if (error) return { problem: describeIssue(error) }
  const { subscription_id: subscriptionId, updated_at: at } = order.attributes
  const kind = subscriptionId ? await deps.findKind(subscriptionId) : undefined
  if (!subscriptionId || !kind) return 'ignored'
  if (kind === 'unresolved') return { unresolved: { action: 'refund', subscriptionId } }
  return { fields: { action: 'refund', subscriptionId, kind, at, amount: parseRefundAmount(order.attributes) } }
}

function parseRefundAmount({
  status,
  total,
  refunded_amount: refunded,
}: z.infer<typeof LemonSqueezyOrder>['attributes']): RefundAmount {
  return status === 'refunded' || (refunded != null && total != null && refunded >= total) ? 'full' : 'partial'
}
