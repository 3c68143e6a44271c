/**
 * Refresh tokens: one lineage for each sign-in, in which at most one token is live. Only their SHA-256 is kept.
 * All times are the database's, and each change of a lineage holds the lock of its auth session's row.
 */
import { first, type Sql } from './connection.ts'

export const lifetimeDays = 30
/** How long a token that was just replaced still counts, for a client that never got the reply. */
export const graceSeconds = 15

export const insertRefreshToken = async (sql: Sql, tokenHash: Buffer, authSessionId: string): Promise<void> => {
  await sql`
    insert into refresh_tokens (token_hash, auth_session_id, expires_at)
    values (${tokenHash}, ${authSessionId}, now() + make_interval(days => ${lifetimeDays}))`
}

interface Presented {
  readonly alive: boolean
  readonly superseded: boolean
  readonly replaced: boolean
  readonly inGrace: boolean
  readonly successorUnused: boolean
  readonly expired: boolean
}

/** What a presented token is worth: exchanged, refused, or a sign that it is in two hands. */
function judge(token: Presented): 'exchange' | 'refuse' | 'reuse' {
  if (!token.alive) return 'refuse'
  if (token.superseded) return 'reuse'
  if (token.replaced) return token.inGrace && token.successorUnused ? 'exchange' : 'reuse'
  return token.expired ? 'refuse' : 'exchange'
}

export type Exchange =
  | { readonly outcome: 'exchanged' | 'reused'; readonly userId: string; readonly authSessionId: string }
  | { readonly outcome: 'refused' }

/**
 * Exchanges a token for its successor, within the caller's transaction. After `reused` the caller ends the auth session,
 * and commits that. Callers with the same lineage come one after the other: each sees what the one before left.
 */
export async function exchangeRefreshToken(sql: Sql, presented: Buffer, successor: Buffer): Promise<Exchange> {
  const lineage = first(
    await sql<{ userId: string; authSessionId: string }[]>`
      select s.user_id, s.id as auth_session_id
      from refresh_tokens t join auth_sessions s on s.id = t.auth_session_id
      where t.token_hash = ${presented} for update of s`,
  )
  // Read only now that the lineage is ours: what was true before the wait for the lock may not be.
  const token = lineage && (await readPresented(sql, presented))
  const verdict = token ? judge(token) : 'refuse'
  if (!lineage || verdict === 'refuse') return { outcome: 'refused' }
  if (verdict === 'reuse') return { outcome: 'reused', ...lineage }
  await sql`
    update refresh_tokens set superseded_at = now()
    where token_hash = (select successor_hash from refresh_tokens where token_hash = ${presented})`
  await insertRefreshToken(sql, successor, lineage.authSessionId)
  // The grace runs from the first exchange: asking again and again does not extend it.
  await sql`
    update refresh_tokens set replaced_at = coalesce(replaced_at, now()), successor_hash = ${successor}
    where token_hash = ${presented}`
  return { outcome: 'exchanged', ...lineage }
}

const readPresented = async (sql: Sql, tokenHash: Buffer): Promise<Presented | undefined> =>
  first(
    await sql<Presented[]>`
      select s.revoked_at is null and u.disabled_at is null as "alive",
        t.superseded_at is not null as "superseded",
        t.replaced_at is not null as "replaced",
        coalesce(t.replaced_at > now() - make_interval(secs => ${graceSeconds}), false) as in_grace,
        n.token_hash is not null and n.replaced_at is null and n.superseded_at is null as successor_unused,
        t.expires_at <= now() as "expired"
      from refresh_tokens t
        join auth_sessions s on s.id = t.auth_session_id
        join users u on u.id = s.user_id
        left join refresh_tokens n on n.token_hash = t.successor_hash
      where t.token_hash = ${tokenHash}`,
  )
