/** The rounds that keep money true: events that did not reach their actor, and actors that slept over a deadline. */
import pLimit from 'p-limit'
import { accountsWithNews, sortParked } from '../../db/billing-events.ts'
import type { Database } from '../../db/connection.ts'
import { overdueAccounts } from '../../db/subscriptions.ts'
import type { Logger } from '../../platform/log.ts'
import type { SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import type { Job } from './jobs.ts'
import { createReminders, type Reminders } from './reminders.ts'

interface Needs {
  readonly sql: Database
  readonly log: Logger
  readonly subscriptions: SubscriptionWorkflows
}

const roundMax = 500
/** Calls to Temporal under way at once, so that a storm queues instead of failing. */
const callsMax = 16
/** An actor that should have acted this long ago is asleep, dead, or lost with its history. */
const overdueSeconds = 15

export function billingJobs(needs: Needs): readonly Job[] {
  const [ofNews, ofDeadlines] = [createReminders(), createReminders()]
  return [
    {
      name: 'deliver_billing_events',
      everySeconds: 2,
      roundSecondsMax: 120,
      run: () => deliverBillingEvents(needs, ofNews),
    },
    {
      name: 'wake_subscriptions',
      everySeconds: 30,
      roundSecondsMax: 120,
      run: () => wakeSubscriptions(needs, ofDeadlines),
    },
  ]
}

/** Tells actors again of events that they have not taken, and hands parked events on whose account is there by now. */
async function deliverBillingEvents(needs: Needs, reminders: Reminders): Promise<void> {
  const { sql, log } = needs
  const { found, buried } = await sortParked(sql)
  if (found > 0) log.info({ found }, 'parked billing events have found their account')
  if (buried > 0) log.error({ buried }, 'billing events found no account for 30 days and were given up')
  await tellAll(await accountsWithNews(sql, 3, roundMax, reminders.resting()), needs, reminders)
}

/** Wakes actors that did not act when they should have. One that was terminated is started anew. */
async function wakeSubscriptions(needs: Needs, reminders: Reminders): Promise<void> {
  const userIds = await overdueAccounts(needs.sql, overdueSeconds, roundMax, reminders.resting())
  await tellAll(userIds, needs, reminders)
}

async function tellAll(userIds: readonly string[], { log, subscriptions }: Needs, reminders: Reminders): Promise<void> {
  const limit = pLimit(callsMax)
  await Promise.all(
    userIds.map((userId) =>
      limit(() =>
        subscriptions
          .wake(userId)
          .then(() => reminders.told(userId))
          .catch((error: unknown) => log.warn({ err: error, user_id: userId }, 'a subscription could not be told yet')),
      ),
    ),
  )
}
