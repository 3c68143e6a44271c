/** The address that a browser came back to, put together again from what the site handed on. */
import { OAuthDenied, type OAuthRound } from './provider.ts'

interface Issuer {
  readonly issuer: string
  /** Whether the provider says that each of its answers names it (RFC 9207). */
  readonly isAlwaysNamed: boolean
}

interface Callback {
  readonly code: string
  readonly iss?: string | undefined
}

/**
 * Without the state, which the caller has checked. Throws {@link OAuthDenied} when the answer names another issuer, or none
 * where the provider promises to name it. An issuer that is named is checked at providers that promise nothing, too.
 */
export function callbackUrl(says: string, { redirectUri }: OAuthRound, { code, iss }: Callback, at: Issuer): URL {
  if (iss === undefined ? at.isAlwaysNamed : iss !== at.issuer) throw new OAuthDenied(`${says} is not who answered`)
  const url = new URL(redirectUri)
  url.searchParams.set('code', code)
  if (iss !== undefined) url.searchParams.set('iss', iss)
  return url
}
