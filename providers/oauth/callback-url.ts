/** The URL that the provider redirected the browser to, rebuilt from what the site forwards. */
import { type OAuthAuthorizationRequest, type OAuthCallback, OAuthDeniedError } from './provider.ts'

interface ExpectedIssuer {
  readonly issuer: string
  /** Whether the provider declares that every callback carries `iss` (RFC 9207). */
  readonly isAlwaysSent: boolean
}

/**
 * Without `state`, which the caller has checked. Throws {@link OAuthDeniedError} if `iss` is another issuer, at every
 * provider, and if `iss` is missing where the provider always sends it.
 */
export function buildCallbackUrl(
  providerName: string,
  { redirectUri }: OAuthAuthorizationRequest,
  { code, iss }: OAuthCallback,
  { issuer, isAlwaysSent }: ExpectedIssuer,
): URL {
  if (iss === undefined ? isAlwaysSent : iss !== issuer)
    throw new OAuthDeniedError(`the callback does not come from ${providerName}: its iss is missing or another issuer`)
  const url = new URL(redirectUri)
  url.searchParams.set('code', code)
  if (iss !== undefined) url.searchParams.set('iss', iss)
  return url
}
