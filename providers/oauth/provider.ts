/** The common interface of the OAuth providers. An identity is keyed by the provider's own user id. */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'

export { type OAuthProviderName, oauthProviderNames } from '../../domain/identity/oauth-providers.ts'

/** `chat` requests access to the chat of the user's channel in addition to the identity. */
export type OAuthScopes = 'identity' | 'chat'

/** The same values are sent with the browser and checked at its callback. */
export interface OAuthAuthorizationRequest {
  readonly state: string
  /** The PKCE code verifier; not used by providers without PKCE. */
  readonly verifier: string
  /** For OpenID Connect; not used by other providers. */
  readonly nonce: string
  readonly redirectUri: string
  readonly scopes: OAuthScopes
}

/** The query parameters that the provider adds to the redirect URI. The caller has checked `state`. */
export interface OAuthCallback {
  readonly code: string
  readonly iss?: string | undefined
}

export interface OAuthIdentity {
  readonly providerUserId: string
  /** Null unless the provider states that the address is verified. */
  readonly verifiedEmail: string | null
}

export interface OAuthTokens {
  readonly accessToken: string
  readonly refreshToken: string | null
  readonly expiresAt: Date | null
  readonly scopes: readonly string[]
}

export interface OAuthProvider {
  readonly name: OAuthProviderName
  /** The URL to send the browser to. Throws {@link OAuthProviderError}. */
  authorizationUrl(request: OAuthAuthorizationRequest): Promise<URL>
  /** Exchanges the code for tokens within 10 s. Throws {@link OAuthDeniedError} or {@link OAuthProviderError}. */
  exchange(
    request: OAuthAuthorizationRequest,
    callback: OAuthCallback,
  ): Promise<{ readonly identity: OAuthIdentity; readonly tokens: OAuthTokens }>
  /** Throws {@link OAuthDeniedError} if the user has withdrawn the grant, or {@link OAuthProviderError}. */
  refresh(refreshToken: string): Promise<OAuthTokens>
  /**
   * Resolves once the token is not valid, also if it was not valid before. May end the whole grant with all its tokens.
   * Throws {@link OAuthProviderError}.
   */
  revoke(token: string): Promise<void>
}

/** The provider refuses: the code is not valid, or the grant has ended. */
export class OAuthDeniedError extends Error {
  override name = 'OAuthDeniedError'
}

/** The provider gave no usable response, or none in time. A later attempt may succeed. */
export class OAuthProviderError extends Error {
  override name = 'OAuthProviderError'
}
