/** The right to withdraw from a contract within 14 days: Directive 2011/83/EU, changed by Directive (EU) 2023/2673. */
import type { BillingSource } from './event.ts'

/**
 * Covers the end of the 14th day after the day of the purchase in every time zone of the buyer: that is at most 15
 * times 24 hours after the purchase.
 */
const withdrawalHours = 15 * 24

/** Until when a contract can be withdrawn from here. */
export const withdrawalEndsAt = (purchasedAt: Date): Date =>
  new Date(purchasedAt.getTime() + withdrawalHours * 3_600_000)

export const canWithdraw = (purchasedAt: Date, now: Date): boolean => now <= withdrawalEndsAt(purchasedAt)

/** Whether the provider is the seller (merchant of record): the contract is with it, and so is its withdrawal. */
export const isSeller = (provider: BillingSource): boolean => provider === 'lemonsqueezy'

/** How a withdrawal was refunded: by the provider at our request, or elsewhere, as an operator says. */
export const refundWays = ['provider', 'elsewhere'] as const

export type RefundWay = (typeof refundWays)[number]
