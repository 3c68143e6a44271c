/**
 * Sessions of operators: each stands for one entry of the operator password, and ends by age, without use, or by a
 * sign-out.
 */
import { first, type Sql } from '../connection.ts'

/** A session without use for this time has ended. */
const idleMinutesMax = 15

interface NewOperatorSession {
  readonly tokenHash: Buffer
  /** A keyed hash of the operator password. */
  readonly passwordHash: Buffer
  readonly seconds: number
}

/** @returns when the session ends at the latest. */
export async function insertOperatorSession(sql: Sql, session: NewOperatorSession): Promise<Date> {
  const row = await first(sql<{ expiresAt: Date }[]>`
    insert into operator_sessions (token_hash, password_hash, expires_at)
    values (${session.tokenHash}, ${session.passwordHash}, now() + make_interval(secs => ${session.seconds}))
    returning expires_at`)
  if (!row) throw new Error('insert into operator_sessions returned no row')
  return row.expiresAt
}

interface OperatorSession {
  readonly id: string
  /** The recorded last use is more than half a minute old. */
  readonly isStale: boolean
}

/**
 * @param passwordHashes of the present operator password, by all keys: one per key during a rotation.
 * @returns undefined when there is no such session, it has ended, or it was opened with another password.
 */
export const findOperatorSession = async (
  sql: Sql,
  tokenHash: Buffer,
  passwordHashes: readonly Buffer[],
): Promise<OperatorSession | undefined> =>
  first(sql<OperatorSession[]>`
    select id, last_used_at < now() - interval '30 seconds' as is_stale from operator_sessions
    where token_hash = ${tokenHash}
      and encode(password_hash, 'hex') = any(${passwordHashes.map((hash) => hash.toString('hex'))}::text[])
      and expires_at > now() and last_used_at > now() - make_interval(mins => ${idleMinutesMax})`)

export const touchOperatorSession = async (sql: Sql, id: string): Promise<void> => {
  await sql`update operator_sessions set last_used_at = now() where id = ${id}`
}

export const deleteOperatorSession = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from operator_sessions where id = ${id}`
}
