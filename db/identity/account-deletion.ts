/**
 * Deletion of accounts: scheduled by the owner, possible to take back during a grace period, then carried out by a job.
 * All times are those of the database.
 */
import type { BillingSource } from '../../domain/billing/event.ts'
import { backoffSeconds } from '../backoff.ts'
import { first, hasRow, type Sql } from '../connection.ts'

/**
 * Schedules the deletion, unless it is scheduled already. The caller has locked the account's row.
 * @returns when the account is erased, and whether this call has scheduled it.
 */
export async function scheduleDeletion(
  sql: Sql,
  userId: string,
  graceSeconds: number,
): Promise<{ dueAt: Date; isNew: boolean }> {
  const { count } = await sql`
    update users set deletion_due_at = now() + make_interval(secs => ${graceSeconds}), deletion_attempt_at = now(),
      deletion_attempts = 0
    where id = ${userId} and deletion_due_at is null`
  const row = await first(sql<{ dueAt: Date }[]>`select deletion_due_at as due_at from users where id = ${userId}`)
  if (!row) throw new Error('the account does not exist')
  return { dueAt: row.dueAt, isNew: count === 1 }
}

/**
 * Disables the account and makes its deletion due, so that its owner cannot take it back.
 * @returns false if it is disabled and due already.
 */
export const makeDeletionDue = async (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`
    update users set disabled_at = coalesce(disabled_at, now()), deletion_due_at = least(deletion_due_at, now()),
      deletion_attempt_at = now(), deletion_attempts = 0
    where id = ${userId} and (disabled_at is null or deletion_due_at is null or deletion_due_at > now())`)

/** @returns whether a deletion was scheduled. */
export const withdrawDeletion = async (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`
    update users set deletion_due_at = null, deletion_attempt_at = null, deletion_attempts = 0
    where id = ${userId} and deletion_due_at is not null`)

export interface ScheduledDeletion {
  readonly userId: string
  readonly isDue: boolean
}

/** Scheduled deletions whose next attempt is due, the most overdue first. */
export const listDueDeletions = async (sql: Sql, rowsMax: number): Promise<ScheduledDeletion[]> =>
  sql<ScheduledDeletion[]>`
    select id as user_id, deletion_due_at <= now() as is_due from users
    where deletion_due_at is not null and deletion_attempt_at <= now()
    order by deletion_attempt_at limit ${rowsMax}`

/** For `subscriptions s`: its provider still charges for it, or tries to. */
export const isUncancelled = (sql: Sql) => sql`s.status in ('active', 'past_due') and s.provider <> 'operator'`

interface UncancelledSubscription {
  readonly provider: BillingSource
  readonly subscriptionId: string
}

/** The account's subscriptions at providers that are not cancelled, while its deletion is scheduled. */
export const listUncancelledSubscriptions = async (sql: Sql, userId: string): Promise<UncancelledSubscription[]> =>
  sql<UncancelledSubscription[]>`
    select distinct s.provider, s.subscription_id from subscriptions s join users u on u.id = s.user_id
    where u.id = ${userId} and u.deletion_due_at is not null and ${isUncancelled(sql)}`

const backoff = { firstSeconds: 5, secondsMax: 600 }
/** A subscription that is bought at a payment page after the deletion was scheduled is cancelled within this time. */
const lookSeconds = 3600

/** Schedules the next attempt: with backoff while something stands in the way, else at the end of the grace period. */
export const scheduleDeletionAttempt = async (sql: Sql, userId: string, isBlocked: boolean): Promise<void> => {
  await sql`
    update users set
      deletion_attempts = case when ${isBlocked} then deletion_attempts + 1 else 0 end,
      deletion_attempt_at = case when ${isBlocked}
        then now() + make_interval(secs => ${backoffSeconds(sql, sql`deletion_attempts`, backoff)})
        else least(greatest(deletion_due_at, now()), now() + make_interval(secs => ${lookSeconds})) end
    where id = ${userId} and deletion_due_at is not null`
}
