/** A subscription as the sandbox, the billing provider that takes no money, stores it. */
import type { SubscriptionKind } from './plans.ts'

/** `open` until the first payment. */
export const sandboxStatuses = ['open', 'active', 'past_due', 'cancelled', 'ended'] as const
export type SandboxStatus = (typeof sandboxStatuses)[number]

export interface SandboxSubscription {
  readonly id: string
  readonly userId: string
  readonly kind: SubscriptionKind
  readonly quantity: number
  readonly status: SandboxStatus
  /** The newest invoice, paid or not. */
  readonly invoiceId: string | null
  readonly periodStart: Date | null
  readonly periodEnd: Date | null
  readonly createdAt: Date
  /** The time of the last change; it increases with every change. */
  readonly updatedAt: Date
}
