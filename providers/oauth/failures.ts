/** What the library's errors mean to us. Theirs carry whole answers along, with tokens in them; ours a few words. */
import { ClientError, ResponseBodyError } from 'openid-client'
import { OAuthDenied, OAuthProviderTrouble } from './provider.ts'

/**
 * The codes by which a token endpoint says no to the person. The others (`invalid_client`, `unauthorized_client`, …) say
 * it to us: a mistyped client secret must not look as if everybody had withdrawn their grant.
 */
const refusals = ['invalid_grant', 'access_denied']

/** Runs `ask` and tells in our own words how it failed. Throws {@link OAuthDenied} or {@link OAuthProviderTrouble}. */
export async function inOurWords<Answer>(says: string, ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    throw failureOf(says, error)
  }
}

/** The codes by which a revocation endpoint says that there is nothing to revoke, or that it can't revoke such a token (RFC 7009). */
const nothingToRevoke = ['invalid_token', 'invalid_grant', 'unsupported_token_type']

/** Runs a revocation. Throws {@link OAuthProviderTrouble}. */
export const revoking = (says: string, revoke: () => Promise<void>): Promise<void> =>
  inOurWords(says, async () => {
    try {
      await revoke()
    } catch (error) {
      if (!(error instanceof ResponseBodyError && nothingToRevoke.includes(error.error))) throw error
    }
  })

function failureOf(says: string, error: unknown): OAuthDenied | OAuthProviderTrouble {
  for (const one of [error, error instanceof Error ? error.cause : undefined])
    if (one instanceof OAuthDenied || one instanceof OAuthProviderTrouble) return one
  if (error instanceof ResponseBodyError)
    return refusals.includes(error.error)
      ? new OAuthDenied(`${says} refused: ${error.error}`)
      : new OAuthProviderTrouble(`${says} answered ${error.status}${codeOf(error.error)}`)
  if (error instanceof ClientError) return failureByCode(says, error)
  return new OAuthProviderTrouble(`${says} answered something unexpected`)
}

function failureByCode(says: string, { code }: ClientError): OAuthDenied | OAuthProviderTrouble {
  switch (code) {
    // The ID token is for another client, from another issuer or of another round.
    case 'OAUTH_JWT_CLAIM_COMPARISON_FAILED':
      return new OAuthDenied(`${says} signed an ID token that is not of this round`)
    case 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED':
      return new OAuthProviderTrouble(`${says} sent an ID token out of its time: compare the clocks`)
    case 'OAUTH_RESPONSE_IS_NOT_JSON':
    case 'OAUTH_PARSE_ERROR':
      return new OAuthProviderTrouble(`${says} did not answer in JSON`)
    default:
      return new OAuthProviderTrouble(`${says} answered something unexpected${codeOf(code)}`)
  }
}

/** Only what looks like a code: the rest may be anything that a stranger wrote. */
const codeOf = (code: string | undefined): string => (code && /^\w{1,64}$/.test(code) ? ` (${code})` : '')
