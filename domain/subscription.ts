/**
 * The subscription actor's rules, pure: what an account has paid for, as a function of everything that was told and of the
 * time. Neither order nor repetition of what is told matters. Time is an argument and nothing here knows of Temporal.
 */
import type { BillingEvent, BillingEventAction } from './billing-event.ts'
import { accessAt, lastsUntil, type Terms, termsOf, type UnresolvedPayment } from './subscription-access.ts'
import {
  compare,
  later,
  type Millis,
  nothingOf,
  placed,
  type SubscriptionFacts,
  sameOr,
  withFact,
} from './subscription-facts.ts'

export type { UnresolvedPayment } from './subscription-access.ts'
export type { Millis } from './subscription-facts.ts'

/** All that was ever told of one account's money, in a form that no order and no repetition changes. Plain JSON. */
export interface SubscriptionState {
  /** By provider, id and kind. */
  readonly subscriptions: readonly SubscriptionFacts[]
  /** An operator's last word; null before the first. */
  readonly grant: Grant | null
}

interface Grant {
  readonly at: Millis
  readonly key: string
  readonly isOn: boolean
  readonly addons: number
  /** Null for ever. */
  readonly until: Millis | null
}

export interface AccountEntitlement {
  readonly planTier: 'free' | 'paid'
  readonly planStatus: 'none' | 'active' | 'past_due' | 'cancelled'
  /** 0 to 3, recorded whatever the plan. */
  readonly addons: number
  /** The billing period of the plan, which is the Time Bank's cycle; null without one, for a grant, or when free. */
  readonly periodStart: Millis | null
  readonly periodEnd: Millis | null
  /** When the plan ends for good: the end of a cancelled period, or of a grant; null when nobody said that it ends. */
  readonly endsAt: Millis | null
  /** Past due: when access ends unless it is paid, by the grace or by the end of a cancelled period. */
  readonly graceEndsAt: Millis | null
  /** When the standing changes by time alone; null when never. */
  readonly changesAt: Millis | null
  /** One for each provider, subscription and kind, in that order; no grants. */
  readonly subscriptions: readonly SubscriptionEntitlement[]
  /** Free, and nothing known that time alone would change. */
  readonly isPlainlyFree: boolean
}

export interface SubscriptionEntitlement {
  readonly provider: BillingEvent['provider']
  readonly subscriptionId: string
  readonly kind: 'plan' | 'addon'
  readonly status: 'active' | 'past_due' | 'cancelled' | 'ended'
  /** 0 to 3; 1 for a plan. */
  readonly quantity: number
  readonly periodStart: Millis | null
  readonly periodEnd: Millis | null
}

export const initialState: SubscriptionState = { subscriptions: [], grant: null }

/** The state with the fact in it; the very same value when it adds nothing. */
export function applyEvent(state: SubscriptionState, fact: BillingEvent): SubscriptionState {
  const told = legible(fact)
  if (told === null) return state
  if (told.action === 'grant' || told.action === 'withdraw') {
    const grant = later(state.grant, grantTold(told), ({ at, key, isOn, addons, until }) => [
      at,
      key,
      +isOn,
      addons,
      until,
    ])
    return sameOr(state, { ...state, grant })
  }
  const before = state.subscriptions.find((one) => compare(nameOf(one), nameOf(told)) === 0) ?? nothingOf(told)
  const after = withFact(before, told)
  return after === before ? state : { ...state, subscriptions: placed(state.subscriptions, after, nameOf) }
}

const nameOf = ({ provider, subscriptionId, kind }: SubscriptionFacts | BillingEvent) => [
  provider,
  subscriptionId,
  kind,
]

const grantTold = ({ action, at, key, quantity, periodEnd }: BillingEvent): Grant => ({
  at,
  key,
  isOn: action === 'grant',
  addons: quantity ?? 0,
  until: periodEnd,
})

const actions: readonly BillingEventAction[] = [
  'activate',
  'update_addon',
  'payment_recovery',
  'payment_failed',
  'cancelled',
  'downgrade',
  'refund',
  'grant',
  'withdraw',
]

/** The fact with every number in its range; nothing when it means nothing here, or has no place in time. Inboxes outlive releases. */
function legible(fact: BillingEvent): BillingEvent | null {
  const at = finite(fact.at)
  if (at === null || !actions.includes(fact.action) || (fact.kind !== 'plan' && fact.kind !== 'addon')) return null
  const quantity = finite(fact.quantity)
  return {
    ...fact,
    at,
    quantity: quantity === null ? null : Math.trunc(Math.min(mostAddons, Math.max(0, quantity))),
    invoiceId: fact.invoiceId ?? null,
    invoiceReason: fact.invoiceReason ?? null,
    periodStart: finite(fact.periodStart),
    periodEnd: finite(fact.periodEnd),
  }
}

const mostAddons = 3

/** JSON has no negative zero. */
const finite = (value: number | null): number | null => (Number.isFinite(value) ? Number(value) + 0 : null)

/**
 * What the account is entitled to at a time.
 * @param graceSeconds how long access outlasts a failed payment.
 * @param unresolved payments whose provider has still to be asked: they hold back the end of a grace.
 */
