/**
 * Access tokens of apps: JWTs with an audience, an issuer and keys of their own, so that neither kind of token is
 * accepted as the other. Verification follows RFC 8725 and RFC 9068.
 */
import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from 'jose'
import { type AppScope, parseScopes } from '../../domain/identity/apps.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Config } from '../../platform/config/config.ts'
import { issuerOf } from './app-addresses.ts'

/** A connected app, which acts for the account that approved it. */
export interface AppCaller {
  readonly userId: string
  readonly clientId: string
  readonly grantId: string
  readonly scopes: readonly AppScope[]
  /** Unix time, the `exp` claim. */
  readonly tokenExpiresAtSeconds: number
}

export const isApp = (caller: { readonly userId: string }): caller is AppCaller => 'grantId' in caller

export const appAudience = 'svc-apps'

export interface AppAccessTokens {
  /** @returns undefined if the token is not valid. Its grant may have ended since it was issued. */
  verify(token: string): Promise<AppCaller | undefined>
}

export function createAppAccessTokens(config: Pick<Config, 'apiUrl' | 'apps'>): AppAccessTokens {
  if (config.apps === null) return { verify: async () => undefined }
  const publicKeys = config.apps.signingKeys.map(({ kty, crv, x, y, alg, use, kid }) => ({
    kty,
    crv,
    x,
    y,
    alg,
    use,
    kid,
  }))
  const keys = createLocalJWKSet({ keys: publicKeys })
  /** Clients send the same token for minutes; only its expiry can invalidate it. */
  const verified = new Map<string, AppCaller>()
  return {
    verify: async (token) => {
      const cached = verified.get(token)
      if (cached) return cached.tokenExpiresAtSeconds > Date.now() / 1000 ? cached : undefined
      try {
        const { payload } = await jwtVerify(token, keys, {
          algorithms: ['ES256'],
          issuer: issuerOf(config),
          audience: appAudience,
          typ: 'at+jwt',
          requiredClaims: ['sub', 'client_id', 'gid', 'scope', 'iat', 'exp', 'jti'],
        })
        const caller = toCaller(payload)
        if (caller) cache(verified, token, caller)
        return caller
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined
        throw error
      }
    },
  }
}

const cachedMax = 10_000

/** Evicts the oldest token when the cache is full. */
function cache(verified: Map<string, AppCaller>, token: string, caller: AppCaller): void {
  const oldest = verified.size >= cachedMax ? verified.keys().next().value : undefined
  if (oldest !== undefined) verified.delete(oldest)
  verified.set(token, caller)
}

function toCaller({ sub = '', client_id, gid, scope, exp = 0 }: JWTPayload): AppCaller | undefined {
  if (typeof client_id !== 'string' || typeof gid !== 'string' || typeof scope !== 'string') return undefined
  if (!isUuid(sub) || !isUuid(gid)) return undefined
  return { userId: sub, clientId: client_id, grantId: gid, scopes: parseScopes(scope), tokenExpiresAtSeconds: exp }
}
