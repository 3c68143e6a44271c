/** Looks again for the accounts of parked billing events. */
import { ignoreEventsOfErasedAccounts } from '../billing/erased-account-subscriptions.ts'
import { deadLetterEvents } from '../billing/events.ts'
import { assignOwner, findClaimedSubscriptions, lockAccounts, lockSubscriptions } from '../billing/owners.ts'
import type { Database } from '../connection.ts'

/** Subscriptions that one round assigns at most. */
const assignedMax = 500

/**
 * Moves parked events to the inbox of their account if it exists, ignores those of erased accounts, and dead-letters
 * those that were parked for too long. Returns the number of assigned subscriptions and of dead-lettered events.
 */
export async function assignParkedEvents(sql: Database): Promise<{ assigned: number; deadLettered: number }> {
  await ignoreEventsOfErasedAccounts(sql)
  let assigned = 0
  for (const subscription of await findClaimedSubscriptions(sql, assignedMax)) {
    const changed = await sql.begin(async (tx) => {
      await lockSubscriptions(tx, [subscription])
      await lockAccounts(tx, [subscription], [])
      return assignOwner(tx, subscription)
    })
    if (changed.length > 0) assigned += 1
  }
  return { assigned, deadLettered: await deadLetterEvents(sql) }
}
