/** Providers' tokens on their way into rows: never as they are. */
import type { SealedTokens } from '../../db/oauth-accounts.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { OAuthTokens } from '../../providers/oauth/provider.ts'
import type { TokenField } from '../../providers/oauth/tokens.ts'

/** Which row they are sealed for. */
type Place = (field: TokenField) => readonly string[]

export const sealTokens = (sealing: Sealing, tokens: OAuthTokens, place: Place): SealedTokens => ({
  accessToken: sealing.seal(tokens.accessToken, place('access_token')),
  refreshToken: tokens.refreshToken === null ? null : sealing.seal(tokens.refreshToken, place('refresh_token')),
  expiresAt: tokens.expiresAt,
  scopes: tokens.scopes,
})
