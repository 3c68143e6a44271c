/** The job that carries out scheduled deletions of accounts: it cancels their subscriptions, and erases them when they are due. */
import {
  eraseAccount,
  listDueDeletions,
  listUncancelledSubscriptions,
  type ScheduledDeletion,
  scheduleDeletionAttempt,
} from '../../db/account-deletion.ts'
import type { Database } from '../../db/connection.ts'
import type { Logger } from '../../platform/log.ts'
import type { Billing } from '../../providers/billing/billing.ts'

import type { Job } from './jobs.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly billing: Billing
}

/** An account has few subscriptions. With calls of 10 s at most, these take less than half of what a run may take. */
const deletionsMax = 10

export const accountDeletionJobs = (deps: Deps): readonly Job[] => [
  { name: 'delete_accounts', everySeconds: 5, runSecondsMax: 300, run: (signal) => deleteAccounts(deps, signal) },
]

async function deleteAccounts(deps: Deps, signal?: AbortSignal): Promise<void> {
  for (const deletion of await listDueDeletions(deps.sql, deletionsMax)) {
    if (signal?.aborted) return
    await attempt(deps, deletion)
  }
}

/** Every step can be repeated, so a worker may be killed after any of them. */
async function attempt(deps: Deps, { userId, isDue }: ScheduledDeletion): Promise<void> {
  const { sql, log } = deps
  try {
    const cancelled = await cancelSubscriptions(deps, userId)
    const outcome = isDue ? await eraseAccount(sql, userId) : undefined
    if (outcome?.type === 'erased') log.info({ user_id: userId }, 'an account was erased')
    if (outcome?.type === 'blocked')
      log.warn({ user_id: userId, obstacle: outcome.obstacle }, 'an account cannot be erased yet; it is retried')
    await scheduleDeletionAttempt(sql, userId, cancelled > 0 || outcome?.type === 'blocked')
  } catch (error) {
    log.error({ err: error, user_id: userId }, 'a scheduled deletion of an account failed; it is retried')
    await scheduleDeletionAttempt(sql, userId, true)
  }
}

/** The provider's webhook changes the stored subscriptions. @returns the number of subscriptions that wait for it. */
async function cancelSubscriptions({ sql, billing }: Deps, userId: string): Promise<number> {
  const subscriptions = await listUncancelledSubscriptions(sql, userId)
  for (const { provider, subscriptionId } of subscriptions) {
    if (provider !== billing.provider.name)
      throw new Error(`a subscription at ${provider}, which is not the configured provider, has to be cancelled there`)
    await billing.provider.cancel(subscriptionId)
  }
  return subscriptions.length
}
