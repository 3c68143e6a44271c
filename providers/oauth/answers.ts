/** What providers answer, as we take it: who somebody is, and what they grant. */
import { parseEmailAddress } from '../../platform/email-address.ts'
import { type OAuthIdentity, OAuthProviderTrouble, type OAuthTokens } from './provider.ts'

interface Claimed {
  readonly id: unknown
  readonly email: unknown
  readonly emailVerified: unknown
}

/** Throws {@link OAuthProviderTrouble} without an id that tells people apart. An address that is none counts as missing. */
export function identityOf(says: string, { id, email, emailVerified }: Claimed): OAuthIdentity {
  if (typeof id !== 'string' || id.length < 1 || id.length > 255 || /\p{C}/u.test(id))
    throw new OAuthProviderTrouble(`${says} did not say whose account it is`)
  // Google may send either as text, and "false" is text too.
  const isVerified = emailVerified === true || emailVerified === 'true'
  return { providerUserId: id, verifiedEmail: isVerified ? addressOf(email) : null }
}

/** By the same rule as addresses that people sign up with: both are compared. */
function addressOf(claimed: unknown): string | null {
  if (typeof claimed !== 'string') return null
  const parsed = parseEmailAddress(claimed)
  return 'address' in parsed ? parsed.address : null
}

interface TokenAnswer {
  readonly access_token: string
  readonly refresh_token?: string
  readonly expires_in?: number
  readonly scope?: string
}

const scopesMax = 50
/** Beyond a year an expiry means nothing, and may be beyond what a date can hold. */
const expirySecondsMax = 366 * 86_400

/**
 * @param asked what holds where the answer is silent: the scopes that were asked for, and the refresh token that was used
 *   (RFC 6749, 5.1 and 6).
 */
export function tokensOf(
  answer: TokenAnswer,
  asked: { readonly scopes: readonly string[]; readonly refreshToken?: string },
): OAuthTokens {
  const { access_token, refresh_token, expires_in: seconds, scope } = answer
  const expires = seconds !== undefined && seconds >= 0 && seconds <= expirySecondsMax
  return {
    accessToken: access_token,
    refreshToken: refresh_token ?? asked.refreshToken ?? null,
    expiresAt: expires ? new Date(Date.now() + seconds * 1000) : null,
    scopes: scope === undefined ? asked.scopes : scope.split(' ').filter(isScope).slice(0, scopesMax),
  }
}

const isScope = (text: string): boolean => /^[\x21-\x7e]{1,255}$/.test(text)
