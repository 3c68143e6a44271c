/** Authentication of callers: verifies the credentials that a route requires. */
import { areGrantsAlive } from '../../db/identity/app-grants.ts'
import { areAuthSessionsAlive } from '../../db/identity/auth-sessions.ts'
import { findSessionByToken } from '../../db/relay/sessions.ts'
import { sessionTokenHashes } from '../../db/sealed-tokens.ts'
import type { AppScope } from '../../domain/identity/apps.ts'
import { batch } from '../../platform/batch.ts'
import { createRelaySecretVerifier } from '../../providers/relay/instance-secrets.ts'
import { type AppCaller, isApp } from '../apps/app-access-tokens.ts'
import { insufficientScope, invalidToken, Refusal } from '../http/refusals.ts'
import { createOriginCheck } from '../http/request-origin.ts'
import type { Credentials } from '../http/requests.ts'
import type { TokenUser } from '../identity/access-tokens.ts'
import { verifyOperator } from '../identity/operator-credentials.ts'
import { readSocketToken } from '../live/handshake.ts'
import type { Services } from '../services.ts'
import type { CallerKind, Callers } from './callers.ts'

/**
 * Refuses with `unauthorized`, `insufficient_scope`, `invalid_operator`, `invalid_relay_auth`, `not_found` or
 * `rate_limited`.
 * @param scope of the route: what an app needs. Apps are refused without one.
 */
export type Authenticate = <Kind extends CallerKind>(
  kind: Kind,
  credentials: Credentials,
  scope?: AppScope | undefined,
) => Promise<Callers[Kind]>

type Deps = Pick<
  Services,
  'config' | 'sql' | 'sealing' | 'accessTokens' | 'appAccessTokens' | 'rateLimits' | 'recordAuditAttempt'
>

/**
 * @returns the user or the app of a valid token, whose sign-in or grant may have ended since it was issued. Refuses
 * with `unauthorized`.
 */
export async function verifyAccessToken(
  { accessTokens, appAccessTokens }: Pick<Services, 'accessTokens' | 'appAccessTokens'>,
  header: Credentials['header'],
): Promise<TokenUser | AppCaller> {
  const token = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header('authorization') ?? '')?.[1]
  if (token === undefined) throw new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer' } })
  const caller = (await accessTokens.verify(token)) ?? (await appAccessTokens.verify(token))
  if (caller) return caller
  throw invalidToken()
}

/** The app of a token whose grant is alive, if it has the scope. */
export type AdmitApp = (app: AppCaller, scope: AppScope | undefined) => Promise<AppCaller>

/** Refuses with `unauthorized` and `insufficient_scope`. Concurrent requests share a statement. */
export function createAdmitApp({ sql }: Pick<Services, 'sql'>): AdmitApp {
  const isAlive = batch((apps: AppCaller[]) => areGrantsAlive(sql, apps))
  return async (app, scope) => {
    if (!(await isAlive(app))) throw invalidToken()
    if (scope === undefined || !app.scopes.includes(scope)) throw insufficientScope(scope)
    return app
  }
}

export function createAuthenticate(deps: Deps): Authenticate {
  const { config, sql, sealing } = deps
  const verifyRelaySecret = createRelaySecretVerifier(config.relayAuthSecrets)
  const checkOrigin = createOriginCheck(config)
  const isAlive = batch((users: TokenUser[]) => areAuthSessionsAlive(sql, users))
  const admitApp = createAdmitApp(deps)

  const authenticate: {
    [Kind in CallerKind]: (
      credentials: Credentials,
      scope: AppScope | undefined,
    ) => Promise<Callers[Kind]> | Callers[Kind]
  } = {
    none: () => undefined,

    user: async (credentials) => {
      const caller = await authenticate.user_or_app(credentials, undefined)
      if (isApp(caller)) throw insufficientScope()
      return caller
    },

    /**
     * The token alone is not enough: a revoked auth session, an ended grant or a disabled account ends it before it
     * expires.
     */
    user_or_app: async ({ header }, scope) => {
      const caller = await verifyAccessToken(deps, header)
      if (isApp(caller)) return admitApp(caller, scope)
      if (await isAlive(caller)) return caller
      throw invalidToken()
    },

    app: async ({ header }, scope) => {
      const caller = await verifyAccessToken(deps, header)
      // The token of a user has another audience.
      if (!isApp(caller)) throw invalidToken()
      return admitApp(caller, scope)
    },

    maybe_user: (credentials, scope) =>
      credentials.header('authorization') === undefined ? undefined : authenticate.user(credentials, scope),

    operator: (credentials) => verifyOperator(deps, credentials),

    relay: ({ header }) => {
      const caller = verifyRelaySecret(header('x-relay-auth') ?? '')
      if (caller) return caller
      throw new Refusal('invalid_relay_auth')
    },

    /**
     * With an access token the origin counts, in case that a proxy adds the token for a browser. Session tokens prove
     * intent.
     */
    relay_watcher: async (credentials, scope) => {
      const { header } = credentials
      if (header('authorization') !== undefined) {
        checkOrigin(header)
        return authenticate.user_or_app(credentials, scope)
      }
      const token = readSocketToken(header('sec-websocket-protocol'))
      const hashes = token === undefined ? [] : sessionTokenHashes(sealing, 'relay_ws_token', token)
      const session = token === undefined ? undefined : await findSessionByToken(sql, 'relay_ws_token', hashes)
      if (session) return { userId: session.userId, sessionId: session.id }
      throw new Refusal('unauthorized', {
        message: 'The relay_ws_token is missing or wrong, or its relay session has stopped.',
        headers: { 'WWW-Authenticate': 'Bearer' },
      })
    },
  }

  return async (kind, credentials, scope) => authenticate[kind](credentials, scope)
}
