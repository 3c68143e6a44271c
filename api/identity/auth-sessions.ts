/** Opening, refreshing and revoking auth sessions, each with its audit entry. */
import { recordAuditEntry } from '../../db/audit.ts'
import type { Client } from '../../db/clients.ts'
import type { Sql } from '../../db/connection.ts'
import {
  type AuthSessionRevocationReason,
  insertAuthSession,
  isAuthSessionAlive,
  type NewAuthSession,
  revokeAuthSession,
  revokeOtherAuthSessions,
  touchAuthSession,
} from '../../db/identity/auth-sessions.ts'
import type { SignInMethod } from '../../db/identity/oauth-accounts.ts'
import { exchangeRefreshToken, insertRefreshToken } from '../../db/identity/refresh-tokens.ts'
import { lockCredentials, lockUser } from '../../db/identity/users.ts'
import { invalidToken, Refusal } from '../http/refusals.ts'
import type { User } from './access-tokens.ts'
import { createSecretToken, hashSecretToken } from './secret-tokens.ts'

/** A browser on the site. */
export const webClient: Client = { kind: 'web', name: 'web' }

/** An auth session with the refresh token to issue to its client. */
export interface OpenedAuthSession extends User {
  readonly refreshToken: string
}

interface AuthSessionRequest extends NewAuthSession {
  /** The hash that the password was compared with, if the user signs in with a password. */
  readonly provenPasswordHash?: string | undefined
  readonly method?: SignInMethod
}

/**
 * Opens an auth session in the transaction that authenticated the user. Refuses with `account_disabled`, and with
 * `invalid_credentials` if the password was changed after it was compared.
 */
export async function openAuthSession(
  sql: Sql,
  { provenPasswordHash, method, ...session }: AuthSessionRequest,
): Promise<OpenedAuthSession> {
  const { userId, client, ip } = session
  const credentials = await lockCredentials(sql, userId)
  if (!credentials || credentials.isDisabled) throw new Refusal('account_disabled')
  if (provenPasswordHash !== undefined && provenPasswordHash !== credentials.passwordHash)
    throw new Refusal('invalid_credentials')
  const authSessionId = await insertAuthSession(sql, session)
  const refreshToken = createSecretToken()
  await insertRefreshToken(sql, hashSecretToken(refreshToken), authSessionId)
  await recordAuditEntry(sql, {
    initiator: 'user',
    action: 'signed_in',
    userId,
    ip,
    client,
    detail: { auth_session_id: authSessionId, ...(method ? { method } : {}) },
  })
  return { userId, authSessionId, refreshToken }
}

/**
 * Exchanges a refresh token in the caller's transaction, and revokes the auth session if the token was used before.
 * @returns undefined if the token is not valid. The caller commits in either case: the revocation must not be rolled
 * back.
 */
export async function refreshAuthSession(
  sql: Sql,
  presentedToken: string,
  ip: string,
): Promise<OpenedAuthSession | undefined> {
  const refreshToken = createSecretToken()
  const exchange = await exchangeRefreshToken(sql, hashSecretToken(presentedToken), hashSecretToken(refreshToken))
  switch (exchange.outcome) {
    case 'exchanged':
      await touchAuthSession(sql, exchange.authSessionId)
      return { userId: exchange.userId, authSessionId: exchange.authSessionId, refreshToken }
    case 'reused':
      await endAuthSession(sql, exchange, 'token_reuse', ip)
      return undefined
    case 'refused':
      return undefined
  }
}

/** Revokes an auth session. Records an audit entry unless it was revoked before or does not belong to the user. */
export async function endAuthSession(
  sql: Sql,
  { userId, authSessionId }: User,
  reason: AuthSessionRevocationReason,
  ip: string,
): Promise<'revoked' | 'already_revoked' | 'not_found'> {
  const outcome = await revokeAuthSession(sql, { userId, authSessionId }, reason)
  if (outcome === 'revoked')
    await recordAuditEntry(sql, {
      initiator: reason === 'token_reuse' ? 'system' : 'user',
      action: 'signed_out',
      userId,
      ip,
      detail: { auth_session_id: authSessionId, why: reason },
    })
  return outcome
}

/** Revokes all auth sessions of the user but this one. @returns their number. Refuses with `unauthorized`. */
export async function endOtherAuthSessions(sql: Sql, user: User, ip: string): Promise<number> {
  await lockUser(sql, user.userId)
  await requireAliveAuthSession(sql, user)
  const revoked = await revokeOtherAuthSessions(sql, user, 'revoked')
  if (revoked > 0)
    await recordAuditEntry(sql, {
      initiator: 'user',
      action: 'signed_out_elsewhere',
      userId: user.userId,
      ip,
      detail: { sign_ins_ended: revoked },
    })
  return revoked
}

/**
 * Refuses with `unauthorized` if the auth session was revoked since the request was authenticated. Call it with the
 * account's row locked: a change that a revoked auth session makes would outlive the revocation of all access.
 */
export async function requireAliveAuthSession(sql: Sql, user: User): Promise<void> {
  if (!(await isAuthSessionAlive(sql, user))) throw invalidToken()
}
