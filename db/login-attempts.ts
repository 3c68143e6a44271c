/** Plugin logins: begun by a plugin, decided in the browser, collected once by the plugin. All times are the database's. */
import { first, type Sql } from './connection.ts'

/** How long an attempt lasts, whatever was decided meanwhile. */
export const lifetimeSeconds = 300
/** The least time between two polls of one attempt. */
export const pollSecondsMin = 1

export type LoginAttemptStatus = 'pending' | 'approved' | 'denied' | 'consumed'

export interface NewLoginAttempt {
  readonly pollTokenHash: Buffer
  readonly userCode: string
  readonly clientName: string
  readonly ip: string
  readonly userAgent: string
}

/** Adds an attempt and answers its id. */
export async function insertLoginAttempt(sql: Sql, attempt: NewLoginAttempt): Promise<string> {
  const row = first(
    await sql<{ id: string }[]>`
      insert into login_attempts (poll_token_hash, user_code, client_name, ip, user_agent, expires_at)
      values (${attempt.pollTokenHash}, ${attempt.userCode}, ${attempt.clientName}, ${attempt.ip}, ${attempt.userAgent},
        now() + make_interval(secs => ${lifetimeSeconds}))
      returning id`,
  )
  if (!row) throw new Error('an inserted login attempt did not come back')
  return row.id
}

export interface LoginAttempt {
  readonly id: string
  readonly status: LoginAttemptStatus
  /** Who decided it; null while nobody has. */
  readonly userId: string | null
  readonly userCode: string
  readonly clientName: string
  readonly ip: string
  readonly userAgent: string
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly expired: boolean
  /** A poll now would come sooner after the last one than is allowed. */
  readonly polledJustNow: boolean
}

const columns = (sql: Sql) => sql`
  id, status, user_id, user_code, client_name, ip, user_agent,
  created_at, expires_at, expires_at <= now() as expired,
  coalesce(last_polled_at > now() - make_interval(secs => ${pollSecondsMin}), false) as polled_just_now`

export const findLoginAttempt = async (sql: Sql, id: string): Promise<LoginAttempt | undefined> =>
  first(await sql<LoginAttempt[]>`select ${columns(sql)} from login_attempts where id = ${id}`)

/** The attempt for someone about to decide it: nobody else can, nor collect it, until the transaction ends. */
export const lockLoginAttempt = async (sql: Sql, id: string): Promise<LoginAttempt | undefined> =>
  first(await sql<LoginAttempt[]>`select ${columns(sql)} from login_attempts where id = ${id} for update`)

/** The attempt for the plugin that began it. A wrong token and an unknown id are the same question with the same answer. */
export const lockPolledAttempt = async (
  sql: Sql,
  id: string,
  pollTokenHash: Buffer,
): Promise<LoginAttempt | undefined> =>
  first(
    await sql<LoginAttempt[]>`
      select ${columns(sql)} from login_attempts where id = ${id} and poll_token_hash = ${pollTokenHash} for update`,
  )

/**
 * Who approved the attempt for the plugin that began it, with that account held: it is neither disabled nor taken from whoever
 * approved until the transaction ends. To be asked before the attempt itself is locked, as everybody does who holds both.
 */
export const holdApprover = async (sql: Sql, id: string, pollTokenHash: Buffer): Promise<string | undefined> =>
  first(
    await sql<{ id: string }[]>`
      select id from users where id = (
        select user_id from login_attempts
        where id = ${id} and poll_token_hash = ${pollTokenHash} and status = 'approved')
      for share`,
  )?.id

export const notePoll = async (sql: Sql, id: string): Promise<void> => {
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

/** Marks the attempt's sign-in as handed out. */
export const consumeLoginAttempt = async (sql: Sql, id: string): Promise<void> => {
  await sql`update login_attempts set status = 'consumed', last_polled_at = now() where id = ${id}`
}
