/** Accounts that were erased at their owner's request: what arrives for them later is neither stored in detail nor an alarm. */
import { accountIdIn } from './billing-owners.ts'
import { first, type Sql } from './connection.ts'

/** Whether the account was erased, as far as it is recorded. */
export const isErased = async (sql: Sql, userId: string): Promise<boolean> =>
  first(await sql`select from erased_accounts where user_id = ${userId}`) !== undefined

/** Ignores parked events of subscriptions that belonged to an erased account, and deletes their bodies. Returns their number. */
export const ignoreEventsOfErasedAccounts = async (sql: Sql): Promise<number> =>
  (
    await sql`
      update billing_events e set status = 'ignored', error = null, body = null, settled_at = clock_timestamp()
      where e.status = 'parked' and exists (
        select from billing_events o join erased_accounts x on x.user_id = ${accountIdIn(sql, sql`o.user_ref`)}
        where o.provider = e.provider and o.subscription_id = e.subscription_id)`
  ).count
