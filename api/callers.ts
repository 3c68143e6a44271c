/** Who is asking: checks the credential that a route's kind of caller brings. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { aliveAuthSessions } from '../db/auth-sessions.ts'
import type { Database } from '../db/connection.ts'
import { batch } from '../platform/batch.ts'
import type { Config } from '../platform/config.ts'
import type { AccessTokens, User } from './access-tokens.ts'
import { addressSubject, type RateLimits } from './rate-limits.ts'
import { Refusal } from './refusals.ts'
import type { CallerKind, Callers } from './route.ts'

export interface Credentials {
  readonly ip: string
  readonly header: (name: string) => string | undefined
}

export type Identify = <Kind extends CallerKind>(kind: Kind, credentials: Credentials) => Promise<Callers[Kind]>

interface Needs {
  readonly config: Config
  readonly sql: Database
  readonly accessTokens: AccessTokens
  readonly rateLimits: RateLimits
}

export function createIdentify({ config, sql, accessTokens, rateLimits }: Needs): Identify {
  const relaySecrets = config.relayAuthSecrets.map(digestOf)
  const isAlive = batch((users: User[]) => aliveAuthSessions(sql, users))

  const identify: { [Kind in CallerKind]: (credentials: Credentials) => Promise<Callers[Kind]> | Callers[Kind] } = {
    none: () => undefined,

    /** A bearer token, whose sign-in is still alive: logout and disabling an account end it before it expires. */
    user: async ({ header }) => {
      const token = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header('authorization') ?? '')?.[1]
      const user = token && (await accessTokens.verify(token))
      if (user && (await isAlive(user))) return user
      throw new Refusal('unauthorized', undefined, {
        'WWW-Authenticate': token ? 'Bearer error="invalid_token"' : 'Bearer',
      })
    },

    maybe_user: (credentials) =>
      credentials.header('authorization') === undefined ? undefined : identify.user(credentials),

    /** HTTP Basic. Without a configured password there are no operators, and nothing tells that there could be. */
    operator: async ({ ip, header }) => {
      if (config.operatorPassword === undefined) throw new Refusal('not_found')
      const subject = addressSubject(ip)
      // A right guess is refused too while its address is limited, or the limit would not slow guessing.
      await rateLimits.peek('operator', subject)
      const basic = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(header('authorization') ?? '')?.[1]
      const given = basic && Buffer.from(basic, 'base64').toString('utf8')
      if (given && sameText(given, `operator:${config.operatorPassword}`)) return 'operator' as const
      await rateLimits.count('operator', subject)
      throw new Refusal('invalid_operator', undefined, {
        'WWW-Authenticate': 'Basic realm="operators", charset="UTF-8"',
      })
    },

    relay: ({ header }) => {
      const given = header('x-relay-auth') ?? ''
      const digest = digestOf(given)
      if (relaySecrets.some((secret) => timingSafeEqual(digest, secret))) return 'relay' as const
      throw new Refusal('invalid_relay_auth')
    },
  }

  return async (kind, credentials) => identify[kind](credentials)
}

/** Compares without telling by its duration how much was right, whatever the lengths. */
const sameText = (left: string, right: string): boolean => timingSafeEqual(digestOf(left), digestOf(right))

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
