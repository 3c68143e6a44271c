/** Wakes the workflows of accounts that did not act: on an event whose signal was lost, or on a deadline. */
import pLimit from 'p-limit'
import { claimDeadlineWakes, claimInboxWakes, releaseWakes } from '../../db/billing/subscription-wakes.ts'
import type { Database } from '../../db/connection.ts'
import { assignParkedEvents } from '../../db/transactions/assign-parked-events.ts'
import type { Logger } from '../../platform/log.ts'
import type { SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly subscriptions: SubscriptionWorkflows
}

const accountsMax = 500
/** Concurrent calls to Temporal: many due accounts queue instead of failing. */
const callsMax = 16
/** No wake is sent later than this in a run, which so ends within its lease while Temporal does not answer. */
const wakeMillisMax = 60_000
/** The signal that follows the acceptance of an event has this long to take effect. */
const unappliedSeconds = 3
/** A workflow's own timer has this long to act on a deadline. */
const overdueSeconds = 15

export const billingJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'deliver_billing_events',
    everySeconds: 2,
    runSecondsMax: 120,
    run: (signal) => deliverBillingEvents(deps, signal),
  },
  {
    name: 'wake_subscriptions',
    everySeconds: 30,
    runSecondsMax: 120,
    run: async (signal) => wakeAccounts(await claimDeadlineWakes(deps.sql, overdueSeconds, accountsMax), deps, signal),
  },
]

/** Moves parked events to accounts that exist by now, and wakes the workflows of accounts with unapplied events. */
async function deliverBillingEvents(deps: Deps, signal?: AbortSignal): Promise<void> {
  const { sql, log } = deps
  const { assigned, deadLettered } = await assignParkedEvents(sql)
  if (assigned > 0) log.info({ subscriptions: assigned }, 'parked billing events were moved to their account')
  if (deadLettered > 0)
    log.error({ events: deadLettered }, 'billing events without an account for 30 days were dead-lettered')
  await wakeAccounts(await claimInboxWakes(sql, unappliedSeconds, accountsMax), deps, signal)
}

/** A workflow that was terminated is started again by its signal. */
async function wakeAccounts(
  userIds: readonly string[],
  { sql, log, subscriptions }: Deps,
  signal?: AbortSignal,
): Promise<void> {
  const until = Date.now() + wakeMillisMax
  const unsent: string[] = []
  const wake = async (userId: string) => {
    if (signal?.aborted || Date.now() > until) return void unsent.push(userId)
    try {
      await subscriptions.wake(userId)
    } catch (error) {
      unsent.push(userId)
      log.warn({ err: error, user_id: userId }, 'a subscription workflow could not be signalled; the next run retries')
    }
  }
  await pLimit(callsMax).map(userIds, wake)
  await releaseWakes(sql, unsent)
}
