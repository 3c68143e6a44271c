/**
 * Parses the sandbox's webhooks. Their format is part of the API contract, so that anyone with the secret can send
 * them.
 */
import { z } from 'zod'
import { type ProviderAction, refundAmounts } from '../../domain/billing/event.ts'
import { subscriptionKinds } from '../../domain/billing/plans.ts'
import {
  clampAddons,
  createBillingEvent,
  describeIssue,
  parseJson,
  parseType,
  parseUserRef,
  rfc3339Time,
  storableText,
} from './payload.ts'
import type { ResolvedEvent, WebhookDelivery } from './provider.ts'

const sandboxActions = {
  'subscription.activated': 'activate',
  'addon.updated': 'update_addon',
  'payment.failed': 'payment_failed',
  'payment.recovered': 'payment_recovery',
  'subscription.cancelled': 'cancelled',
  'subscription.downgraded': 'downgrade',
  'payment.refunded': 'refund',
} as const satisfies Readonly<Record<string, ProviderAction>>

export type SandboxEventType = keyof typeof sandboxActions

const optionalTime = rfc3339Time.nullish().transform((at) => at ?? null)

const Body = z.object({
  type: z.enum(Object.keys(sandboxActions) as [SandboxEventType]),
  occurred_at: rfc3339Time,
  data: z
    .object({
      user_id: storableText(200).nullish(),
      subscription_id: storableText(200),
      kind: z.enum(subscriptionKinds).default('plan'),
      quantity: z.unknown().optional(),
      invoice_id: storableText(200).nullish(),
      amount: z.enum(refundAmounts).nullish(),
      period_start: optionalTime,
      period_end: optionalTime,
    })
    .refine(
      ({ period_start: start, period_end: end }) => start === null || end === null || start < end,
      'period_start must be before period_end',
    ),
})

/** Parses a verified webhook. Never throws. */
export function parseSandboxEvent({ headers, body }: WebhookDelivery): ResolvedEvent {
  const json = parseJson(body) as { type?: unknown; data?: { user_id?: unknown } | null } | null | undefined
  const name = { key: String(headers['webhook-id']), type: parseType(json?.type) }
  const unusable = (problem: string): ResolvedEvent => ({
    ...name,
    meaning: 'unusable',
    problem,
    userRef: parseUserRef(json?.data?.user_id),
  })
  if (json === undefined) return unusable('body: not JSON in UTF-8')
  const parsed = Body.safeParse(json)
  if (!parsed.success) return unusable(describeIssue(parsed.error))
  const { type, occurred_at: at, data } = parsed.data
  const action = sandboxActions[type]
  const kind = action === 'update_addon' ? 'addon' : data.kind
  const quantity = kind === 'addon' ? parseQuantity(action, data.quantity) : null
  if (quantity === undefined) return unusable('data.quantity: not an integer')
  const event = createBillingEvent({
    key: name.key,
    action,
    provider: 'sandbox',
    subscriptionId: data.subscription_id,
    kind,
    at,
    quantity,
    invoiceId: data.invoice_id ?? null,
    amount: action === 'refund' ? (data.amount ?? 'full') : null,
    periodStart: data.period_start,
    periodEnd: data.period_end,
  })
  return { ...name, meaning: 'event', event, userRef: data.user_id ?? null }
}

/** The number of add-ons; null if the event type does not state it, undefined if it must state it and does not. */
function parseQuantity(action: ProviderAction, quantity: unknown): number | null | undefined {
  if (action !== 'activate' && action !== 'update_addon') return null
  if (action === 'activate' && (quantity === undefined || quantity === null)) return 1
  return typeof quantity === 'number' && Number.isInteger(quantity) ? clampAddons(quantity) : undefined
}
