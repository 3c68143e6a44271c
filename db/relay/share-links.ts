/** Share links: each shows one session, to all who have the link, until it expires or its owner revokes it. */
import { first, hasRow, type Sql } from '../connection.ts'

export interface ShareLinkRow {
  readonly createdAt: Date
  /** 7 days after its creation, by the default of the column. */
  readonly expiresAt: Date
}

/**
 * Stores the link of a user's session in place of its former one, which ends.
 * @param tokenHash SHA-256 of the token.
 * @returns undefined when the user has no such session.
 */
export const replaceShareLink = async (
  sql: Sql,
  userId: string,
  sessionId: string,
  tokenHash: Buffer,
): Promise<ShareLinkRow | undefined> =>
  first(sql<ShareLinkRow[]>`
    insert into share_links (session_id, user_id, token_hash)
    select id, user_id, ${tokenHash} from relay_sessions where id = ${sessionId} and user_id = ${userId}
    on conflict (session_id) do update set token_hash = excluded.token_hash, created_at = excluded.created_at,
      expires_at = excluded.expires_at
    returning created_at, expires_at`)

/** The link of a session that has not expired. */
export const findShareLink = async (sql: Sql, sessionId: string): Promise<ShareLinkRow | undefined> =>
  first(sql<ShareLinkRow[]>`
    select created_at, expires_at from share_links where session_id = ${sessionId} and expires_at > now()`)

/** @returns whether there was one. */
export const deleteShareLink = (sql: Sql, userId: string, sessionId: string): Promise<boolean> =>
  hasRow(sql`delete from share_links where session_id = ${sessionId} and user_id = ${userId} returning session_id`)

export interface SharedSessionRow {
  readonly id: string
  readonly createdAt: Date
  /** Null while the session is live. */
  readonly stoppedAt: Date | null
  readonly expiresAt: Date
}

/** The session of a link that has not expired, of an account that is in use. */
export const findSharedSession = async (sql: Sql, tokenHash: Buffer): Promise<SharedSessionRow | undefined> =>
  first(sql<SharedSessionRow[]>`
    select s.id, s.created_at, s.stopped_at, l.expires_at
    from share_links l join relay_sessions s on s.id = l.session_id join users u on u.id = l.user_id
    where l.token_hash = ${tokenHash} and l.expires_at > now() and u.disabled_at is null and u.deletion_due_at is null`)
