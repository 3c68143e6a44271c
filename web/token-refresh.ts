/**
 * Exchanging refresh tokens for browsers. Tabs that ask at once with the same token share one exchange and its result, and
 * so does one that comes a moment later with the token that was just replaced: each would else make the other's token a
 * replaced one, and the api ends a sign-in whose replaced token is used again. Other processes know nothing of it: where
 * there are several, all requests of a browser have to come to the same one (docs/operating.md).
 */
import { createHash } from 'node:crypto'
import { type Api, ApiUnavailableError, type Visitor } from './api.ts'
import { isTokenSet, type TokenSet } from './cookies.ts'

/** As long as the api honours a replaced token. */
const rememberedMillis = 15_000
const rememberedMax = 10_000

/** What the api says of a token; anything else is a word on itself, or on who stands between. */
const refusals = [400, 401, 403]

export interface TokenRefresher {
  /** The next token set, or undefined when the token is worth nothing any more. Rejects with {@link ApiUnavailableError}. */
  refresh(refreshToken: string, visitor: Visitor): Promise<TokenSet | undefined>
}

export function createTokenRefresher(api: Api): TokenRefresher {
  const exchanges = new Map<string, Promise<TokenSet | undefined>>()

  const exchange = async (refreshToken: string, visitor: Visitor): Promise<TokenSet | undefined> => {
    const answer = await api.call('POST', '/api/v1/auth/refresh', { visitor, body: { refresh_token: refreshToken } })
    if (answer.status === 200 && isTokenSet(answer.body)) return answer.body
    if (refusals.includes(answer.status)) return undefined
    throw new ApiUnavailableError(`the api answered a refresh with ${answer.status}`)
  }

  return {
    refresh: (refreshToken, visitor) => {
      const key = createHash('sha256').update(refreshToken).digest('base64')
      const known = exchanges.get(key)
      if (known) return known
      const exchanged = exchange(refreshToken, visitor)
      exchanges.set(key, exchanged)
      const [oldest] = exchanges.keys()
      if (exchanges.size > rememberedMax && oldest !== undefined) exchanges.delete(oldest)
      exchanged.then(
        () => setTimeout(() => exchanges.delete(key), rememberedMillis).unref(),
        () => exchanges.delete(key),
      )
      return exchanged
    },
  }
}
