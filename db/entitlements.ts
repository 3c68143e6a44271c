/** What an account may do with relays: its plan, an operator's word, what its Time Bank holds, and how many relays it has. */
import type { Config } from '../platform/config/config.ts'
import type { Sql } from './connection.ts'
import { findUsages, type Usage } from './usage.ts'

type TimeBank = Config['timeBank']
type UsagesOf = (userIds: readonly string[]) => Promise<ReadonlyMap<string, Usage>>

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
  planTier: PlanTier
  planStatus: PlanStatus
  addons: number
  relayAccessEnabled: boolean
  paymentGraceEndsAt: Date | null
  activeManagedConns: number
}

/**
 * Each account's entitlement as it is now, by its id; nothing for an unknown one. A disabled account may have no relays: its
 * start may have been let in just before.
 * @param usages how the Time Bank is asked, which happens only where it is enforced; for who has asked already.
 */
export async function findEntitlements(
  sql: Sql,
  userIds: readonly string[],
  timeBank: TimeBank,
  usages: UsagesOf = (ids) => findUsages(sql, ids),
): Promise<Map<string, Entitlement>> {
  const rows = await sql<(EntitlementRow & { id: string })[]>`
    select id, plan_tier, plan_status, addons, relay_access_enabled and disabled_at is null as relay_access_enabled,
      payment_grace_ends_at,
      (select count(*)::int from relay_sessions s where s.user_id = u.id and ${countsAgainstLimit(sql)}) as active_managed_conns
    from users u where id = any(${userIds}::uuid[])`
  const entitlements = new Map(rows.map((row) => [row.id, judge(row)] as const))
  return timeBank.enforcement === 'enforce' ? enforced(entitlements, timeBank, usages) : entitlements
}

export const findEntitlement = async (sql: Sql, userId: string, timeBank: TimeBank): Promise<Entitlement | undefined> =>
  (await findEntitlements(sql, [userId], timeBank)).get(userId)

/** The relay time of a cycle that goes with the plan, in seconds, pooled over all of its relays. */
export const includedSeconds = ({ maxConcurrentConns }: Entitlement, { hoursPerRelay }: TimeBank): number =>
  hoursPerRelay * 3600 * maxConcurrentConns

/** Whoever might have relays, and has used up what goes with the plan, gets no more of them. */
async function enforced(
  entitlements: ReadonlyMap<string, Entitlement>,
  timeBank: TimeBank,
  usages: UsagesOf,
): Promise<Map<string, Entitlement>> {
  const enabled = [...entitlements].filter(([, { reasonCode }]) => reasonCode === 'ok').map(([userId]) => userId)
  const used = await usages(enabled)
  const judged = (userId: string, entitlement: Entitlement): Entitlement =>
    entitlement.reasonCode === 'ok' &&
    (used.get(userId)?.consumedSeconds ?? 0) >= includedSeconds(entitlement, timeBank)
      ? { ...entitlement, relayAccessStatus: 'disabled', reasonCode: 'usage_exhausted' }
      : entitlement
  return new Map([...entitlements].map(([userId, entitlement]) => [userId, judged(userId, entitlement)]))
}

/**
 * Provisioning, active, and grace for lost health. A session that was asked to stop makes room for another, until it is asked
 * to go on: then it counts at once, though its actor may hear of it later.
 */
export const countsAgainstLimit = (sql: Sql) => sql`
  (s.state <> 'stopped' and s.command = 'run'
    and not (s.state = 'grace' and s.reason = 'stop_requested' and s.commanded_at <= s.grace_started_at))`

function judge(row: EntitlementRow): Entitlement {
  const paid = row.planTier === 'paid'
  const reasonCode = !row.relayAccessEnabled ? 'operator_disabled' : paid ? 'ok' : 'plan_required'
  return {
    planTier: row.planTier,
    planStatus: row.planStatus,
    relayAccessStatus: reasonCode === 'ok' ? 'enabled' : 'disabled',
    reasonCode,
    activeManagedConns: row.activeManagedConns,
    maxConcurrentConns: paid ? 1 + Math.min(3, row.addons) : 0,
    graceEndsAt: row.paymentGraceEndsAt,
  }
}
