/** The sandbox's webhooks: what a body says. Written down in the api's contract, so that anybody can send one. */
import { z } from 'zod'
import type { ProviderAction } from '../../domain/billing-event.ts'
import { billingEventFrom, clampQuantity, readJson, storable, timeText, typeOf, userRefOf, whyNot } from './payload.ts'
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

const optionalTime = timeText.nullish().transform((at) => at ?? null)

const Body = z.object({
  type: z.enum(Object.keys(sandboxActions) as [SandboxEventType]),
  occurred_at: timeText,
  data: z
    .object({
      user_id: storable(200).nullish(),
      subscription_id: storable(200),
      kind: z.enum(['plan', 'addon']).default('plan'),
      quantity: z.unknown().optional(),
      invoice_id: storable(200).nullish(),
      amount: z.enum(['full', 'partial']).nullish(),
      period_start: optionalTime,
      period_end: optionalTime,
    })
    .refine(
      ({ period_start: start, period_end: end }) => start === null || end === null || start < end,
      'the period ends before it begins',
    ),
})

/** Reads a verified webhook of the sandbox. Never throws. */
export function parseSandboxEvent({ headers, body }: WebhookDelivery): ResolvedEvent {
  const json = readJson(body) as { type?: unknown; data?: { user_id?: unknown } | null } | null | undefined
  const named = { key: String(headers['webhook-id']), type: typeOf(json?.type) }
  const unusable = (why: string): ResolvedEvent => ({
    ...named,
    meaning: 'unusable',
    why,
    userRef: userRefOf(json?.data?.user_id),
  })
  if (json === undefined) return unusable('body: no JSON in UTF-8')
  const read = Body.safeParse(json)
  if (!read.success) return unusable(whyNot(read.error))
  const { type, occurred_at: at, data } = read.data
  const action = sandboxActions[type]
  const kind = action === 'update_addon' ? 'addon' : data.kind
  const quantity = kind === 'addon' ? quantityOf(action, data.quantity) : null
  if (quantity === undefined) return unusable('data.quantity: is no whole number')
  const event = billingEventFrom({
    key: named.key,
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
  return { ...named, meaning: 'event', event, userRef: data.user_id ?? null }
}

/** Of add-ons; null when the event says nothing of them, undefined when it ought to and does not. */
function quantityOf(action: ProviderAction, told: unknown): number | null | undefined {
  if (action !== 'activate' && action !== 'update_addon') return null
  if (action === 'activate' && (told === undefined || told === null)) return 1
  return typeof told === 'number' && Number.isInteger(told) ? clampQuantity(told) : undefined
}
