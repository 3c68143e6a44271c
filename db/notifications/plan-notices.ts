/**
 * Accounts that are about to be mailed about their plan. Each function marks them as mailed and runs in the transaction
 * that enqueues the mails, so that each is mailed once whatever is killed in between.
 */
import type { Sql } from '../connection.ts'

interface EndingPlan {
  readonly userId: string
  readonly endsAt: Date
  readonly now: Date
}

/**
 * Accounts whose plan ends within `hours`, the next end first. An end that was claimed before is left out, and one
 * after which a subscription goes on, as after a grant.
 */
export const claimEndingPlans = async (tx: Sql, hours: number, limit: number): Promise<EndingPlan[]> =>
  tx<EndingPlan[]>`
    update users set plan_ending_notified_for = plan_until
    where id = any (array(
      select id from users
      where plan_tier = 'paid' and plan_until > now() and plan_until < now() + make_interval(hours => ${hours})
        and plan_ending_notified_for is distinct from plan_until
        and not exists (select from subscriptions s where s.user_id = users.id and s.kind = 'plan'
          and s.status in ('active', 'cancelled') and s.period_end > plan_until
          and s.period_end is distinct from users.period_end)
      order by plan_until limit ${limit} for no key update skip locked))
    returning id as user_id, plan_until as ends_at, now() as now`

interface UntoldAccount {
  readonly userId: string
  readonly email: string
}

/** Accounts with a verified address that do not know yet that mails about payments are on. */
export const claimUntoldAccounts = async (tx: Sql, limit: number): Promise<UntoldAccount[]> =>
  tx<UntoldAccount[]>`
    update users set billing_mails_announced_at = now()
    where id = any (array(
      select id from users where billing_mails_announced_at is null and email_verified_at is not null
      order by id limit ${limit} for no key update skip locked))
    returning id as user_id, email`
