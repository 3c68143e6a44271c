/** The identity of the person who signed in, parsed from ID token claims or a user info response. */
import { parseEmailAddress } from '../../domain/identity/email-address.ts'
import { type OAuthIdentity, OAuthProviderError } from './provider.ts'

interface IdentityClaims {
  readonly id: unknown
  readonly email: unknown
  readonly emailVerified: unknown
}

/** Throws {@link OAuthProviderError} without a usable user id. An invalid address counts as missing. */
export function parseIdentity(providerName: string, { id, email, emailVerified }: IdentityClaims): OAuthIdentity {
  if (typeof id !== 'string' || id.length < 1 || id.length > 255 || /\p{C}/u.test(id))
    throw new OAuthProviderError(`${providerName} sent no valid user id`)
  // Google may send a string; the string "false" means false.
  const isVerified = emailVerified === true || emailVerified === 'true'
  return { providerUserId: id, verifiedEmail: isVerified ? parseAddress(email) : null }
}

/** Applies the rule for addresses at sign-up, because the two are compared. */
function parseAddress(email: unknown): string | null {
  if (typeof email !== 'string') return null
  const parsed = parseEmailAddress(email)
  return 'address' in parsed ? parsed.address : null
}