export function entitlementAt(
  state: SubscriptionState,
  now: Millis,
  graceSeconds: number,
  unresolved: readonly UnresolvedPayment[] = [],
): AccountEntitlement {
  const claims = state.subscriptions.map((facts) => ({
    facts,
    terms: isReplaced(facts, state) ? notPaidFor : termsOf(facts, graceSeconds, unresolved),
  }))
  const seen = viewAt(state, claims, now)
  const changesAt = deadlinesOf(state, claims)
    .filter((at) => at > now)
    .sort((one, other) => one - other)
    .find((at) => JSON.stringify(viewAt(state, claims, at)) !== JSON.stringify(seen))
  const isPlainlyFree = seen.planTier === 'free' && seen.addons === 0 && changesAt === undefined
  return { ...seen, changesAt: changesAt ?? null, isPlainlyFree }
}

const notPaidFor: Terms = { isPaidFor: false, graceEndsAt: null, endsAt: null }

/**
 * Whether the subscription is of the other kind now: at a vendor it is for one product at a time, the one of its latest snapshot,
 * and of two in the same moment for the lesser one. In the sandbox plan and add-ons may have the same id.
 */
const isReplaced = (facts: SubscriptionFacts, { subscriptions }: SubscriptionState): boolean =>
  facts.provider !== 'sandbox' &&
  subscriptions.some(
    (other) =>
      other.provider === facts.provider &&
      other.subscriptionId === facts.subscriptionId &&
      compare(kindRankOf(other), kindRankOf(facts)) > 0,
  )

const kindRankOf = ({ status, kind }: SubscriptionFacts) => [status?.at ?? null, kind === 'addon' ? 1 : 0]

interface Claim {
  readonly facts: SubscriptionFacts
  readonly terms: Terms
}

const deadlinesOf = ({ grant }: SubscriptionState, claims: readonly Claim[]): Millis[] =>
  [...claims.flatMap(({ terms }) => [terms.graceEndsAt, terms.endsAt]), grant?.until ?? null].filter(
    (at) => at !== null,
  )

type View = Omit<AccountEntitlement, 'changesAt' | 'isPlainlyFree'>

function viewAt({ grant }: SubscriptionState, claims: readonly Claim[], now: Millis): View {
  const judged = claims.map((claim) => ({ ...claim, access: accessAt(claim.terms, now) }))
  const given = grant?.isOn && (grant.until === null || now < grant.until) ? grant : null
  const plans = judged.flatMap(({ facts, terms, access }) =>
    facts.kind === 'plan' && access.isOpen ? [planBought(facts, terms, access.status)] : [],
  )
  const addons = judged
    .filter(({ facts, access }) => facts.kind === 'addon' && access.isOpen)
    .reduce((sum, { facts }) => sum + quantityOf(facts), given?.addons ?? 0)
  return {
    ...(best(given ? [...plans, planGiven(given)] : plans) ?? free),
    addons: Math.min(mostAddons, addons),
    subscriptions: judged.map(({ facts, access }) => subscriptionStanding(facts, access.status)),
  }
}

type Plan = Pick<View, 'planTier' | 'planStatus' | 'periodStart' | 'periodEnd' | 'endsAt' | 'graceEndsAt'>

const free: Plan = {
  planTier: 'free',
  planStatus: 'none',
  periodStart: null,
  periodEnd: null,
  endsAt: null,
  graceEndsAt: null,
}

const planGiven = ({ until }: Grant): Plan => ({ ...free, planTier: 'paid', planStatus: 'active', endsAt: until })

const planBought = (facts: SubscriptionFacts, terms: Terms, planStatus: Plan['planStatus']): Plan => ({
  planTier: 'paid',
  planStatus,
  ...periodOf(facts),
  endsAt: terms.endsAt,
  graceEndsAt: planStatus === 'past_due' ? lastsUntil(terms) : null,
})

const statusRank = { none: 0, cancelled: 1, past_due: 2, active: 3 } as const

/** The best status, of those what lasts longest, of those what has the later period: a subscription rather than a grant. */
const best = (plans: readonly Plan[]): Plan | null =>
  plans.reduce<Plan | null>(
    (known, plan) =>
      later(known, plan, ({ planStatus, endsAt, graceEndsAt, periodEnd }) => [
        statusRank[planStatus],
        graceEndsAt ?? endsAt ?? Number.POSITIVE_INFINITY,
        periodEnd,
      ]),
    null,
  )

function subscriptionStanding(
  facts: SubscriptionFacts,
  status: SubscriptionEntitlement['status'],
): SubscriptionEntitlement {
  const { provider, subscriptionId, kind } = facts
  return { provider, subscriptionId, kind, status, quantity: quantityOf(facts), ...periodOf(facts) }
}

const quantityOf = ({ quantity }: SubscriptionFacts): number => quantity?.quantity ?? 1

/** A period that would begin after its end has no known beginning. */
function periodOf({ period }: SubscriptionFacts): Pick<AccountEntitlement, 'periodStart' | 'periodEnd'> {
  if (period === null) return { periodStart: null, periodEnd: null }
  const { start, end } = period
  return { periodStart: start !== null && start < end ? start : null, periodEnd: end }
}
