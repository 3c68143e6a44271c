/** Sign-ins: the tokens that each is used by, and how it ends. */
import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { recordAuditEntry } from '../../db/audit.ts'
import {
  type AuthSession,
  insertAuthSession,
  listAuthSessions,
  type NewAuthSession,
  revokeAuthSession,
  touchAuthSession,
} from '../../db/auth-sessions.ts'
import type { Client } from '../../db/clients.ts'
import type { Sql } from '../../db/connection.ts'
import type { SignInMethod } from '../../db/oauth-accounts.ts'
import { exchangeRefreshToken, insertRefreshToken, type RefreshTokenExchange } from '../../db/refresh-tokens.ts'
import { lockCredentials } from '../../db/users.ts'
import { Refusal } from '../http/refusals.ts'
import { noContent, ok, route } from '../http/route.ts'
import { id, timestamp } from '../http/schemas.ts'
import type { User } from '../identity/access-tokens.ts'
import type { Services } from '../services.ts'

/** A browser at the site. */
export const siteClient: Client = { kind: 'web', name: 'web' }

/** What every sign-in that succeeds is answered with. */
export const TokenSet = z.object({
  cp_access_jwt: z.string(),
  refresh_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int(),
})

/** 256 random bits that only their holder knows: we keep the hash. */
export const newSecretToken = (): string => randomBytes(32).toString('base64url')
export const hashOfToken = (token: string): Buffer => createHash('sha256').update(token).digest()

/** A sign-in with the refresh token that its client is about to get. */
export interface OpenedAuthSession extends User {
  readonly refreshToken: string
}

/**
 * Opens a sign-in, within the transaction of whatever proved who it is for. Refuses with `account_disabled`, and with
 * `invalid_credentials` when the password that proved it was changed meanwhile.
 */
export async function openAuthSession(
  sql: Sql,
  {
    provenPasswordHash,
    method,
    ...session
  }: NewAuthSession & { provenPasswordHash?: string | undefined; method?: SignInMethod },
): Promise<OpenedAuthSession> {
  const { userId, client, ip } = session
  const credentials = await lockCredentials(sql, userId)
  if (!credentials || credentials.isDisabled) throw new Refusal('account_disabled')
  if (provenPasswordHash !== undefined && provenPasswordHash !== credentials.passwordHash)
    throw new Refusal('invalid_credentials')
  const authSessionId = await insertAuthSession(sql, session)
  const refreshToken = newSecretToken()
  await insertRefreshToken(sql, hashOfToken(refreshToken), authSessionId)
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

/** Presents a sign-in whose transaction is committed. */
export const tokenSet = async (
  { accessTokens }: Pick<Services, 'accessTokens'>,
  { userId, authSessionId, refreshToken }: OpenedAuthSession,
): Promise<z.infer<typeof TokenSet>> => ({
  cp_access_jwt: await accessTokens.sign({ userId, authSessionId }),
  refresh_token: refreshToken,
  token_type: 'Bearer',
  expires_in: accessTokens.ttlSeconds,
})

export const refresh = route({
  method: 'POST',
  path: '/auth/refresh',
  summary: 'Exchange a refresh token for a new token set',
  caller: 'none',
  secret: true,
  body: z.object({ refresh_token: z.string() }),
  answers: { 200: TokenSet },
  refuses: ['invalid_refresh_token'],
  handle: async ({ body, ip }, services) => {
    const refreshToken = newSecretToken()
    const exchange = await services.sql.begin(async (tx) => {
      const exchanged = await exchangeRefreshToken(tx, hashOfToken(body.refresh_token), hashOfToken(refreshToken))
      await followUp(tx, exchanged, ip)
      return exchanged
    })
    // Refused only after the commit: what a reused token set off must stand.
    if (exchange.outcome !== 'exchanged') throw new Refusal('invalid_refresh_token')
    return ok(await tokenSet(services, { ...exchange, refreshToken }))
  },
})

async function followUp(sql: Sql, exchange: RefreshTokenExchange, ip: string): Promise<void> {
  if (exchange.outcome === 'exchanged') await touchAuthSession(sql, exchange.authSessionId)
  if (exchange.outcome === 'reused') await end(sql, exchange, 'token_reuse', ip)
}

export const logout = route({
  method: 'POST',
  path: '/auth/logout',
  summary: 'End this sign-in, at once and everywhere it is used',
  caller: 'user',
  answers: { 204: null },
  refuses: [],
  handle: async ({ caller, ip }, { sql }) => {
    await sql.begin((tx) => end(tx, caller, 'logout', ip))
    return noContent()
  },
})

export const list = route({
  method: 'GET',
  path: '/auth/sessions',
  summary: 'Where the account is signed in, the last used first, 100 at most',
  caller: 'user',
  answers: {
    200: z.object({
      sessions: z.array(
        z.object({
          id,
          client: z.string().describe("`web`, or a plugin's own name for itself: see `kind`."),
          kind: z.enum(['web', 'plugin']).describe('What signed in, which its name does not say.'),
          ip: z.string(),
          created_at: timestamp,
          last_used_at: timestamp,
          current: z.boolean(),
        }),
      ),
    }),
  },
  refuses: [],
  handle: async ({ caller }, { sql }) => {
    const sessions = await listAuthSessions(sql, caller.userId)
    return ok({ sessions: sessions.map((session) => present(session, caller)) })
  },
})

const present = (session: AuthSession, caller: User) => ({
  id: session.id,
  client: session.client.name,
  kind: session.client.kind,
  ip: session.ip,
  created_at: session.createdAt.toISOString(),
  last_used_at: session.lastUsedAt.toISOString(),
  current: session.id === caller.authSessionId,
})

export const revoke = route({
  method: 'DELETE',
  path: '/auth/sessions/{id}',
  summary: 'End one sign-in of the account. Safe to repeat',
  caller: 'user',
  params: z.object({ id }),
  answers: { 204: null },
  refuses: ['not_found'],
  handle: async ({ caller, params, ip }, { sql }) => {
    const outcome = await sql.begin((tx) => end(tx, { ...caller, authSessionId: params.id }, 'revoked', ip))
    if (outcome === 'not_found') throw new Refusal('not_found')
    return noContent()
  },
})

/** Ends a sign-in and keeps that it ended, and why. */
async function end(
  sql: Sql,
  { userId, authSessionId }: User,
  why: Parameters<typeof revokeAuthSession>[2],
  ip: string,
) {
  const outcome = await revokeAuthSession(sql, { userId, authSessionId }, why)
  if (outcome === 'revoked') {
    const initiator = why === 'token_reuse' ? 'system' : 'user'
    await recordAuditEntry(sql, {
      initiator,
      action: 'signed_out',
      userId,
      ip,
      detail: { auth_session_id: authSessionId, why },
    })
  }
  return outcome
}
