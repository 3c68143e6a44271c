/** Records that a subscription was cancelled that was billed for an erased account. */
import { recordAuditEntry } from '../audit.ts'
import { type BilledSubscription, markCancelled } from '../billing/erased-account-subscriptions.ts'
import type { Database } from '../connection.ts'

export const recordCancellation = (sql: Database, subscription: BilledSubscription): Promise<void> =>
  sql.begin(async (tx) => {
    if (!(await markCancelled(tx, subscription))) return
    const { provider, subscriptionId, accountId } = subscription
    await recordAuditEntry(tx, {
      initiator: 'system',
      action: 'erased_subscription_cancelled',
      detail: { provider, subscription_id: subscriptionId, account_id: accountId },
    })
  })
