/** Authentication of callers: verifies the credentials that a route requires. */
import { areAuthSessionsAlive } from '../../db/identity/auth-sessions.ts'
import { findSessionByToken } from '../../db/relay/sessions.ts'
import { sessionTokenHashes } from '../../db/sealed-tokens.ts'
import { batch } from '../../platform/batch.ts'
import { createRelaySecretVerifier } from '../../providers/relay/instance-secrets.ts'
import { invalidToken, Refusal } from '../http/refusals.ts'
import { createOriginCheck } from '../http/request-origin.ts'
import type { Credentials } from '../http/requests.ts'
import type { TokenUser } from '../identity/access-tokens.ts'
import { verifyOperator } from '../identity/operator-credentials.ts'
import { readSocketToken } from '../live/handshake.ts'
import type { Services } from '../services.ts'
import type { CallerKind, Callers } from './callers.ts'

/** Refuses with `unauthorized`, `invalid_operator`, `invalid_relay_auth`, `not_found` or `rate_limited`. */
export type Authenticate = <Kind extends CallerKind>(kind: Kind, credentials: Credentials) => Promise<Callers[Kind]>

type Deps = Pick<Services, 'config' | 'sql' | 'sealing' | 'accessTokens' | 'rateLimits' | 'recordAuditAttempt'>

/**
 * @returns the user of a valid token, who may have been signed out since it was issued. Refuses with `unauthorized`.
 */
export async function verifyAccessToken(
  accessTokens: Services['accessTokens'],
  header: Credentials['header'],
): Promise<TokenUser> {
  const token = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header('authorization') ?? '')?.[1]
  if (token === undefined) throw new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer' } })
  const user = await accessTokens.verify(token)
  if (user) return user
  throw invalidToken()
}

export function createAuthenticate(deps: Deps): Authenticate {
  const { config, sql, sealing, accessTokens } = deps
  const verifyRelaySecret = createRelaySecretVerifier(config.relayAuthSecrets)
  const checkOrigin = createOriginCheck(config)
  const isAlive = batch((users: TokenUser[]) => areAuthSessionsAlive(sql, users))

  const authenticate: { [Kind in CallerKind]: (credentials: Credentials) => Promise<Callers[Kind]> | Callers[Kind] } = {
    none: () => undefined,

    /** The token alone is not enough: a revoked auth session or a disabled account ends it before it expires. */
    user: async ({ header }) => {
      const user = await verifyAccessToken(accessTokens, header)
      if (await isAlive(user)) return user
      throw invalidToken()
    },

    maybe_user: (credentials) =>
      credentials.header('authorization') === undefined ? undefined : authenticate.user(credentials),

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
    relay_watcher: async (credentials) => {
      const { header } = credentials
      if (header('authorization') !== undefined) {
        checkOrigin(header)
        return authenticate.user(credentials)
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

  return async (kind, credentials) => authenticate[kind](credentials)
}
