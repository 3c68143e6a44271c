/** What a subscription workflow decides, as it is stored: the account's entitlement and its subscriptions. */
import { findUnusedBilling, type UnusedBilling } from '../../domain/billing/billed-subscriptions.ts'
import type { AccountEntitlement } from '../../domain/billing/entitlement.ts'
import type { PlanStatus, PlanTier, SubscriptionKind } from '../../domain/billing/plans.ts'
import type { Millis } from '../../domain/millis.ts'
import { recordAuditEntry } from '../audit.ts'
import { type Database, first, firstValue, type Sql } from '../connection.ts'
import { createSandboxStore } from './sandbox-subscriptions.ts'

/** What a subscription workflow has decided. */
export interface NewEntitlement {
  readonly userId: string
  readonly entitlement: AccountEntitlement
  /** The workflow's time. */
  readonly at: Millis
}

/** The version for the next write of the entitlement; undefined for an unknown account. */
export const entitlementVersion = async (sql: Sql, userId: string): Promise<number | undefined> =>
  firstValue(sql<{ version: number }[]>`select entitlement_version as version from users where id = ${userId}`)

export interface LockedEntitlement {
  readonly version: number
  readonly planTier: PlanTier
  readonly planStatus: PlanStatus
  readonly addons: number
  readonly surplusEndsAt: Date | null
  readonly billedPlans: number
}

export const lockEntitlement = async (tx: Sql, userId: string): Promise<LockedEntitlement | undefined> =>
  first(tx<LockedEntitlement[]>`
    select entitlement_version as version, plan_tier, plan_status, addons, surplus_ends_at, billed_plans
    from users where id = ${userId} for no key update`)

const dateOf = (millis: number | null): Date | null => (millis === null ? null : new Date(millis))

/** Stores what the account may use, and audits what changed. */
export async function storeEntitlement(
  tx: Sql,
  before: LockedEntitlement,
  { userId, entitlement: now, at }: NewEntitlement,
  surplusEndsAt: Date | null,
): Promise<void> {
  const unused = findUnusedBilling(now.planTier, now.subscriptions)
  const dueAt =
    [dateOf(now.changesAt), surplusEndsAt].filter((time) => time !== null).sort((a, b) => +a - +b)[0] ?? null
  await tx`
    update users set
      plan_tier = ${now.planTier}, plan_status = ${now.planStatus}, addons = ${now.addons}, plan_until = ${dateOf(now.endsAt)},
      payment_grace_ends_at = ${dateOf(now.graceEndsAt)}, period_start = ${dateOf(now.periodStart)},
      period_end = ${dateOf(now.periodEnd)}, surplus_ends_at = ${surplusEndsAt}, entitlement_due_at = ${dueAt},
      addons_without_plan = ${unused.addonsWithoutPlan}, billed_plans = ${unused.billedPlans},
      entitlement_version = entitlement_version + 1, inbox_changed_at = null, wake_attempts = 0, next_wake_at = null
    where id = ${userId}`
  await auditUnusedBilling(tx, userId, before, now, unused)
  const hasChanged =
    before.planTier !== now.planTier || before.planStatus !== now.planStatus || before.addons !== now.addons
  if (!hasChanged) return
  await recordAuditEntry(tx, {
    initiator: 'system',
    action: 'plan_changed',
    userId,
    detail: {
      plan_tier: now.planTier,
      plan_status: now.planStatus,
      addons: now.addons,
      was: `${before.planTier} ${before.planStatus} ${before.addons}`,
      at: new Date(at).toISOString(),
    },
  })
}

/** One entry when the plan ends and its add-ons are still billed, and one when a second plan is billed. */
async function auditUnusedBilling(
  tx: Sql,
  userId: string,
  before: LockedEntitlement,
  now: AccountEntitlement,
  { addonsWithoutPlan, billedPlans }: UnusedBilling,
): Promise<void> {
  const entry = { initiator: 'system', userId } as const
  if (before.planTier === 'paid' && now.planTier === 'free' && addonsWithoutPlan > 0)
    await recordAuditEntry(tx, {
      ...entry,
      action: 'addons_billed_without_plan',
      detail: { addons: addonsWithoutPlan },
    })
  if (before.billedPlans <= 1 && billedPlans > 1)
    await recordAuditEntry(tx, { ...entry, action: 'plan_billed_twice', detail: { plans: billedPlans } })
}

/**
 * Replaces the account's subscriptions in one statement. A subscription of another account moves to this one; one that
 * has moved to another account is deleted here, unless the other account's workflow has written it already.
 */
