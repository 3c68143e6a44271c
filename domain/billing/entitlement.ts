/**
 * What an account may use, as a function of all its billing events and of the time. Neither the order of the events nor
 * a repetition matters.
 */
import type { Millis } from '../millis.ts'
import { type BillingEvent, billingEventActions } from './event.ts'
import { addonsMax, type PlanStatus, type PlanTier, type SubscriptionStatus, subscriptionKinds } from './plans.ts'
import { compareEvents, type Subscription, subscriptionFrom } from './subscription.ts'
import { accessAt, lastsUntil, notPaidFor, type Terms, termsOf, type UnresolvedPayment } from './subscription-access.ts'

export type { UnresolvedPayment } from './subscription-access.ts'

export interface AccountEntitlement {
  readonly planTier: PlanTier
  readonly planStatus: PlanStatus
  /** 0 to 3, also on the free tier. */
  readonly addons: number
  /**
   * The billing period of the plan, which is the Time Bank's cycle. Null if it is not known, for a grant, and on the
   * free tier.
   */
  readonly periodStart: Millis | null
  readonly periodEnd: Millis | null
  /** When the plan ends: the end of a cancelled period or of a grant. Null if no end is set. */
  readonly endsAt: Millis | null
  /** Past due: when access ends, after the payment grace period or a cancelled period. */
  readonly graceEndsAt: Millis | null
  /** When the entitlement changes next without a further event; null for never. */
  readonly changesAt: Millis | null
  /** By provider, id and kind, in that order. Grants are not among them. */
  readonly subscriptions: readonly SubscriptionEntitlement[]
}

export interface SubscriptionEntitlement {
  readonly provider: BillingEvent['provider']
  readonly subscriptionId: string
  readonly kind: BillingEvent['kind']
  readonly status: SubscriptionStatus
  /** 0 to 3; 1 for a plan. */
  readonly quantity: number
  /** Of a plan: the add-ons that the same subscription contains, 0 to 3. */
  readonly addons: number
  readonly periodStart: Millis | null
  readonly periodEnd: Millis | null
}

/**
 * @param events all billing events of the account.
 * @param graceSeconds the length of the payment grace period.
 * @param unresolved payments that may settle a failure: they put off the end of its payment grace period.
 */
export function entitlementAt(
  events: readonly BillingEvent[],
  now: Millis,
  graceSeconds: number,
  unresolved: readonly UnresolvedPayment[] = [],
): AccountEntitlement {
  const sorted = events.flatMap(normalize).sort(compareEvents)
  const grant = sorted.findLast(isOfOperator) ?? null
  const all = subscriptionsFrom(sorted.filter((event) => !isOfOperator(event)))
  const claims = all.map((subscription) => ({
    subscription,
    terms: isReplaced(subscription, all) ? notPaidFor : termsOf(subscription, graceSeconds, unresolved),
  }))
  const view = viewAt(grant, claims, now)
  const changesAt = deadlinesOf(grant, claims)
    .filter((at) => at > now)
    .sort((a, b) => a - b)
    .find((at) => JSON.stringify(viewAt(grant, claims, at)) !== JSON.stringify(view))
  return { ...view, changesAt: changesAt ?? null }
}

const isOfOperator = ({ action }: BillingEvent): boolean => action === 'grant' || action === 'withdraw'

/**
 * The event with every number in its range, or nothing if its time, action or kind is unusable. The inbox may hold
 * events that another release stored.
 */
function normalize(event: BillingEvent): BillingEvent[] {
  const at = finiteOrNull(event.at)
  if (at === null || !billingEventActions.includes(event.action) || !subscriptionKinds.includes(event.kind)) return []
  return [
    {
      ...event,
      at,
      quantity: addonsOrNull(event.quantity),
      addons: addonsOrNull(event.addons ?? null),
      invoiceId: event.invoiceId ?? null,
      invoiceReason: event.invoiceReason ?? null,
      periodStart: finiteOrNull(event.periodStart),
      periodEnd: finiteOrNull(event.periodEnd),
    },
  ]
}

function addonsOrNull(value: number | null): number | null {
  const count = finiteOrNull(value)
  return count === null ? null : Math.trunc(Math.min(addonsMax, Math.max(0, count)))
}

/** Adding 0 makes 0 of -0, which JSON does not have. */
const finiteOrNull = (value: number | null): number | null => (Number.isFinite(value) ? Number(value) + 0 : null)

function subscriptionsFrom(sorted: readonly BillingEvent[]): Subscription[] {
  const groups = new Map<string, BillingEvent[]>()
  for (const event of sorted) {
    const name = JSON.stringify([event.provider, event.subscriptionId, event.kind])
    groups.set(name, groups.get(name) ?? [])
    groups.get(name)?.push(event)
  }
  return [...groups.keys()].sort().map((name) => subscriptionFrom(groups.get(name) ?? []))
}

