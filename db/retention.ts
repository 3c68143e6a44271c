/**
 * How long expired rows stay. Each rule has an index that finds its rows. Relay sessions with the totals
 * of their health reports, transitions, usage and billing events are kept permanently.
 */
import type { Sql } from './connection.ts'
import { operatorNetworkDays } from './operator-networks.ts'
import { refreshTokenDays } from './refresh-tokens.ts'
import { failureHours } from './sign-in-failures.ts'

/** Longer than the 30 days that the limit on sign-in attempts looks back. */
const endedSignInDays = 90
const auditDays = 400
/** Without content. Operators see what failed. */
const endedMessageDays = 30

interface Rule {
  readonly table: string
  /** The condition on rows to delete. */
  readonly isExpired: (sql: Sql) => ReturnType<Sql>
}

/** A day after the row expired, so that a late request is still answered with the reason. */
const expiredForADay: Rule['isExpired'] = (sql) => sql`expires_at < now() - interval '1 day'`

/**
 * Bodies of webhooks contain names, addresses and amounts. An operator can replay an event as long as it has its body; the
 * normalised event, which entitlements are computed from, stays.
 */
const billingBodyDays = 90

/**
 * Deletes the bodies of up to `limit` billing events that were applied or ignored long ago. Other events keep theirs until they
 * are settled. Returns the number of bodies.
 */
export const deleteBillingBodies = async (sql: Sql, limit: number): Promise<number> =>
  (
    await sql`
      update billing_events set body = null where id = any (array(
        select id from billing_events
        where body is not null and status in ('applied', 'ignored')
          and settled_at < now() - make_interval(days => ${billingBodyDays})
        limit ${limit}))`
  ).count

/** Rows that reference others come before those. */
export const retentionRules: readonly Rule[] = [
  { table: 'mail_tokens', isExpired: expiredForADay },
  { table: 'oauth_authorization_requests', isExpired: expiredForADay },
  { table: 'merge_requests', isExpired: expiredForADay },
  { table: 'login_attempts', isExpired: expiredForADay },
  // An unpaid checkout.
  {
    table: 'sandbox_subscriptions',
    isExpired: (sql) => sql`status = 'open' and created_at < now() - interval '1 day'`,
  },
  { table: 'refresh_tokens', isExpired: (sql) => sql`expires_at < now()` },
  { table: 'auth_sessions', isExpired: (sql) => sql`revoked_at < now() - make_interval(days => ${endedSignInDays})` },
  {
    table: 'auth_sessions',
    // Its last refresh token was made when it was last used.
    isExpired: (sql) =>
      sql`revoked_at is null and last_used_at < now() - make_interval(days => ${endedSignInDays + refreshTokenDays})`,
  },
  {
    table: 'operator_networks',
    isExpired: (sql) => sql`last_used_at < now() - make_interval(days => ${operatorNetworkDays})`,
  },
  {
    table: 'outbox_messages',
    isExpired: (sql) =>
      sql`next_attempt_at is null and created_at < now() - make_interval(days => ${endedMessageDays})`,
  },
  { table: 'operator_sessions', isExpired: (sql) => sql`expires_at < now()` },
  { table: 'sign_in_failures', isExpired: (sql) => sql`minute < now() - make_interval(hours => ${failureHours})` },
  { table: 'erased_accounts', isExpired: (sql) => sql`erased_at < now() - make_interval(days => ${auditDays})` },
  { table: 'usage_notices', isExpired: (sql) => sql`at < now() - make_interval(days => ${auditDays})` },
  { table: 'audit_entries', isExpired: (sql) => sql`at < now() - make_interval(days => ${auditDays})` },
]

/** Deletes up to `limit` expired rows of the rule's table. Returns their number. */
export const deleteExpired = async (sql: Sql, { table, isExpired }: Rule, limit: number): Promise<number> =>
  (
    await sql`
      delete from ${sql(table)} where ctid = any (array(
        select ctid from ${sql(table)} where ${isExpired(sql)} limit ${limit}))`
  ).count
