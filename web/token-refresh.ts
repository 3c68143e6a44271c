/**
 * Exchanges refresh tokens for browsers. Requests with the same token share one exchange, and so do requests within 15
 * s after it: a second exchange would replace the first one's token, and the API ends a sign-in whose replaced token is
 * used again. A request with the token that the exchange returned shares it too: it comes from a tab that asked for its
 * page with the expired access token, and another tab has renewed the cookies meanwhile. The exchanges are in this
 * process only, so a load balancer must send all requests of a browser to the same process (docs/operating.md).
 */
import { createHash } from 'node:crypto'
import { ApiError } from '../client/api-error.ts'
import type { Api, Visitor } from './api.ts'
import { isTokenSet, type TokenSet } from './cookies.ts'

/** As long as the API accepts a replaced token. */
const exchangeReuseMillis = 15_000
const exchangesMax = 10_000

/** Replies with which the API rejects a token. Others are failures of the API or of a proxy, and reject no token. */
const rejectionStatuses = [400, 401, 403]

export interface TokenRefresher {
  /** The next token set, or undefined when the API rejects the token. Rejects when the API fails. */
  refresh(refreshToken: string, visitor: Visitor): Promise<TokenSet | undefined>
}

export function createTokenRefresher(api: Api): TokenRefresher {
  const exchanges = new Map<string, Promise<TokenSet | undefined>>()

  const exchange = async (refreshToken: string, visitor: Visitor): Promise<TokenSet | undefined> => {
    const body = { refresh_token: refreshToken }
    const { data, response } = await api.client({ visitor }).POST('/api/v1/auth/refresh', { body })
    const { status } = response
    if (isTokenSet(data)) return data
    if (rejectionStatuses.includes(status)) return undefined
    throw new ApiError({ status, code: '', reason: '', action: 'A token refresh' })
  }

  const share = (key: string, shared: Promise<TokenSet | undefined>) => {
    exchanges.set(key, shared)
    const [oldest] = exchanges.keys()
    if (exchanges.size > exchangesMax && oldest !== undefined) exchanges.delete(oldest)
  }

  const forgetLater = (key: string) => setTimeout(() => exchanges.delete(key), exchangeReuseMillis).unref()

  return {
    refresh: (refreshToken, visitor) => {
      const key = hashOf(refreshToken)
      const running = exchanges.get(key)
      if (running) return running
      const started = exchange(refreshToken, visitor)
      share(key, started)
      started.then(
        (tokens) => {
          forgetLater(key)
          if (!tokens) return
          const nextKey = hashOf(tokens.refresh_token)
          share(nextKey, started)
          forgetLater(nextKey)
        },
        () => exchanges.delete(key),
      )
      return started
    },
  }
}

const hashOf = (refreshToken: string): string => createHash('sha256').update(refreshToken).digest('base64')
