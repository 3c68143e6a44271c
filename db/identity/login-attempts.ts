/**
 * Plugin logins: started by a plugin, approved or denied in the browser, and exchanged for tokens once by the plugin.
 * All times are those of the database.
 */
import { first, firstValue, type Sql } from '../connection.ts'

/** An attempt expires after this time, whether or not it was decided. */
export const loginAttemptSeconds = 300
/** The shortest allowed interval between two polls of one attempt. */
export const pollSecondsMin = 1

type LoginAttemptStatus = 'pending' | 'approved' | 'denied' | 'consumed'

interface NewLoginAttempt {
  readonly pollTokenHash: Buffer
  readonly userCode: string
  readonly clientName: string
  readonly ip: string
  readonly userAgent: string
}

/** @returns the id of the new attempt. */
export async function insertLoginAttempt(sql: Sql, attempt: NewLoginAttempt): Promise<string> {
  const row = await first(sql<{ id: string }[]>`
    insert into login_attempts (poll_token_hash, user_code, client_name, ip, user_agent, expires_at)
    values (${attempt.pollTokenHash}, ${attempt.userCode}, ${attempt.clientName}, ${attempt.ip}, ${attempt.userAgent},
      now() + make_interval(secs => ${loginAttemptSeconds}))
    returning id`)
  if (!row) throw new Error('insert into login_attempts returned no row')
  return row.id
}

export interface LoginAttempt {
  readonly id: string
  readonly status: LoginAttemptStatus
  /** The user who approved or denied the attempt; null before that. */
  readonly userId: string | null
  readonly userCode: string
  readonly clientName: string
  readonly ip: string
  readonly userAgent: string
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly isExpired: boolean
  /** The last poll was less than {@link pollSecondsMin} ago. */
  readonly wasJustPolled: boolean
}

const columns = (sql: Sql) => sql`
  id, status, user_id, user_code, client_name, ip, user_agent,
  created_at, expires_at, expires_at <= now() as is_expired,
  coalesce(last_polled_at > now() - make_interval(secs => ${pollSecondsMin}), false) as was_just_polled`

export const findLoginAttempt = async (sql: Sql, id: string): Promise<LoginAttempt | undefined> =>
  first(sql<LoginAttempt[]>`select ${columns(sql)} from login_attempts where id = ${id}`)

/** Locks the attempt until the transaction ends: it can be neither decided nor consumed by another transaction. */
export const lockLoginAttempt = async (sql: Sql, id: string): Promise<LoginAttempt | undefined> =>
  first(sql<LoginAttempt[]>`select ${columns(sql)} from login_attempts where id = ${id} for update`)

/**
 * Locks the attempt for a poll. One query for both checks, so that a wrong token and an unknown id are
 * indistinguishable.
 */
export const lockLoginAttemptByPollToken = async (
  sql: Sql,
  id: string,
  pollTokenHash: Buffer,
): Promise<LoginAttempt | undefined> =>
  first(sql<LoginAttempt[]>`
    select ${columns(sql)} from login_attempts where id = ${id} and poll_token_hash = ${pollTokenHash} for update`)

/**
 * Locks the account that approved the attempt: until the transaction ends, the account is not disabled and its access
 * is not revoked. Every transaction that locks both locks the account before the attempt.
 * @returns the user's id, or undefined unless the attempt is approved.
 */
export const lockApprover = async (sql: Sql, id: string, pollTokenHash: Buffer): Promise<string | undefined> =>
  firstValue(sql<{ id: string }[]>`
    select id from users where id = (
      select user_id from login_attempts
      where id = ${id} and poll_token_hash = ${pollTokenHash} and status = 'approved')
    for share`)

export const recordPoll = async (sql: Sql, id: string): Promise<void> => {
  await sql`update login_attempts set last_polled_at = now() where id = ${id}`
}

export const decideLoginAttempt = async (
  sql: Sql,
  id: string,
  decision: { status: 'approved' | 'denied'; userId: string },
): Promise<void> => {
  await sql`
    update login_attempts set status = ${decision.status}, user_id = ${decision.userId}, decided_at = now()
    where id = ${id}`
}

/** Marks the attempt's tokens as issued. */
export const consumeLoginAttempt = async (sql: Sql, id: string): Promise<void> => {
  await sql`update login_attempts set status = 'consumed', last_polled_at = now() where id = ${id}`
}
