/** Who is asking: checks the credential that a route's kind of caller brings. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { areAuthSessionsAlive } from '../../db/auth-sessions.ts'
import { batch } from '../../platform/batch.ts'
import type { User } from '../identity/access-tokens.ts'
import { verifyOperator } from '../identity/operator-credentials.ts'
import type { Services } from '../services.ts'
import { Refusal } from './refusals.ts'
import type { CallerKind, Callers, Credentials } from './route.ts'

export type Identify = <Kind extends CallerKind>(kind: Kind, credentials: Credentials) => Promise<Callers[Kind]>

type Needs = Pick<Services, 'config' | 'sql' | 'accessTokens' | 'rateLimits' | 'auditAttempt'>

export function createIdentify(services: Needs): Identify {
  const { config, sql, accessTokens } = services
  const relaySecrets = config.relayAuthSecrets.map(digestOf)
  const isAlive = batch((users: User[]) => areAuthSessionsAlive(sql, users))

  const identify: { [Kind in CallerKind]: (credentials: Credentials) => Promise<Callers[Kind]> | Callers[Kind] } = {
    none: () => undefined,

    /** A bearer token, whose sign-in is still alive: logout and disabling an account end it before it expires. */
    user: async ({ header }) => {
      const token = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header('authorization') ?? '')?.[1]
      const user = token && (await accessTokens.verify(token))
      if (user && (await isAlive(user))) return user
      throw new Refusal('unauthorized', {
        headers: {
          'WWW-Authenticate': token ? 'Bearer error="invalid_token"' : 'Bearer',
        },
      })
    },

    maybe_user: (credentials) =>
      credentials.header('authorization') === undefined ? undefined : identify.user(credentials),

    operator: (credentials) => verifyOperator(services, credentials),

    relay: ({ header }) => {
      const given = header('x-relay-auth') ?? ''
      const digest = digestOf(given)
      if (relaySecrets.some((secret) => timingSafeEqual(digest, secret))) return 'relay' as const
      throw new Refusal('invalid_relay_auth')
    },
  }

  return async (kind, credentials) => identify[kind](credentials)
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
