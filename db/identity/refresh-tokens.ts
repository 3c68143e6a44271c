/**
 * Refresh tokens with rotation: one lineage per auth session, in which at most one token is valid. Only SHA-256 hashes
 * are stored. All times are those of the database. Every change of a lineage locks the row of its auth session.
 */
import { refreshTokenDays } from '../../domain/identity/lifetimes.ts'
import { first, type Sql } from '../connection.ts'

/** How long a replaced token can be exchanged again, for a client that did not receive the response. */
const reuseGraceSeconds = 15

export const insertRefreshToken = async (sql: Sql, tokenHash: Buffer, authSessionId: string): Promise<void> => {
  await sql`
    insert into refresh_tokens (token_hash, auth_session_id, expires_at)
    values (${tokenHash}, ${authSessionId}, now() + make_interval(days => ${refreshTokenDays}))`
}

interface TokenStatus {
  readonly isAuthSessionAlive: boolean
  readonly isSuperseded: boolean
  readonly isReplaced: boolean
  readonly isInReuseGrace: boolean
  readonly isSuccessorUnused: boolean
  readonly isExpired: boolean
}

/** `reuse`: the token was used before, so two parties may hold it (RFC 9700, section 4.14.2). */
function decideExchange(token: TokenStatus): 'exchange' | 'refuse' | 'reuse' {
  if (!token.isAuthSessionAlive) return 'refuse'
  if (token.isSuperseded) return 'reuse'
  if (token.isReplaced) return token.isInReuseGrace && token.isSuccessorUnused ? 'exchange' : 'reuse'
  return token.isExpired ? 'refuse' : 'exchange'
}

type RefreshTokenExchange =
  | { readonly outcome: 'exchanged' | 'reused'; readonly userId: string; readonly authSessionId: string }
  | { readonly outcome: 'refused' }

/**
 * Exchanges a token for its successor in the caller's transaction. On `reused` the caller revokes the auth session and
 * commits. Exchanges of the same lineage are serialised.
 * @param tokenHash of the presented token.
 * @param successorHash of the token that replaces it.
 */
export async function exchangeRefreshToken(
  sql: Sql,
  tokenHash: Buffer,
  successorHash: Buffer,
): Promise<RefreshTokenExchange> {
  const lineage = await first(sql<{ userId: string; authSessionId: string }[]>`
    select s.user_id, s.id as auth_session_id
    from refresh_tokens t join auth_sessions s on s.id = t.auth_session_id
    where t.token_hash = ${tokenHash} for update of s`)
  // Read with the lock held: a concurrent exchange may have changed the token while this one waited.
  const token = lineage && (await readTokenStatus(sql, tokenHash))
  const decision = token ? decideExchange(token) : 'refuse'
  if (!lineage || decision === 'refuse') return { outcome: 'refused' }
  if (decision === 'reuse') return { outcome: 'reused', ...lineage }
  await sql`
    update refresh_tokens set superseded_at = now()
    where token_hash = (select successor_hash from refresh_tokens where token_hash = ${tokenHash})`
  await insertRefreshToken(sql, successorHash, lineage.authSessionId)
  // The grace period starts with the first exchange; further ones do not extend it.
  await sql`
    update refresh_tokens set replaced_at = coalesce(replaced_at, now()), successor_hash = ${successorHash}
    where token_hash = ${tokenHash}`
  return { outcome: 'exchanged', ...lineage }
}

const readTokenStatus = async (sql: Sql, tokenHash: Buffer): Promise<TokenStatus | undefined> =>
  first(sql<TokenStatus[]>`
    select s.revoked_at is null and u.disabled_at is null as is_auth_session_alive,
      t.superseded_at is not null as is_superseded,
      t.replaced_at is not null as is_replaced,
      coalesce(t.replaced_at > now() - make_interval(secs => ${reuseGraceSeconds}), false) as is_in_reuse_grace,
      n.token_hash is not null and n.replaced_at is null and n.superseded_at is null as is_successor_unused,
      t.expires_at <= now() as is_expired
    from refresh_tokens t
      join auth_sessions s on s.id = t.auth_session_id
      join users u on u.id = s.user_id
      left join refresh_tokens n on n.token_hash = t.successor_hash
    where t.token_hash = ${tokenHash}`)
