/** Plans, add-ons and subscriptions: the values that they may have, and the number of relays that a plan includes. */

export const planTiers = ['free', 'paid'] as const
export type PlanTier = (typeof planTiers)[number]

/**
 * `none` for the free tier; `past_due` during the payment grace period; `cancelled` until the end of the paid period.
 */
export const planStatuses = ['none', 'active', 'past_due', 'cancelled'] as const
export type PlanStatus = (typeof planStatuses)[number]

export const subscriptionKinds = ['plan', 'addon'] as const
export type SubscriptionKind = (typeof subscriptionKinds)[number]

export const subscriptionStatuses = ['active', 'past_due', 'cancelled', 'ended'] as const
export type SubscriptionStatus = (typeof subscriptionStatuses)[number]

/** How many add-ons an account can have. */
export const addonsMax = 3

/** How many relays an account may run at the same time: the paid plan includes one, and each add-on one more. */
export const relayLimit = ({ planTier, addons }: { readonly planTier: PlanTier; readonly addons: number }): number =>
  planTier === 'paid' ? 1 + Math.min(addonsMax, addons) : 0

/** Why an account may or may not start relays. */
export const accessReasons = [
  'ok',
  'trial',
  'plan_required',
  'operator_disabled',
  'usage_exhausted',
  'deletion_scheduled',
] as const
export type AccessReason = (typeof accessReasons)[number]

export const accessStatuses = ['enabled', 'disabled'] as const
export type AccessStatus = (typeof accessStatuses)[number]

interface AccessRequest {
  readonly planTier: PlanTier
  /** False after an operator disabled the account or its relays. */
  readonly isEnabledByOperator: boolean
  /** Whether the owner has scheduled the deletion of the account. */
  readonly isDeletionScheduled: boolean
  /** Whether the included relay time is used up, where that is enforced. */
  readonly isUsageExhausted: boolean
  /** Whether an account without a plan has time of its trial left. */
  readonly isTrialOpen: boolean
}

/** The first of several reasons is stated. */
export function accessReason({
  planTier,
  isEnabledByOperator,
  isDeletionScheduled,
  isUsageExhausted,
  isTrialOpen,
}: AccessRequest): AccessReason {
  if (!isEnabledByOperator) return 'operator_disabled'
  if (isDeletionScheduled) return 'deletion_scheduled'
  if (planTier === 'free') return isTrialOpen ? 'trial' : 'plan_required'
  return isUsageExhausted ? 'usage_exhausted' : 'ok'
}

/** Whether relays may be started for this reason. */
export const isAccessOpen = (reason: AccessReason): boolean => reason === 'ok' || reason === 'trial'
