/** What an account may do with relays: its plan, an operator's word, and how many relays it has. */
import type { Sql } from './connection.ts'

export type PlanTier = 'free' | 'paid'
export type PlanStatus = 'none' | 'active' | 'past_due' | 'cancelled'

export interface Entitlement {
  readonly planTier: PlanTier
  readonly planStatus: PlanStatus
  readonly relayAccessStatus: 'enabled' | 'disabled'
  readonly reasonCode: 'ok' | 'plan_required' | 'operator_disabled' | 'usage_exhausted'
  /** Relays that count against the limit: not those that were asked to stop. */
  readonly activeManagedConns: number
  /** One with the plan and one for each of up to three add-ons; none without. */
  readonly maxConcurrentConns: number
  readonly graceEndsAt: Date | null
}

interface EntitlementRow {
  plan_tier: PlanTier
  plan_status: PlanStatus
  addons: number
  relay_access_enabled: boolean
  payment_grace_ends_at: Date | null
  active_managed_conns: number
}

/**
 * Each account's entitlement as it is now, by its id; nothing for an unknown one. A plan given for a time ends by itself.
 * A disabled account may have no relays: its start may have been let in just before.
 */
export async function entitlementsOf(sql: Sql, userIds: readonly string[]): Promise<Map<string, Entitlement>> {
  const rows = await sql<(EntitlementRow & { id: string })[]>`
    select id,
      case when plan_until <= now() then 'free' else plan_tier end as plan_tier,
      case when plan_until <= now() then 'none' else plan_status end as plan_status,
      addons, relay_access_enabled and disabled_at is null as relay_access_enabled, payment_grace_ends_at,
      (select count(*)::int from relay_sessions s where s.user_id = u.id and ${countsAgainstLimit(sql)}) as active_managed_conns
    from users u where id = any(${userIds}::uuid[])`
  return new Map(rows.map((row) => [row.id, judge(row)] as const))
}

export const entitlementOf = async (sql: Sql, userId: string): Promise<Entitlement | undefined> =>
  (await entitlementsOf(sql, [userId])).get(userId)

/**
 * Provisioning, active, and grace for lost health. A session that was asked to stop makes room for another, until it is asked
 * to go on: then it counts at once, though its actor may hear of it later.
 */
export const countsAgainstLimit = (sql: Sql) => sql`
  (s.state <> 'stopped' and s.command = 'run'
    and not (s.state = 'grace' and s.reason = 'stop_requested' and s.commanded_at <= s.grace_started_at))`

function judge(row: EntitlementRow): Entitlement {
  const paid = row.plan_tier === 'paid'
  const reasonCode = !row.relay_access_enabled ? 'operator_disabled' : paid ? 'ok' : 'plan_required'
  return {
    planTier: row.plan_tier,
    planStatus: row.plan_status,
    relayAccessStatus: reasonCode === 'ok' ? 'enabled' : 'disabled',
    reasonCode,
    activeManagedConns: row.active_managed_conns,
    maxConcurrentConns: paid ? 1 + Math.min(3, row.addons) : 0,
    graceEndsAt: row.payment_grace_ends_at,
  }
}

export interface Grant {
  readonly planTier: PlanTier
  readonly addons: number
  /** When it ends; null for never. */
  readonly until: Date | null
}

/** Gives the account a plan by an operator's word. Answers whether the account exists. */
export const grantPlan = async (sql: Sql, userId: string, grant: Grant): Promise<boolean> =>
  (
    await sql`
      update users set
        plan_tier = ${grant.planTier}, plan_status = ${grant.planTier === 'paid' ? 'active' : 'none'},
        addons = ${grant.planTier === 'paid' ? grant.addons : 0}, plan_until = ${grant.planTier === 'paid' ? grant.until : null},
        payment_grace_ends_at = null, entitlement_version = entitlement_version + 1
      where id = ${userId}`
  ).count === 1
