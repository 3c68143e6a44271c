/** Numbers of accounts by plan and of unused billing, for operators. Each number is read from its own index. */
import type { PlanStatus, PlanTier } from '../../domain/billing/plans.ts'
import { first, type Sql } from '../connection.ts'
import { maskEmails, type WithEmail, type WithMaskedEmail } from '../masked-emails.ts'

interface PlanFigure {
  readonly planTier: PlanTier
  readonly planStatus: PlanStatus
  readonly accounts: number
}

export const countAccountsByPlan = async (sql: Sql): Promise<PlanFigure[]> =>
  sql<PlanFigure[]>`
    select plan_tier, plan_status, count(*)::int as accounts
    from users group by plan_tier, plan_status`

interface UnusedBillingFigures {
  /** Add-ons that are billed to accounts without a plan. */
  readonly addonsWithoutPlan: number
  /** Accounts that are billed for more than one plan. */
  readonly accountsWithTwoPlans: number
}

export const countUnusedBilling = async (sql: Sql): Promise<UnusedBillingFigures> =>
  (await first(sql<UnusedBillingFigures[]>`
    select
      (select coalesce(sum(addons_without_plan), 0)::int from users where addons_without_plan > 0) as addons_without_plan,
      (select count(*)::int from users where billed_plans > 1) as accounts_with_two_plans`)) ?? {
    addonsWithoutPlan: 0,
    accountsWithTwoPlans: 0,
  }

interface BilledAccount extends WithMaskedEmail {
  readonly userId: string
  readonly addonsWithoutPlan: number
  readonly billedPlans: number
}

/** One page of the accounts behind one of these numbers. @param after the last account of the previous page. */
export const listUnusedBilling = async (
  sql: Sql,
  type: 'without_plan' | 'twice',
  after: string | undefined,
  limit: number,
): Promise<BilledAccount[]> =>
  maskEmails(
    await sql<WithEmail<BilledAccount>[]>`
      select id as user_id, email, addons_without_plan, billed_plans from users
      where ${type === 'twice' ? sql`billed_plans > 1` : sql`addons_without_plan > 0`}
        ${after === undefined ? sql`` : sql`and id > ${after}`}
      order by id limit ${limit}`,
  )
