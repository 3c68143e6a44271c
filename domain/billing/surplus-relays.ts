/** Surplus relays: those that run beyond the limit of their account's plan. Decides which of them end, and when. */
import { type PlanTier, relayLimit } from './plans.ts'

interface Plan {
  readonly planTier: PlanTier
  readonly addons: number
}

export interface LiveRelay {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** False for a relay that was asked to stop. */
  readonly countsAgainstLimit: boolean
}

interface SurplusRequest {
  readonly planBefore: Plan
  readonly plan: Plan
  /** All relays of the account that are not stopped and not ordered to disconnect. */
  readonly relays: readonly LiveRelay[]
  /** The end of the notice that runs already; null without one. */
  readonly surplusEndsAt: number | null
  /** Milliseconds since 1970. */
  readonly now: number
  readonly noticeMillis: number
  /** Whether the account has begun a trial. Its relay ends by its own time. */
  readonly hasTrial: boolean
}

export interface SurplusDecision {
  /** When the surplus relays end; null if there are none. */
  readonly surplusEndsAt: number | null
  /** The relays to disconnect now. */
  readonly relaysToEnd: readonly string[]
}

/**
 * Without a plan all relays end at once, except those of a trial, which the account had no plan for before. With fewer
 * add-ons the newest relays beyond the limit end after a notice. A further decrease starts the notice again; it is
 * cancelled once all relays are within the limit.
 */
export function decideSurplus(request: SurplusRequest): SurplusDecision {
  const { planBefore, plan, relays, surplusEndsAt, now, noticeMillis } = request
  const limit = relayLimit(plan)
  if (limit === 0) {
    const isTrial = request.hasTrial && relayLimit(planBefore) === 0
    return { surplusEndsAt: null, relaysToEnd: isTrial ? [] : relays.map(({ id }) => id) }
  }
  const surplus = findNewestBeyond(limit, relays)
  if (surplus.length === 0) return { surplusEndsAt: null, relaysToEnd: [] }
  const isDecrease = limit < relayLimit(planBefore)
  if (isDecrease || surplusEndsAt === null) return { surplusEndsAt: now + noticeMillis, relaysToEnd: [] }
  if (now < surplusEndsAt) return { surplusEndsAt, relaysToEnd: [] }
  return { surplusEndsAt: null, relaysToEnd: surplus }
}

/** The ids of the relays beyond the limit: the newest ones, oldest first. */
export const findNewestBeyond = (limit: number, relays: readonly LiveRelay[]): string[] =>
  relays
    .filter(({ countsAgainstLimit }) => countsAgainstLimit)
    .toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    .slice(limit)
    .map(({ id }) => id)