/**
 * Whether the subscription is for the other product now: a vendor's subscription is for the one of its latest status,
 * or for the add-on if both have the same time. One that contains both is a plan with included add-ons. In the sandbox
 * plan and add-ons may have the same id.
 */
const isReplaced = (subscription: Subscription, all: readonly Subscription[]): boolean =>
  subscription.provider !== 'sandbox' &&
  all.some(
    (other) =>
      other.provider === subscription.provider &&
      other.subscriptionId === subscription.subscriptionId &&
      (statusAt(other) > statusAt(subscription) ||
        (statusAt(other) === statusAt(subscription) && other.kind === 'addon' && subscription.kind === 'plan')),
  )

const statusAt = ({ status }: Subscription): Millis => status?.at ?? Number.NEGATIVE_INFINITY

interface Claim {
  readonly subscription: Subscription
  readonly terms: Terms
}

const deadlinesOf = (grant: BillingEvent | null, claims: readonly Claim[]): Millis[] =>
  [...claims.flatMap(({ terms }) => [terms.graceEndsAt, terms.endsAt]), grant?.periodEnd ?? null].filter(
    (at) => at !== null,
  )

type View = Omit<AccountEntitlement, 'changesAt'>

/** @param lastGrant the operators' last event: a `grant`, or a `withdraw` that ended it. */
function viewAt(lastGrant: BillingEvent | null, claims: readonly Claim[], now: Millis): View {
  const grant =
    lastGrant?.action === 'grant' && now < (lastGrant.periodEnd ?? Number.POSITIVE_INFINITY) ? lastGrant : null
  const current = claims.map((claim) => ({ ...claim, access: accessAt(claim.terms, now) }))
  const plans = current.flatMap(({ subscription, terms, access }) =>
    subscription.kind === 'plan' && access.isOpen ? [paidPlan(subscription, terms, access.status)] : [],
  )
  const addons = current
    .filter(({ access }) => access.isOpen)
    .reduce((sum, { subscription }) => sum + addonsOf(subscription), grant?.quantity ?? 0)
  return {
    ...(bestOf(grant ? [...plans, grantedPlan(grant)] : plans) ?? freePlan),
    addons: Math.min(addonsMax, addons),
    subscriptions: current.map(({ subscription, access }) => ({
      provider: subscription.provider,
      subscriptionId: subscription.subscriptionId,
      kind: subscription.kind,
      status: access.status,
      quantity: quantityOf(subscription),
      addons: addonsIncludedIn(subscription),
      ...periodOf(subscription),
    })),
  }
}

const quantityOf = ({ quantity }: Subscription): number => quantity?.value ?? 1
const addonsIncludedIn = ({ addonsIncluded }: Subscription): number => addonsIncluded?.value ?? 0

/** All items of a subscription count, whatever else it is for. */
const addonsOf = (subscription: Subscription): number =>
  subscription.kind === 'addon' ? quantityOf(subscription) : addonsIncludedIn(subscription)

const periodOf = ({ period }: Subscription): Pick<Plan, 'periodStart' | 'periodEnd'> => ({
  periodStart: period?.start ?? null,
  periodEnd: period?.end ?? null,
})

type Plan = Pick<View, 'planTier' | 'planStatus' | 'periodStart' | 'periodEnd' | 'endsAt' | 'graceEndsAt'>

const freePlan: Plan = {
  planTier: 'free',
  planStatus: 'none',
  periodStart: null,
  periodEnd: null,
  endsAt: null,
  graceEndsAt: null,
}

const grantedPlan = ({ periodEnd: endsAt }: BillingEvent): Plan => ({
  ...freePlan,
  planTier: 'paid',
  planStatus: 'active',
  endsAt,
})

const paidPlan = (subscription: Subscription, terms: Terms, planStatus: PlanStatus): Plan => ({
  planTier: 'paid',
  planStatus,
  ...periodOf(subscription),
  endsAt: terms.endsAt,
  graceEndsAt: planStatus === 'past_due' ? lastsUntil(terms) : null,
})

const statusRank: Readonly<Record<PlanStatus, number>> = { none: 0, cancelled: 1, past_due: 2, active: 3 }

/** The plan with the best status, of those the one that lasts longest, and of those the one with the latest period. */
const bestOf = (plans: readonly Plan[]): Plan | undefined =>
  plans.toSorted(
    (a, b) =>
      statusRank[b.planStatus] - statusRank[a.planStatus] ||
      endOf(b) - endOf(a) ||
      (b.periodEnd ?? -Number.MAX_VALUE) - (a.periodEnd ?? -Number.MAX_VALUE),
  )[0]

const endOf = ({ graceEndsAt, endsAt }: Plan): Millis => graceEndsAt ?? endsAt ?? Number.MAX_VALUE
