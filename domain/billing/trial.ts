/**
 * The trial: one relay for an account without a plan, for a number of seconds in total and once per account. It is off
 * unless the operator of the service gives it a length.
 */

/** `open`: relay time is left; `address_unverified`: it opens with the link in a mail of ours; `ended`: used up. */
export const trialStates = ['open', 'address_unverified', 'ended'] as const
export type TrialState = (typeof trialStates)[number]

/** How many trials may begin in one network within a day. */
export const trialsPerNetworkMax = 3

/** For so long the address of an erased account that had its trial gets no other one. */
export const erasedTrialDays = 400

/** How many relays run at the same time. */
export const trialRelaysMax = 1

export interface TrialFacts {
  /** Whether a mail of our own proved the address; the word of a sign-in provider is not enough. */
  readonly isAddressProved: boolean
  /** Whether an erased account with this address had its trial. */
  readonly isAddressSpent: boolean
  /** Relay time since the trial began, in milliseconds; null when it has not begun. */
  readonly consumedMillis: number | null
}

export interface Trial {
  readonly state: TrialState
  /** Whole seconds. */
  readonly remainingSeconds: number
  readonly totalSeconds: number
}

/**
 * The trial of an account without a plan; null where it gets none.
 * @param totalSeconds the length of trials; 0 for none.
 */
export function trialOf(
  { isAddressProved, isAddressSpent, consumedMillis }: TrialFacts,
  totalSeconds: number,
): Trial | null {
  if (totalSeconds === 0) return null
  if (consumedMillis === null) {
    if (isAddressSpent) return null
    return { state: isAddressProved ? 'open' : 'address_unverified', remainingSeconds: totalSeconds, totalSeconds }
  }
  const remainingSeconds = Math.ceil(trialMillisLeft(consumedMillis, totalSeconds) / 1000)
  return { state: remainingSeconds > 0 ? 'open' : 'ended', remainingSeconds, totalSeconds }
}

/** Milliseconds of a begun trial that are left; its relay ends at 0. */
export const trialMillisLeft = (consumedMillis: number, totalSeconds: number): number =>
  Math.max(0, totalSeconds * 1000 - consumedMillis)
