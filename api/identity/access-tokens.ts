/**
 * Access tokens: JWTs that identify a user and an auth session. The HMAC key is the raw bytes of the secret's text
 * (specification, "Tokens"). Verification follows RFC 8725.
 */

import { createHash, randomUUID } from 'node:crypto'
import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { isUuid } from '../../domain/uuid.ts'
import type { Config } from '../../platform/config/config.ts'

/** An authenticated user with the auth session of the request. */
export interface User {
  readonly userId: string
  readonly authSessionId: string
}

/** A user with the expiry of the access token. */
export interface TokenUser extends User {
  /** Unix time, the `exp` claim. */
  readonly tokenExpiresAtSeconds: number
}

const algorithm = 'HS256'
const type = 'at+jwt'
const audience = 'svc-api'

export interface AccessTokens {
  readonly ttlSeconds: number
  sign(user: User): Promise<string>
  /** @returns undefined if the token is not valid: signature, issuer, audience, claims, issue time or expiry. */
  verify(token: string): Promise<TokenUser | undefined>
}

export function createAccessTokens(config: Pick<Config, 'jwt' | 'apiUrl'>): AccessTokens {
  const current = signingKey(config.jwt.secret)
  const keys = new Map(
    [current, ...(config.jwt.previousSecret ? [signingKey(config.jwt.previousSecret)] : [])].map((key) => [
      key.kid,
      key,
    ]),
  )

  /** Clients send the same token for minutes; only its expiry can invalidate it. */
  const verified = new Map<string, TokenUser>()

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
      const cached = verified.get(token)
      if (cached) return cached.tokenExpiresAtSeconds > Date.now() / 1000 ? cached : undefined
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
        const user = isIssuedInFuture(payload) ? undefined : toUser(payload)
        if (user) cache(verified, token, user)
        return user
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined
        throw error
      }
    },
  }
}

const cachedMax = 10_000

/** Evicts the oldest token when the cache is full. */
function cache(verified: Map<string, TokenUser>, token: string, entry: TokenUser): void {
  const oldest = verified.size >= cachedMax ? verified.keys().next().value : undefined
  if (oldest !== undefined) verified.delete(oldest)
  verified.set(token, entry)
}

/** The tolerated difference between the clocks of replicas. */
const clockSkewSecondsMax = 60

const isIssuedInFuture = ({ iat = 0 }: JWTPayload): boolean => iat > Date.now() / 1000 + clockSkewSecondsMax

const toUser = ({ sub, uid, sid, exp = 0 }: JWTPayload): TokenUser | undefined =>
  typeof sub === 'string' && typeof sid === 'string' && uid === sub && isUuid(sub) && isUuid(sid)
    ? { userId: sub, authSessionId: sid, tokenExpiresAtSeconds: exp }
    : undefined

/** The key id is a hash, so that it does not reveal the secret. */
function signingKey(secret: string) {
  const bytes = new TextEncoder().encode(secret)
  return { bytes, kid: createHash('sha256').update('kid:').update(bytes).digest('base64url').slice(0, 12) }
}
