/**
 * The jobs of deleted accounts. One carries out scheduled deletions: it cancels the subscriptions, and erases the
 * accounts that are due. The other cancels what is billed for an account that was erased before.
 */

import {
  type BilledSubscription,
  listDueCancellations,
  postponeCancellation,
} from '../../db/billing/erased-account-subscriptions.ts'
import type { Database } from '../../db/connection.ts'
import {
  listDueDeletions,
  listUncancelledSubscriptions,
  type ScheduledDeletion,
  scheduleDeletionAttempt,
} from '../../db/identity/account-deletion.ts'
import { eraseAccount } from '../../db/transactions/erase-account.ts'
import { recordCancellation } from '../../db/transactions/record-cancellation.ts'
import type { BillingSource } from '../../domain/billing/event.ts'
import type { Logger } from '../../platform/log.ts'
import type { Billing } from '../../providers/billing/billing.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly billing: Billing
}

/** An account has few subscriptions. With calls of 10 s at most, these take less than half of what a run may take. */
const deletionsMax = 10
/** The same for calls one after another. */
const cancellationsMax = 10

export const accountDeletionJobs = (deps: Deps): readonly Job[] => [
  { name: 'delete_accounts', everySeconds: 5, runSecondsMax: 300, run: (signal) => deleteAccounts(deps, signal) },
  {
    name: 'cancel_erased_subscriptions',
    everySeconds: 5,
    runSecondsMax: 300,
    run: (signal) => cancelErasedSubscriptions(deps, signal),
  },
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
  for (const subscription of subscriptions) await cancelAtProvider(subscription, billing)
  return subscriptions.length
}

/** It can be repeated. */
async function cancelAtProvider(
  { provider, subscriptionId }: { readonly provider: BillingSource; readonly subscriptionId: string },
  billing: Billing,
): Promise<void> {
  if (provider !== billing.provider.name)
    throw new Error(`a subscription at ${provider}, which is not the configured provider, has to be cancelled there`)
  await billing.provider.cancel(subscriptionId)
}

async function cancelErasedSubscriptions(deps: Deps, signal?: AbortSignal): Promise<void> {
  for (const subscription of await listDueCancellations(deps.sql, cancellationsMax)) {
    if (signal?.aborted) return
    await cancelErasedSubscription(deps, subscription)
  }
}

async function cancelErasedSubscription({ sql, log, billing }: Deps, subscription: BilledSubscription): Promise<void> {
  const { provider, subscriptionId, accountId } = subscription
  const names = { provider, subscription_id: subscriptionId, account_id: accountId }
  try {
    await cancelAtProvider(subscription, billing)
    await recordCancellation(sql, subscription)
    log.warn(
      names,
      'a subscription that was billed for an erased account was cancelled; its last payment may be refunded',
    )
  } catch (error) {
    log.error({ err: error, ...names }, 'a subscription of an erased account could not be cancelled; it is retried')
    await postponeCancellation(sql, subscription, (error as Error).message)
  }
}