export async function storeSubscriptions(tx: Sql, { userId, entitlement }: NewEntitlement): Promise<void> {
  const rows = entitlement.subscriptions.map((subscription) => ({
    ...subscription,
    periodStart: dateOf(subscription.periodStart)?.toISOString() ?? null,
    periodEnd: dateOf(subscription.periodEnd)?.toISOString() ?? null,
  }))
  await tx`
    with written as materialized (
      select * from jsonb_to_recordset(${tx.json(rows)}) as w (provider text, "subscriptionId" text, kind text,
        status text, quantity integer, addons integer, "periodStart" timestamptz, "periodEnd" timestamptz)),
    gone as (
      delete from subscriptions s where user_id = ${userId} and not exists (
        select from written w where w.provider = s.provider and w."subscriptionId" = s.subscription_id and w.kind = s.kind))
    insert into subscriptions (provider, subscription_id, kind, user_id, status, quantity, addons, period_start, period_end)
    select provider, "subscriptionId", kind, ${userId}, status, quantity, coalesce(addons, 0), "periodStart", "periodEnd"
    from written order by provider, "subscriptionId", kind
    on conflict (provider, subscription_id, kind) do update set
      user_id = excluded.user_id, status = excluded.status, quantity = excluded.quantity, addons = excluded.addons,
      period_start = excluded.period_start, period_end = excluded.period_end, updated_at = now()
    where (subscriptions.user_id, subscriptions.status, subscriptions.quantity, subscriptions.addons,
        subscriptions.period_start, subscriptions.period_end)
      is distinct from (excluded.user_id, excluded.status, excluded.quantity, excluded.addons, excluded.period_start,
        excluded.period_end)`
}

interface AccountWithDeadline {
  id: string
  planStatus: PlanStatus
}

/** Accounts whose entitlement changes at a deadline: each needs a running workflow. */
export const listAccountsWithDeadline = async (sql: Sql): Promise<AccountWithDeadline[]> =>
  sql<AccountWithDeadline[]>`select id, plan_status from users where entitlement_due_at is not null`

/** The number of accounts whose deadline passed more than `afterSeconds` ago. */
export const countOverdueAccounts = async (sql: Sql, afterSeconds: number): Promise<number> =>
  (await firstValue(sql<{ accounts: number }[]>`
    select count(*)::int as accounts from users where entitlement_due_at < now() - make_interval(secs => ${afterSeconds})`)) ??
  0

export interface PlanRow {
  planTier: PlanTier
  planStatus: PlanStatus
  addons: number
  periodEnd: Date | null
  endsAt: Date | null
  graceEndsAt: Date | null
  /** Whether the account has or had a subscription at a provider. */
  hasSubscriptions: boolean
}

/** The account's plan as last written by its workflow. */
export const findPlan = async (sql: Sql, userId: string): Promise<PlanRow | undefined> =>
  first(sql<PlanRow[]>`
    select plan_tier, plan_status, addons, period_end, plan_until as ends_at,
      payment_grace_ends_at as grace_ends_at,
      exists (select from subscriptions s where s.user_id = users.id) as has_subscriptions
    from users where id = ${userId}`)

/**
 * Whether the latest payment for a plan of the account failed, by the provider's times. An activation is a payment too.
 */
export const isLastPaymentFailed = async (sql: Sql, userId: string): Promise<boolean> =>
  (await firstValue(sql<{ action: string }[]>`
    select action from billing_events
    where user_id = ${userId} and event ->> 'kind' = 'plan'
      and action in ('activate', 'payment_failed', 'payment_recovery', 'grant')
    order by occurred_at desc, action = 'payment_failed', seq desc limit 1`)) === 'payment_failed'

/** The dependencies of `createBilling` that read the database. */
export const createBillingDeps = (sql: Database) => ({
  store: createSandboxStore(sql),
  findKind: (provider: string, subscriptionId: string) => findSubscriptionKind(sql, provider, subscriptionId),
})

/** The kind in the latest event of the subscription. */
const findSubscriptionKind = async (
  sql: Sql,
  provider: string,
  subscriptionId: string,
): Promise<SubscriptionKind | undefined> =>
  firstValue(sql<{ kind: SubscriptionKind }[]>`
    select event ->> 'kind' as kind from billing_events
    where provider = ${provider} and subscription_id = ${subscriptionId} and event is not null
    order by occurred_at desc, seq desc limit 1`)
