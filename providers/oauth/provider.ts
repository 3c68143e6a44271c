/** Whoever people may sign in with, behind one interface. Identities are told apart by the provider's own user id. */

export const oauthProviderNames = ['twitch', 'google', 'discord'] as const
export type OAuthProviderName = (typeof oauthProviderNames)[number]

/** What is asked of the provider: who somebody is, or to read and write the chat of their channel as well. */
export type OAuthScopes = 'identity' | 'chat'

/** One round trip of a browser. The same values go out with the browser and are checked when it is back. */
export interface OAuthRound {
  readonly state: string
  /** PKCE's code verifier; providers without PKCE leave it out. */
  readonly verifier: string
  /** For OpenID Connect; the others leave it out. */
  readonly nonce: string
  readonly redirectUri: string
  readonly scopes: OAuthScopes
}

export interface OAuthIdentity {
  readonly providerUserId: string
  /** The address only if the provider says that it belongs to this person, else null. */
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
  /** Where the browser is to go. Throws {@link OAuthProviderTrouble}. */
  authorizationUrl(round: OAuthRound): Promise<URL>
  /** Who came back, within 10 s. Throws {@link OAuthDenied} or {@link OAuthProviderTrouble}. */
  exchange(
    round: OAuthRound,
    callback: { readonly code: string; readonly iss?: string | undefined },
  ): Promise<{ readonly identity: OAuthIdentity; readonly tokens: OAuthTokens }>
  /** Tokens anew. Throws {@link OAuthDenied} when the person has withdrawn the grant, or {@link OAuthProviderTrouble}. */
  refresh(refreshToken: string): Promise<OAuthTokens>
  /**
   * Resolves once the provider takes the token no more, also when it did not before. May end the whole grant, with all tokens
   * that it has issued. Throws {@link OAuthProviderTrouble}.
   */
  revoke(token: string): Promise<void>
}

/** The provider answered, and its answer is no: a code that is none, a grant that is over. */
export class OAuthDenied extends Error {
  override name = 'OAuthDenied'
}

/** The provider did not answer as it should, or not in time: nobody's fault here, and worth another try. */
export class OAuthProviderTrouble extends Error {
  override name = 'OAuthProviderTrouble'
}
