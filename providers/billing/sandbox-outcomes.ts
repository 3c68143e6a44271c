/** What can happen to a subscription at the sandbox, and what the sandbox says of it. Pure: a row becomes the next one. */
import { clampQuantity } from './payload.ts'
import type { SandboxEventType } from './sandbox-events.ts'

/** As the sandbox's own side keeps it. */
export interface SandboxSubscription {
  readonly id: string
  readonly userId: string
  readonly kind: 'plan' | 'addon'
  readonly quantity: number
  /** `open` until it is paid for the first time. */
  readonly status: 'open' | 'active' | 'past_due' | 'cancelled' | 'ended'
  /** The newest one, paid or not. */
  readonly invoiceId: string | null
  readonly periodStart: Date | null
  readonly periodEnd: Date | null
  readonly createdAt: Date
  /** When it last changed; never the same twice. */
  readonly updatedAt: Date
}

/** Names the subscription as it is now: each change gives it another one. */
export const versionOf = ({ updatedAt }: SandboxSubscription): string => updatedAt.toISOString()

export const sandboxOutcomes = ['pay', 'fail', 'recover', 'cancel', 'resume', 'refund', 'end'] as const
export type SandboxOutcome = (typeof sandboxOutcomes)[number]

export interface SandboxOptions {
  readonly quantity?: number | undefined
}

export interface Outcome {
  readonly type: SandboxEventType
  readonly next: SandboxSubscription
}

type Status = SandboxSubscription['status']

const mayFollow: Readonly<Record<SandboxOutcome, readonly Status[]>> = {
  pay: ['open', 'active'],
  fail: ['active', 'past_due'],
  recover: ['past_due'],
  cancel: ['active', 'past_due'],
  resume: ['cancelled'],
  refund: ['active', 'cancelled'],
  end: ['active', 'past_due', 'cancelled'],
}

/** What can happen to the subscription as it is. */
export const outcomesFor = ({ status }: SandboxSubscription): SandboxOutcome[] =>
  sandboxOutcomes.filter((outcome) => mayFollow[outcome].includes(status))

/**
 * @param invoiceId of the invoice that this makes, if it makes one.
 * @returns nothing when it can't happen to the subscription as it is.
 */
export function outcomeOf(
  seen: SandboxSubscription,
  outcome: SandboxOutcome,
  at: Date,
  invoiceId: string,
  { quantity }: SandboxOptions = {},
): Outcome | undefined {
  if (!mayFollow[outcome].includes(seen.status)) return undefined
  const to = (type: SandboxEventType, change: Partial<SandboxSubscription>): Outcome => ({
    type,
    next: { ...seen, ...change, updatedAt: at },
  })
  switch (outcome) {
    case 'pay':
      return pay(seen, at, invoiceId, quantity, to)
    case 'fail':
      // A renewal has an invoice of its own; trying it again has not.
      return to('payment.failed', { status: 'past_due', ...(seen.status === 'active' && { invoiceId }) })
    case 'recover':
      return to('payment.recovered', { status: 'active' })
    case 'cancel':
      return to('subscription.cancelled', { status: 'cancelled' })
    case 'resume':
      return to('subscription.activated', { status: 'active' })
    case 'refund':
      return to('payment.refunded', { status: 'ended' })
    case 'end':
      return to('subscription.downgraded', { status: 'ended' })
  }
}

function pay(
  seen: SandboxSubscription,
  at: Date,
  invoiceId: string,
  quantity: number | undefined,
  to: (type: SandboxEventType, change: Partial<SandboxSubscription>) => Outcome,
): Outcome {
  const count = seen.kind === 'addon' && quantity !== undefined ? clampQuantity(quantity) : seen.quantity
  if (seen.status === 'active' && count !== seen.quantity) return to('addon.updated', { quantity: count })
  const periodStart = seen.status === 'active' && seen.periodEnd ? seen.periodEnd : at
  const periodEnd = monthAfter(periodStart)
  return to('subscription.activated', { status: 'active', quantity: count, invoiceId, periodStart, periodEnd })
}

/** The same day of the next month, or its last one; UTC. */
function monthAfter(date: Date): Date {
  const next = new Date(date)
  next.setUTCMonth(date.getUTCMonth() + 1)
  if (next.getUTCDate() !== date.getUTCDate()) next.setUTCDate(0)
  return next
}
