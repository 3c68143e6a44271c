/** Encryption of OAuth providers' tokens before they are stored. */
import type { SealedTokens } from '../../db/identity/oauth-accounts.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { OAuthTokens } from '../../providers/oauth/provider.ts'
import type { TokenField } from '../../providers/oauth/tokens.ts'

/** The row and field that a sealed token is bound to. */
type Place = (field: TokenField) => readonly string[]

export const sealTokens = (sealing: Sealing, tokens: OAuthTokens, place: Place): SealedTokens => ({
  accessToken: sealing.seal(tokens.accessToken, place('access_token')),
  refreshToken: tokens.refreshToken === null ? null : sealing.seal(tokens.refreshToken, place('refresh_token')),
  expiresAt: tokens.expiresAt,
  scopes: tokens.scopes,
})
