/**
 * What is kept how long, for every table: a test compares this page with the schema. Each rule has an index that finds
 * its rows. Ended relay sessions have a rule of their own, since their relay time outlives them:
 * `session-retention.ts`.
 */
import { erasedTrialDays } from '../../domain/billing/trial.ts'
import {
  operatorNetworkDays,
  refreshTokenDays,
  replacedAppTokenDays,
  signInFailureHours,
} from '../../domain/identity/lifetimes.ts'
import { incidentDays } from '../../domain/operations/incidents.ts'
import type { RetentionConfig } from '../../platform/config/retention.ts'
import type { Sql } from '../connection.ts'

/** Longer than any usage cycle, so that no notice is sent twice. */
const usageNoticeDays = 400
/** Events of the subscriptions of an erased account may still arrive in this time. */
const erasedAccountDays = 400

interface Rule {
  readonly table: string
  /** The condition on rows to delete. */
  readonly isExpired: (sql: Sql, periods: RetentionConfig) => ReturnType<Sql>
}

/** A day after the row expired, so that a late request is still answered with the reason. */
const expiredForADay: Rule['isExpired'] = (sql) => sql`expires_at < now() - interval '1 day'`

/** Rows that reference others come before those. */
export const retentionRules: readonly Rule[] = [
  { table: 'idempotency_keys', isExpired: (sql) => sql`accepted_at < now() - interval '1 hour'` },
  { table: 'mail_tokens', isExpired: expiredForADay },
  { table: 'oauth_authorization_requests', isExpired: expiredForADay },
  { table: 'merge_requests', isExpired: expiredForADay },
  { table: 'login_attempts', isExpired: expiredForADay },
  { table: 'app_requests', isExpired: (sql) => sql`expires_at < now()` },
  { table: 'app_tokens', isExpired: (sql) => sql`expires_at < now()` },
  {
    table: 'app_tokens',
    // Replaced ones: a present one is consumed when it is replaced.
    isExpired: (sql) => sql`consumed_at < now() - make_interval(days => ${replacedAppTokenDays})`,
  },
  {
    table: 'app_grants',
    isExpired: (sql, { signInDays }) => sql`ended_at < now() - make_interval(days => ${signInDays})`,
  },
  {
    table: 'app_grants',
    isExpired: (sql, { signInDays }) => sql`expires_at < now() - make_interval(days => ${signInDays})`,
  },
  // An unpaid checkout.
  {
    table: 'sandbox_subscriptions',
    isExpired: (sql) => sql`status = 'open' and created_at < now() - interval '1 day'`,
  },
  { table: 'refresh_tokens', isExpired: (sql) => sql`expires_at < now()` },
  {
    table: 'auth_sessions',
    isExpired: (sql, { signInDays }) => sql`revoked_at < now() - make_interval(days => ${signInDays})`,
  },
  {
    table: 'auth_sessions',
    // Its last refresh token was made when it was last used.
    isExpired: (sql, { signInDays }) =>
      sql`revoked_at is null and last_used_at < now() - make_interval(days => ${signInDays + refreshTokenDays})`,
  },
  {
    table: 'operator_networks',
    isExpired: (sql) => sql`last_used_at < now() - make_interval(days => ${operatorNetworkDays})`,
  },
  {
    table: 'outbox_messages',
    // Without content since the end of its delivery. Operators see what failed.
    isExpired: (sql, { messageDays }) =>
      sql`next_attempt_at is null and created_at < now() - make_interval(days => ${messageDays})`,
  },
  { table: 'operator_sessions', isExpired: (sql) => sql`expires_at < now()` },
  {
    table: 'sign_in_failures',
    isExpired: (sql) => sql`minute < now() - make_interval(hours => ${signInFailureHours})`,
  },
  { table: 'share_links', isExpired: (sql) => sql`expires_at < now()` },
  {
    table: 'stream_records',
    isExpired: (sql, { recordDays }) => sql`began_at < now() - make_interval(days => ${recordDays})`,
  },
  {
    table: 'instances',
    isExpired: (sql, { instanceDays }) => sql`gone_at < now() - make_interval(days => ${instanceDays})`,
  },
  {
    table: 'billing_events',
    // Entitlements are computed from the events of an account, so those of existing accounts stay.
    isExpired: (sql, { billingDays }) =>
      sql`user_id is null and status in ('applied', 'ignored', 'dismissed', 'dead')
        and received_at < now() - make_interval(days => ${billingDays})`,
  },
  {
    table: 'withdrawals',
    // One that is not refunded is a task.
    isExpired: (sql, { billingDays }) =>
      sql`user_id is null and refunded_at < now() - make_interval(days => ${billingDays})`,
  },
  {
    table: 'erased_accounts',
    isExpired: (sql) => sql`erased_at < now() - make_interval(days => ${erasedAccountDays})`,
  },
  { table: 'trial_networks', isExpired: (sql) => sql`last_at < now() - interval '1 day'` },
  {
    table: 'erased_trials',
    isExpired: (sql) => sql`erased_at < now() - make_interval(days => ${erasedTrialDays})`,
  },
  {
    table: 'erased_account_subscriptions',
    isExpired: (sql) => sql`next_attempt_at is null and found_at < now() - make_interval(days => ${erasedAccountDays})`,
  },
  { table: 'ended_workflows', isExpired: (sql) => sql`last_ended_at < now() - interval '1 day'` },
  { table: 'incidents', isExpired: (sql) => sql`ended_at < now() - make_interval(days => ${incidentDays})` },
  { table: 'usage_notices', isExpired: (sql) => sql`at < now() - make_interval(days => ${usageNoticeDays})` },
  { table: 'audit_entries', isExpired: (sql, { auditDays }) => sql`at < now() - make_interval(days => ${auditDays})` },
]

