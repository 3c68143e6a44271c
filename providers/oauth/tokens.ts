/**
 * Tokens of OAuth providers: parsing a token response, the scopes for chat, and the place that a stored token is sealed
 * for.
 */
import type { OAuthProviderName, OAuthTokens } from './provider.ts'

/** The scopes to request when a user connects chat. Users may grant fewer. */
export const chatScopes: Readonly<Record<OAuthProviderName, readonly string[]>> = {
  twitch: ['chat:read', 'chat:edit'],
  google: ['https://www.googleapis.com/auth/youtube.readonly'],
  discord: ['guilds'],
}

export const hasChatScopes = (provider: OAuthProviderName, granted: readonly string[]): boolean =>
  chatScopes[provider].every((scope) => granted.includes(scope))

export type TokenField = 'access_token' | 'refresh_token'

/** Binds a sealed token to its row and field: a value copied to another row or field cannot be opened. */
export const tokenPlace = (userId: string, provider: OAuthProviderName, field: TokenField): readonly string[] => [
  userId,
  provider,
  field,
]

interface TokenResponse {
  readonly access_token: string
  readonly refresh_token?: string
  readonly expires_in?: number
  readonly scope?: string
}

const scopesMax = 50
/** A longer expiry is treated as missing; it could exceed the range of `Date`. */
const expirySecondsMax = 366 * 86_400

/**
 * @param requested applies to what the response omits: the requested scopes, and the refresh token that was used
 *   (RFC 6749, sections 5.1 and 6).
 */
export function parseTokens(
  response: TokenResponse,
  requested: { readonly scopes: readonly string[]; readonly refreshToken?: string },
): OAuthTokens {
  const { access_token, refresh_token, expires_in: seconds, scope } = response
  const hasExpiry = seconds !== undefined && seconds >= 0 && seconds <= expirySecondsMax
  return {
    accessToken: access_token,
    refreshToken: refresh_token ?? requested.refreshToken ?? null,
    expiresAt: hasExpiry ? new Date(Date.now() + seconds * 1000) : null,
    scopes: scope === undefined ? requested.scopes : scope.split(' ').filter(isScope).slice(0, scopesMax),
  }
}

const isScope = (text: string): boolean => /^[\x21-\x7e]{1,255}$/.test(text)
