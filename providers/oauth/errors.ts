/** Translates errors of openid-client. Its errors carry whole responses with tokens; ours carry a short message. */
import { ClientError, ResponseBodyError } from 'openid-client'
import { OAuthDeniedError, OAuthProviderError } from './provider.ts'

/**
 * Error codes of a token endpoint that refuse the user's grant. The others (`invalid_client`, `unauthorized_client`, …)
 * refuse this service: a mistyped client secret must not look as if all users had withdrawn their grants.
 */
const grantRefusals = ['invalid_grant', 'access_denied']

/** Runs `request` and translates its error into {@link OAuthDeniedError} or {@link OAuthProviderError}. */
export async function translateErrors<Result>(providerName: string, request: () => Promise<Result>): Promise<Result> {
  try {
    return await request()
  } catch (error) {
    throw translateError(providerName, error)
  }
}

/** Error codes of a revocation endpoint for a token that is unknown or that it cannot revoke (RFC 7009). */
const nothingToRevoke = ['invalid_token', 'invalid_grant', 'unsupported_token_type']

/** Runs a revocation; one without an effect succeeds. Throws {@link OAuthProviderError}. */
export const translateRevocationErrors = (providerName: string, revoke: () => Promise<void>): Promise<void> =>
  translateErrors(providerName, async () => {
    try {
      await revoke()
    } catch (error) {
      if (!(error instanceof ResponseBodyError && nothingToRevoke.includes(error.error))) throw error
    }
  })

function translateError(providerName: string, error: unknown): OAuthDeniedError | OAuthProviderError {
  for (const own of [error, error instanceof Error ? error.cause : undefined])
    if (own instanceof OAuthDeniedError || own instanceof OAuthProviderError) return own
  if (error instanceof ResponseBodyError)
    return grantRefusals.includes(error.error)
      ? new OAuthDeniedError(`${providerName} refused: ${error.error}`)
      : new OAuthProviderError(`${providerName} answered ${error.status}${formatCode(error.error)}`)
  if (error instanceof ClientError) return translateClientError(providerName, error)
  return new OAuthProviderError(`${providerName} sent an unexpected response`)
}

function translateClientError(providerName: string, { code }: ClientError): OAuthDeniedError | OAuthProviderError {
  switch (code) {
    // The audience, the issuer or the nonce of the ID token is not the expected one.
    case 'OAUTH_JWT_CLAIM_COMPARISON_FAILED':
      return new OAuthDeniedError(`${providerName} sent an ID token that is not for this authorization request`)
    case 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED':
      return new OAuthProviderError(
        `${providerName} sent an ID token that is expired or not valid yet: check this host's clock`,
      )
    case 'OAUTH_RESPONSE_IS_NOT_JSON':
    case 'OAUTH_PARSE_ERROR':
      return new OAuthProviderError(`${providerName} did not answer in JSON`)
    default:
      return new OAuthProviderError(`${providerName} sent an unexpected response${formatCode(code)}`)
  }
}

/** Omits anything that is not a plain code: the value comes from the response. */
const formatCode = (code: string | undefined): string => (code && /^\w{1,64}$/.test(code) ? ` (${code})` : '')
