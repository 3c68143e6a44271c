/**
 * Which subscription workflows the jobs wake. The backoff is stored with the account: a workflow that cannot act, as
 * after a faulty release, would otherwise fill its history with signals, and keep others waiting behind it.
 */
import type { Fragment } from 'postgres'
import { backoffSeconds } from '../backoff.ts'
import type { Sql } from '../connection.ts'

const backoff = { firstSeconds: 4, secondsMax: 600 }

/**
 * Claims a wake for accounts whose workflow has not applied an event, or a change of its inbox, for `afterSeconds`;
 * those that wait longest first. Returns their ids.
 */
export const claimInboxWakes = (sql: Sql, afterSeconds: number, limit: number): Promise<string[]> =>
  claimWakes(
    sql,
    sql`
      select user_id, min(received_at) as since, max(received_at) as latest from billing_events
      where status = 'pending' and user_id is not null and received_at < now() - make_interval(secs => ${afterSeconds})
      group by user_id
      union all
      select id, inbox_changed_at, inbox_changed_at from users
      where inbox_changed_at < now() - make_interval(secs => ${afterSeconds})`,
    limit,
  )

/**
 * Claims a wake for accounts whose deadline passed more than `afterSeconds` ago, the most overdue first. Returns their
 * ids.
 */
export const claimDeadlineWakes = (sql: Sql, afterSeconds: number, limit: number): Promise<string[]> =>
  claimWakes(
    sql,
    sql`
      select id as user_id, entitlement_due_at as since, entitlement_due_at as latest from users
      where entitlement_due_at < now() - make_interval(secs => ${afterSeconds})`,
    limit,
  )

/**
 * An account is due when its backoff is over or something new happened since its last wake, which starts the backoff
 * again. Accounts that another transaction has locked are left to the next run.
 * @param waiting rows of `user_id`, `since` and `latest`: when the account began to wait, and when the newest reason
 * came.
 */
const claimWakes = async (sql: Sql, waiting: Fragment, limit: number): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      with waiting (user_id, since, latest) as (${waiting}),
      accounts as (select user_id, min(since) as since, max(latest) as latest from waiting group by user_id),
      due as (
        select u.id, case when a.latest > u.woken_at then 0 else u.wake_attempts end as attempts
        from accounts a join users u on u.id = a.user_id
        where u.next_wake_at is null or u.next_wake_at <= now() or a.latest > u.woken_at
        order by a.since limit ${limit} for no key update of u skip locked)
      update users u set wake_attempts = due.attempts + 1, woken_at = now(),
        next_wake_at = now() + make_interval(secs => ${backoffSeconds(sql, sql`due.attempts`, backoff)})
      from due where u.id = due.id
      returning u.id`
  ).map((row) => row.id)

/** Makes accounts due again whose claimed wake was not sent. */
export const releaseWakes = async (sql: Sql, userIds: readonly string[]): Promise<void> => {
  if (userIds.length === 0) return
  await sql`
    update users set wake_attempts = greatest(wake_attempts - 1, 0), next_wake_at = null where id in (
      select id from users where id = any(${userIds}::uuid[]) order by id for no key update)`
}
