/** Authentication of callers: verifies the credentials that a route requires. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { areAuthSessionsAlive } from '../../db/auth-sessions.ts'
import { batch } from '../../platform/batch.ts'
import type { User } from '../identity/access-tokens.ts'
import { verifyOperator } from '../identity/operator-credentials.ts'
import type { Services } from '../services.ts'
import { Refusal } from './refusals.ts'
import type { CallerKind, Callers, Credentials } from './route.ts'

/** Refuses with `unauthorized`, `invalid_operator`, `invalid_relay_auth`, `not_found` or `rate_limited`. */
export type Authenticate = <Kind extends CallerKind>(kind: Kind, credentials: Credentials) => Promise<Callers[Kind]>

type Deps = Pick<Services, 'config' | 'sql' | 'accessTokens' | 'rateLimits' | 'recordAuditAttempt'>

export function createAuthenticate(deps: Deps): Authenticate {
  const { config, sql, accessTokens } = deps
  const relaySecretDigests = config.relayAuthSecrets.map(digest)
  const isAlive = batch((users: User[]) => areAuthSessionsAlive(sql, users))

  const authenticate: { [Kind in CallerKind]: (credentials: Credentials) => Promise<Callers[Kind]> | Callers[Kind] } = {
    none: () => undefined,

    /** The token alone is not enough: a revoked auth session or a disabled account ends it before it expires. */
    user: async ({ header }) => {
      const token = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header('authorization') ?? '')?.[1]
      const user = token && (await accessTokens.verify(token))
      if (user && (await isAlive(user))) return user
      throw new Refusal('unauthorized', {
        headers: { 'WWW-Authenticate': token ? 'Bearer error="invalid_token"' : 'Bearer' },
      })
    },

    maybe_user: (credentials) =>
      credentials.header('authorization') === undefined ? undefined : authenticate.user(credentials),

    operator: (credentials) => verifyOperator(deps, credentials),

    relay: ({ header }) => {
      const presented = digest(header('x-relay-auth') ?? '')
      if (relaySecretDigests.some((secret) => timingSafeEqual(presented, secret))) return 'relay' as const
      throw new Refusal('invalid_relay_auth')
    },
  }

  return async (kind, credentials) => authenticate[kind](credentials)
}

/** Digests have equal lengths, as `timingSafeEqual` requires. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
