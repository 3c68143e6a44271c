/**
 * How long is kept what nobody can use any more. One page for all of it, so that one look tells; each rule has an index that
 * finds its rows. Relays and money keep their history.
 */
import type { Sql } from './connection.ts'
import { knownDays } from './operator-networks.ts'
import { lifetimeDays } from './refresh-tokens.ts'

/** The brake on guessing looks 30 days back; the audit tells the story after that. */
const endedSignInDays = 90
const auditDays = 400

interface Rule {
  readonly table: string
  /** Which rows may go. */
  readonly over: (sql: Sql) => ReturnType<Sql>
}

/** A day later than they are over, so that whoever asks what happened a moment ago still finds them. */
const overForADay: Rule['over'] = (sql) => sql`expires_at < now() - interval '1 day'`

/**
 * Bodies of webhooks hold names, addresses and what people pay. Until then an operator can read an event again from its bytes;
 * what judging needs of it is kept in normalised form.
 */
const billingBodyDays = 90

/**
 * Deletes the bodies of billing events that were applied or ignored long ago, `limit` at most. Others keep theirs until they are
 * settled. Answers how many.
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

/** In an order in which rows that others point to come after those. */
export const retentionRules: readonly Rule[] = [
  { table: 'mail_tokens', over: overForADay },
  { table: 'oauth_states', over: overForADay },
  { table: 'merge_requests', over: overForADay },
  { table: 'login_attempts', over: overForADay },
  // A checkout that nobody paid.
  { table: 'sandbox_subscriptions', over: (sql) => sql`status = 'open' and created_at < now() - interval '1 day'` },
  { table: 'refresh_tokens', over: (sql) => sql`expires_at < now()` },
  { table: 'auth_sessions', over: (sql) => sql`revoked_at < now() - make_interval(days => ${endedSignInDays})` },
  {
    table: 'auth_sessions',
    // Its last refresh token was made when it was last used.
    over: (sql) =>
      sql`revoked_at is null and last_used_at < now() - make_interval(days => ${endedSignInDays + lifetimeDays})`,
  },
  {
    table: 'operator_networks',
    over: (sql) => sql`last_used_at < now() - make_interval(days => ${knownDays})`,
  },
  { table: 'usage_notices', over: (sql) => sql`at < now() - make_interval(days => ${auditDays})` },
  { table: 'audit_entries', over: (sql) => sql`at < now() - make_interval(days => ${auditDays})` },
]

/** Forgets some of a rule's rows, `limit` at most, so that no statement takes long. Answers how many. */
export const forgetSome = async (sql: Sql, { table, over }: Rule, limit: number): Promise<number> =>
  (
    await sql`
      delete from ${sql(table)} where ctid = any (array(
        select ctid from ${sql(table)} where ${over(sql)} limit ${limit}))`
  ).count