/** Tables without a rule above, and what bounds them. */
export const boundedTables = {
  /** Deleted or rolled up by a statement of their own. */
  deletedElsewhere: [
    'relay_sessions', // session-retention.ts
    'usage_intervals', // Rolled up into usage_days with their session.
    'rate_limit_windows', // Two minutes after they opened.
    'workers', // A day after the worker ended.
    'relay_addresses', // When its provider has released it.
    'provider_token_revocations', // A day after the chat was unlinked.
  ],
  /** Rows of a relay session. */
  deletedWithSession: [
    'relay_transitions',
    'relay_health',
    'relay_replacements',
    'relay_commands',
    'stream_events',
    'stream_notices',
    'path_events',
  ],
  /** A bounded number of rows for each account, and relay time by day. */
  deletedWithAccount: [
    'users',
    'terms_acceptances',
    'user_oauth_accounts',
    'subscriptions',
    'billing_customers',
    'notification_endpoints',
    'notification_settings',
    'connections',
    'play_keys',
    'slates',
    'usage_days',
    'trials',
  ],
  /** One row for each item of the configuration or of the program. */
  keptPermanently: [
    'relay_names', // Until the name is removed at the name server, once its account is erased.
    'api_probe',
    'certificate_checks',
    'epochs', // One for each restore.
    'incident_watch',
    'jobs',
    'presence',
    'provider_checks',
    'regions',
    'relay_legal_transitions',
    'relay_programs',
    'report_paths',
    'schema_migrations',
  ],
} as const

/**
 * Deletes the bodies of up to `rowsMax` billing events that were applied or ignored long ago, since bodies of webhooks
 * contain names, addresses and amounts. Other events keep theirs until they are settled, so that an operator can replay
 * them. The normalised event, which entitlements are computed from, stays. @returns the number of bodies.
 */
export const deleteBillingBodies = async (
  sql: Sql,
  { billingBodyDays }: RetentionConfig,
  rowsMax: number,
): Promise<number> =>
  (
    await sql`
      update billing_events set body = null where id = any (array(
        select id from billing_events
        where body is not null and status in ('applied', 'ignored')
          and settled_at < now() - make_interval(days => ${billingBodyDays})
        limit ${rowsMax}))`
  ).count

/** Deletes up to `rowsMax` expired rows of the rule's table. @returns their number. */
export const deleteExpired = async (
  sql: Sql,
  { table, isExpired }: Rule,
  periods: RetentionConfig,
  rowsMax: number,
): Promise<number> =>
  (
    await sql`
      delete from ${sql(table)} where ctid = any (array(
        select ctid from ${sql(table)} where ${isExpired(sql, periods)} limit ${rowsMax}))`
  ).count
