/** Erases an account whose deletion is due. */
import { recordAuditEntry } from '../audit.ts'
import { keepTrialOfErased } from '../billing/trials.ts'
import { anonymizeWithdrawals } from '../billing/withdrawals.ts'
import { type Database, first, firstValue, type Sql } from '../connection.ts'
import { isUncancelled } from '../identity/account-deletion.ts'
import { deleteOAuthAccounts } from '../identity/oauth-accounts.ts'

/** What stands in the way of erasing an account. */
type DeletionObstacle = 'relay' | 'instance' | 'subscription' | 'billing_event'

/**
 * Erasing a live relay or its instance would leave a machine without an owner, and a subscription would be charged for
 * ever.
 */
const findObstacle = async (sql: Sql, userId: string): Promise<DeletionObstacle | undefined> =>
  firstValue(sql<{ obstacle: DeletionObstacle }[]>`
    select 'relay' as obstacle from relay_sessions where user_id = ${userId} and state <> 'stopped'
    union all select 'instance' from instances i join relay_sessions s on s.id = i.session_id
      where s.user_id = ${userId} and i.gone_at is null
    union all select 'subscription' from subscriptions s where s.user_id = ${userId} and ${isUncancelled(sql)}
    union all select 'billing_event' from billing_events where user_id = ${userId} and status in ('pending', 'unresolved')
    limit 1`)

type EraseOutcome =
  | { readonly type: 'erased' }
  /** Not scheduled any more, not due, or erased by another process. */
  | { readonly type: 'not_due' }
  | { readonly type: 'blocked'; readonly obstacle: DeletionObstacle }

/**
 * Erases an account that is due, in one transaction. Its rows go with it. Its billing events stay for bookkeeping,
 * without the account and without the bodies of webhooks, which contain names and addresses.
 */
export const eraseAccount = (sql: Database, userId: string): Promise<EraseOutcome> =>
  sql.begin(async (tx): Promise<EraseOutcome> => {
    const due = await first(tx`select from users where id = ${userId} and deletion_due_at <= now() for update`)
    if (!due) return { type: 'not_due' }
    const obstacle = await findObstacle(tx, userId)
    if (obstacle) return { type: 'blocked', obstacle }
    // Queues the revocation of chat tokens at their providers.
    await deleteOAuthAccounts(tx, tx`a.user_id = ${userId}`)
    await tx`update billing_events set body = null where user_id = ${userId}`
    await anonymizeWithdrawals(tx, userId)
    await tx`
      delete from billing_customers c using subscriptions s
      where s.user_id = ${userId} and c.provider = s.provider and c.subscription_id = s.subscription_id`
    await keepTrialOfErased(tx, userId)
    await tx`insert into erased_accounts (user_id) values (${userId}) on conflict do nothing`
    await recordAuditEntry(tx, { initiator: 'system', action: 'account_erased', detail: { account_id: userId } })
    await tx`delete from users where id = ${userId}`
    return { type: 'erased' }
  }) as Promise<EraseOutcome>
