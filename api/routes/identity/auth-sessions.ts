/** Auth sessions: refresh, logout, list, revoke. */
import { z } from 'zod'
import { type AuthSession, listAuthSessions } from '../../../db/identity/auth-sessions.ts'
import { Refusal } from '../../http/refusals.ts'
import { noContent, ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import type { User } from '../../identity/access-tokens.ts'
import { endAuthSession, endOtherAuthSessions, refreshAuthSession } from '../../identity/auth-sessions.ts'
import { createTokenSet, exampleTokenSet, TokenSet } from '../../identity/token-sets.ts'
import { parseUserAgent } from '../../identity/user-agent.ts'
import { route } from '../route.ts'

export const refresh = route.none({
  id: 'refreshTokens',
  summary: 'Refresh the tokens',
  description:
    'Replaces the refresh token, which lasts 30 days, and returns a new access token.\n\nA lost reply can be repeated: for 15 seconds the replaced token still works while its successor is unused. Any other use of a replaced token ends the auth session, because the token may have been stolen.',
  secret: true,
  body: z.object({ refresh_token: z.string() }),
  answers: { 200: TokenSet },
  refuses: ['invalid_refresh_token'],
  examples: {
    requests: {
      refresh: { summary: 'The last refresh token', value: { refresh_token: exampleTokenSet.refresh_token } },
    },
    replies: { 200: { refreshed: { summary: 'A new token set', value: exampleTokenSet } } },
  },
  handle: async ({ body, ip }, services) => {
    const refreshed = await services.sql.begin((tx) => refreshAuthSession(tx, body.refresh_token, ip))
    if (!refreshed) throw new Refusal('invalid_refresh_token')
    return ok(await createTokenSet(services, refreshed))
  },
})

export const logout = route.user({
  id: 'signOut',
  summary: 'Sign out',
  description: 'Ends the auth session of the access token. Both of its tokens stop working at once.',
  answers: { 204: null },
  refuses: [],
  handle: async ({ caller, ip }, { sql }) => {
    await sql.begin((tx) => endAuthSession(tx, caller, 'logout', ip))
    return noContent()
  },
})

export const list = route.user({
  id: 'listAuthSessions',
  summary: 'List the sign-ins of the account',
  description:
    'Where the account is signed in: at most 100 auth sessions, the most recently used first. `current` marks the one of the access token.',
  answers: {
    200: z.object({
      sessions: z.array(
        z.object({
          id,
          client: z.string().describe('`web`, or the name that a plugin has chosen: see `kind`.'),
          kind: z.enum(['web', 'plugin']).describe('The kind of client, which its name does not prove.'),
          browser: z.string().nullable().describe('The browser by its User-Agent, such as `Chrome`; null if unknown.'),
          system: z.string().nullable().describe('Its operating system, such as `Windows`; null if unknown.'),
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
  ...(session.client.kind === 'web' ? parseUserAgent(session.userAgent) : { browser: null, system: null }),
  ip: session.ip,
  created_at: session.createdAt.toISOString(),
  last_used_at: session.lastUsedAt.toISOString(),
  current: session.id === caller.authSessionId,
})

export const revoke = route.user({
  id: 'revokeAuthSession',
  summary: 'Revoke a sign-in of the account',
  description: 'Ends a sign-in of the account, whose tokens stop working at once. Safe to repeat.',
  params: z.object({ id }),
  answers: { 204: null },
  refuses: ['not_found'],
  handle: async ({ caller, params, ip }, { sql }) => {
    const session = { userId: caller.userId, authSessionId: params.id }
    const outcome = await sql.begin((tx) => endAuthSession(tx, session, 'revoked', ip))
    if (outcome === 'not_found') throw new Refusal('not_found')
    return noContent()
  },
})

export const revokeOthers = route.user({
  id: 'revokeOtherAuthSessions',
  summary: 'Sign out everywhere else',
  description: 'Ends every sign-in of the account but that of the access token. Returns their number. Safe to repeat.',
  answers: { 200: z.object({ revoked: z.int() }) },
  refuses: [],
  handle: async ({ caller, ip }, { sql }) =>
    ok({ revoked: await sql.begin((tx) => endOtherAuthSessions(tx, caller, ip)) }),
})
