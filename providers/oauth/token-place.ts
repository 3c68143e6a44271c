/** Where a sealed provider token belongs. Sealed for one place, it opens in no other row and in no other field. */
import type { OAuthProviderName } from './provider.ts'

export type TokenField = 'access_token' | 'refresh_token'

export const tokenPlace = (userId: string, provider: OAuthProviderName, field: TokenField): readonly string[] => [
  userId,
  provider,
  field,
]
