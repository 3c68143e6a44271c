/** What an account may use: its plan, its access to relays, the relays that it has, and its relay time. */
import {
  type AccessReason,
  type AccessStatus,
  accessReason,
  isAccessOpen,
  type PlanStatus,
  type PlanTier,
  relayLimit,
} from '../../domain/billing/plans.ts'
import { type Trial, type TrialFacts, trialOf, trialRelaysMax } from '../../domain/billing/trial.ts'
import { includedSeconds, type UsageCycle, usageCycleAt } from '../../domain/billing/usage-cycle.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Fragment, Sql } from '../connection.ts'
import { findTrialFacts } from './trials.ts'
import { findUsages, type Usage } from './usage.ts'

type TimeBank = Config['timeBank']

export interface Entitlement {
  readonly planTier: PlanTier
  readonly planStatus: PlanStatus
  readonly relayAccessStatus: AccessStatus
  readonly reasonCode: AccessReason
  /** Relays that count against the limit; those that were asked to stop do not. */
  readonly activeManagedConns: number
  readonly maxConcurrentConns: number
  readonly graceEndsAt: Date | null
  /** When the relays beyond the limit end; null if there are none. */
  readonly surplusEndsAt: Date | null
  /** Relay time that the plan includes in a cycle; of an account with a trial, what it used and what remains. */
  readonly includedSeconds: number
  /** Of an account without a plan; null where it gets none. */
  readonly trial: Trial | null
}

export interface EntitlementWithUsage {
  readonly entitlement: Entitlement
  readonly usage: Usage
}

/** Undefined for an unknown account. Measures relay time only where it is enforced. */
export async function findEntitlement(sql: Sql, userId: string, timeBank: TimeBank): Promise<Entitlement | undefined> {
  const [account] = await findAccounts(sql, [userId])
  if (!account) return undefined
  const isMeasured = isEnforced(timeBank) && accessWithoutUsage(account) === 'ok'
  const usages = await findUsages(sql, isMeasured ? [account] : [])
  const trials = await findTrials(sql, [account], timeBank)
  return decideEntitlement(account, usages.get(userId), trials.get(userId), timeBank)
}

/** The entitlements and the relay time of accounts by their ids, without unknown accounts. */
export const findEntitlementsWithUsage = async (
  sql: Sql,
  userIds: readonly string[],
  timeBank: TimeBank,
): Promise<Map<string, EntitlementWithUsage>> => addUsage(sql, await findAccounts(sql, userIds), timeBank)

/** The same for accounts that were read with {@link accountColumns}. */
export const findEntitlementsOf = (
  sql: Sql,
  rows: readonly AccountRow[],
  timeBank: TimeBank,
): Promise<Map<string, EntitlementWithUsage>> => addUsage(sql, rows.map(toAccount), timeBank)

async function addUsage(
  sql: Sql,
  accounts: readonly Account[],
  timeBank: TimeBank,
): Promise<Map<string, EntitlementWithUsage>> {
  const [usages, trials] = await Promise.all([findUsages(sql, accounts), findTrials(sql, accounts, timeBank)])
  return new Map(
    accounts.flatMap((account) => {
      const usage = usages.get(account.userId)
      if (!usage) return []
      const entitlement = decideEntitlement(account, usage, trials.get(account.userId), timeBank)
      return [[account.userId, { usage, entitlement }]]
    }),
  )
}

/** Without a statement where trials are off, and for accounts with a plan. */
const findTrials = (
  sql: Sql,
  accounts: readonly Account[],
  { trialSeconds }: TimeBank,
): Promise<Map<string, TrialFacts>> =>
  findTrialFacts(
    sql,
    trialSeconds === 0 ? [] : accounts.filter(({ planTier }) => planTier === 'free').map(({ userId }) => userId),
  )

export interface AccountRow {
  readonly userId: string
  readonly planTier: PlanTier
  readonly planStatus: PlanStatus
  readonly addons: number
  readonly periodStart: Date | null
  readonly periodEnd: Date | null
  readonly isEnabledByOperator: boolean
  readonly isDeletionScheduled: boolean
  readonly paymentGraceEndsAt: Date | null
  readonly surplusEndsAt: Date | null
  readonly activeManagedConns: number
  readonly asOf: Date
}

interface Account extends AccountRow {
  readonly usageCycle: UsageCycle
}

/**
 * The columns of {@link AccountRow} in `users`, without the id and the plan. A disabled account counts as disabled by
 * an operator: a start may have been admitted just before.
 */
export const accountColumns = (sql: Sql): Fragment => sql`
  plan_status, addons, period_start, period_end, payment_grace_ends_at, surplus_ends_at,
  relay_access_enabled and disabled_at is null as is_enabled_by_operator,
  deletion_due_at is not null as is_deletion_scheduled, now() as as_of,
  (select count(*)::int from relay_sessions s where s.user_id = users.id and ${countsAgainstLimit(sql)}) as active_managed_conns`

const findAccounts = async (sql: Sql, userIds: readonly string[]): Promise<Account[]> =>
  (
    await sql<AccountRow[]>`
      select id as user_id, plan_tier, ${accountColumns(sql)} from users
      where ${
        // Postgres reuses the plan for one id, which it does not with a list.
        userIds.length === 1 ? sql`id = ${userIds[0] ?? null}` : sql`id = any(${userIds}::uuid[])`
      }`
  ).map(toAccount)

const toAccount = (row: AccountRow): Account => ({
  ...row,
  usageCycle: usageCycleAt(row.asOf.getTime(), {
    planTier: row.planTier,
    periodStart: row.periodStart?.getTime() ?? null,
    periodEnd: row.periodEnd?.getTime() ?? null,
  }),
})

const isEnforced = ({ enforcement }: TimeBank): boolean => enforcement === 'enforce'

const accessWithoutUsage = (account: Account): AccessReason =>
  accessReason({ ...account, isUsageExhausted: false, isTrialOpen: false })

function decideEntitlement(
  account: Account,
  usage: Usage | undefined,
  facts: TrialFacts | undefined,
  timeBank: TimeBank,
): Entitlement {
  const included = includedSeconds(relayLimit(account), timeBank.hoursPerRelay)
  const isUsageExhausted = isEnforced(timeBank) && usage !== undefined && usage.consumedSeconds >= included
  const trial = facts ? trialOf(facts, timeBank.trialSeconds) : null
  const reasonCode = accessReason({ ...account, isUsageExhausted, isTrialOpen: trial?.state === 'open' })
  const limit = reasonCode === 'trial' ? trialRelaysMax : relayLimit(account)
  return {
    planTier: account.planTier,
    planStatus: account.planStatus,
    relayAccessStatus: isAccessOpen(reasonCode) ? 'enabled' : 'disabled',
    reasonCode,
    activeManagedConns: account.activeManagedConns,
    maxConcurrentConns: limit,
    graceEndsAt: account.paymentGraceEndsAt,
    surplusEndsAt: account.activeManagedConns > limit ? account.surplusEndsAt : null,
    includedSeconds: trial ? (usage?.consumedSeconds ?? 0) + trial.remainingSeconds : included,
    trial,
  }
}

/**
 * Provisioning, active, and grace for lost health. A session that was asked to stop makes room for another one. If it
 * is asked to run again, it counts at once, before its workflow takes it back to active.
 */
export const countsAgainstLimit = (sql: Sql) => sql`
  (s.state <> 'stopped' and s.command = 'run'
    and not (s.state = 'grace' and s.reason = 'stop_requested' and s.commanded_at <= s.grace_started_at))`
