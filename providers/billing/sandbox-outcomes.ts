/** The outcomes that a user can play for a sandbox subscription, as pure functions from one row to the next. */
import type { SandboxStatus, SandboxSubscription } from '../../domain/billing/sandbox-subscription.ts'
import { clampAddons } from './payload.ts'
import type { SandboxEventType } from './sandbox-events.ts'

/** Identifies the present state of the subscription: it differs after each change. */
export const formatVersion = ({ updatedAt }: SandboxSubscription): string => updatedAt.toISOString()

export const sandboxOutcomes = ['pay', 'fail', 'recover', 'cancel', 'resume', 'refund', 'end'] as const
export type SandboxOutcome = (typeof sandboxOutcomes)[number]

export interface SandboxOptions {
  readonly quantity?: number | undefined
}

/** The next row, and the type of the webhook that reports it. */
export interface SandboxChange {
  readonly type: SandboxEventType
  readonly next: SandboxSubscription
}

const allowedStatuses: Readonly<Record<SandboxOutcome, readonly SandboxStatus[]>> = {
  pay: ['open', 'active'],
  fail: ['active', 'past_due'],
  recover: ['past_due'],
  cancel: ['active', 'past_due'],
  resume: ['cancelled'],
  refund: ['active', 'cancelled'],
  end: ['active', 'past_due', 'cancelled'],
}

/** The outcomes that are possible in the subscription's present status. */
export const listAllowedOutcomes = ({ status }: SandboxSubscription): SandboxOutcome[] =>
  sandboxOutcomes.filter((outcome) => allowedStatuses[outcome].includes(status))

/**
 * Returns undefined if the outcome is not possible in the present status.
 * @param invoiceId for the new invoice, if the outcome creates one.
 */
export function applyOutcome(
  subscription: SandboxSubscription,
  outcome: SandboxOutcome,
  at: Date,
  invoiceId: string,
  { quantity }: SandboxOptions = {},
): SandboxChange | undefined {
  if (!allowedStatuses[outcome].includes(subscription.status)) return undefined
  const change = (type: SandboxEventType, fields: Partial<SandboxSubscription>): SandboxChange => ({
    type,
    next: { ...subscription, ...fields, updatedAt: at },
  })
  switch (outcome) {
    case 'pay':
      return pay(subscription, at, invoiceId, quantity, change)
    case 'fail':
      // A renewal has a new invoice, another attempt to collect an open invoice does not.
      return change('payment.failed', { status: 'past_due', ...(subscription.status === 'active' && { invoiceId }) })
    case 'recover':
      return change('payment.recovered', { status: 'active' })
    case 'cancel':
      return change('subscription.cancelled', { status: 'cancelled' })
    case 'resume':
      return change('subscription.activated', { status: 'active' })
    case 'refund':
      return change('payment.refunded', { status: 'ended' })
    case 'end':
      return change('subscription.downgraded', { status: 'ended' })
  }
}

/** Pays for the first period or the next one. Another quantity of active add-ons changes only the quantity. */
function pay(
  subscription: SandboxSubscription,
  at: Date,
  invoiceId: string,
  newQuantity: number | undefined,
  change: (type: SandboxEventType, fields: Partial<SandboxSubscription>) => SandboxChange,
): SandboxChange {
  const { kind, status, periodEnd: previousEnd } = subscription
  const quantity = kind === 'addon' && newQuantity !== undefined ? clampAddons(newQuantity) : subscription.quantity
  if (status === 'active' && quantity !== subscription.quantity) return change('addon.updated', { quantity })
  const periodStart = status === 'active' && previousEnd ? previousEnd : at
  const periodEnd = addMonth(periodStart)
  return change('subscription.activated', { status: 'active', quantity, invoiceId, periodStart, periodEnd })
}

/** The same day of the next month, or its last day; UTC. */
function addMonth(date: Date): Date {
  const next = new Date(date)
  next.setUTCMonth(date.getUTCMonth() + 1)
  if (next.getUTCDate() !== date.getUTCDate()) next.setUTCDate(0)
  return next
}
