/** Providers' tokens on their way into rows and from one row to another: never as they are. */
import type { SealedTokens } from '../db/oauth-accounts.ts'
import type { Sealing } from '../platform/sealing.ts'
import type { OAuthTokens } from '../providers/oauth/provider.ts'
import type { TokenField } from '../providers/oauth/token-place.ts'

/** Which row they are sealed for. */
type Place = (field: TokenField) => readonly string[]

export const sealTokens = (sealing: Sealing, tokens: OAuthTokens, place: Place): SealedTokens => ({
  accessToken: sealing.seal(tokens.accessToken, place('access_token')),
  refreshToken: tokens.refreshToken === null ? null : sealing.seal(tokens.refreshToken, place('refresh_token')),
  expiresAt: tokens.expiresAt,
  scopes: tokens.scopes,
})

export function resealTokens(sealing: Sealing, tokens: SealedTokens, from: Place, to: Place): SealedTokens {
  const reseal = (sealed: string | null, field: TokenField) =>
    sealed === null ? null : sealing.seal(sealing.open(sealed, from(field)).text, to(field))
  return {
    ...tokens,
    accessToken: reseal(tokens.accessToken, 'access_token'),
    refreshToken: reseal(tokens.refreshToken, 'refresh_token'),
  }
}
