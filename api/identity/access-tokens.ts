/**
 * The access token: a JWT that proves who asks and through which sign-in, and nothing about relays.
 * Signed over the raw bytes of the secret's text (specification, "Tokens"); checked as strictly as RFC 8725 asks.
 */
import { createHash, randomUUID } from 'node:crypto'
import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { Config } from '../../platform/config/config.ts'

/** Someone signed in: their account and the sign-in that this request came with. */
export interface User {
  readonly userId: string
  readonly authSessionId: string
}

const algorithm = 'HS256'
const type = 'at+jwt'
const audience = 'svc-api'

export interface AccessTokens {
  readonly ttlSeconds: number
  sign(user: User): Promise<string>
  /** The token's user, or undefined when it is not one of ours, not for us, issued in the future, or over. */
  verify(token: string): Promise<User | undefined>
}

export function createAccessTokens(config: Pick<Config, 'jwt' | 'apiUrl'>): AccessTokens {
  const current = signingKey(config.jwt.secret)
  const keys = new Map(
    [current, ...(config.jwt.previousSecret ? [signingKey(config.jwt.previousSecret)] : [])].map((key) => [
      key.kid,
      key,
    ]),
  )

  const proven = new Map<string, Proven>()

  return {
    ttlSeconds: config.jwt.ttlSeconds,
    sign: ({ userId, authSessionId }) =>
      new SignJWT({ uid: userId, sid: authSessionId })
        .setProtectedHeader({ alg: algorithm, typ: type, kid: current.kid })
        .setIssuer(config.apiUrl)
        .setAudience(audience)
        .setSubject(userId)
        .setIssuedAt()
        .setExpirationTime(`${config.jwt.ttlSeconds}s`)
        .setJti(randomUUID())
        .sign(current.bytes),
    verify: async (token) => {
      const known = proven.get(token)
      if (known) return known.expiresAt > Date.now() / 1000 ? known.user : undefined
      try {
        const { payload } = await jwtVerify(
          token,
          (header) => keys.get(header.kid ?? '')?.bytes ?? Promise.reject(new errors.JWKSNoMatchingKey()),
          {
            algorithms: [algorithm],
            issuer: config.apiUrl,
            audience,
            typ: type,
            requiredClaims: ['sub', 'uid', 'sid', 'iat', 'exp', 'jti'],
          },
        )
        const user = isIssuedAhead(payload) ? undefined : userOf(payload)
        if (user) remember(proven, token, { user, expiresAt: payload.exp ?? 0 })
        return user
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined
        throw error
      }
    },
  }
}

/** A token that was checked whole. Clients send the same one for minutes, and only its end can change what it proves. */
interface Proven {
  readonly user: User
  /** Seconds since 1970, as the token has it. */
  readonly expiresAt: number
}

const provenMax = 10_000

/** Keeps the last ones, within a bound. */
function remember(proven: Map<string, Proven>, token: string, proof: Proven): void {
  const oldest = proven.size >= provenMax ? proven.keys().next().value : undefined
  if (oldest !== undefined) proven.delete(oldest)
  proven.set(token, proof)
}

/** Clocks of replicas differ by less. */
const issuedAheadSecondsMax = 60

const isIssuedAhead = ({ iat = 0 }: JWTPayload): boolean => iat > Date.now() / 1000 + issuedAheadSecondsMax

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const userOf = ({ sub, uid, sid }: JWTPayload): User | undefined =>
  typeof sub === 'string' && typeof sid === 'string' && uid === sub && uuid.test(sub) && uuid.test(sid)
    ? { userId: sub, authSessionId: sid }
    : undefined

/** The key id names the secret without telling anything about it. */
function signingKey(secret: string) {
  const bytes = new TextEncoder().encode(secret)
  return { bytes, kid: createHash('sha256').update('kid:').update(bytes).digest('base64url').slice(0, 12) }
}
