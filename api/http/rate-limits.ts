/** Counts a request against its limit and says so in the reply, as the RateLimit header fields draft has it. */
import type { Database } from '../../db/connection.ts'
import { type Charge, chargeWindows, countRequests, type RateLimitWindow, windowSeconds } from '../../db/rate-limits.ts'
import { batch } from '../../platform/batch.ts'
import type { Config } from '../../platform/config/config.ts'
import type { RateLimitName } from '../../platform/config/values.ts'
import { Refusal } from './refusals.ts'

export type RateLimitHeaders = Readonly<Record<string, string>>

export interface RateLimits {
  /** Counts one request and answers the header fields, or refuses with `rate_limited`. */
  count(name: RateLimitName, subject: string): Promise<RateLimitHeaders>
  /** The same for a window that was counted elsewhere, such as within a transaction. */
  judge(name: RateLimitName, window: RateLimitWindow): RateLimitHeaders
  /**
   * Counts a guess at a secret whose outcome is known here and not answered yet: a wrong one adds to the window, a right one
   * does not. Both refuse with `rate_limited` when the window is used up.
   *
   * Each guess is one update of the window's row, so all guesses at all processes have one order, in which a right one passes
   * only while fewer wrong ones than the limit come before it. In a burst no more wrong guesses than the limit are answered
   * as wrong, and right ones never limit each other, however many are in flight. One process keeps the order of arrival.
   */
  countGuess(name: RateLimitName, subject: string, isRight: boolean): Promise<void>
}

export const rateLimitKey = (name: RateLimitName, subject: string): string => `${name}:${subject}`

export function createRateLimits(sql: Database, limits: Config['rateLimits']): RateLimits {
  const countOne = batch((keys: string[]) => countRequests(sql, keys, 'deferred'))
  const charge = batch((charges: Charge[]) => chargeWindows(sql, charges, 'deferred'), {
    sizeMax: 200,
    concurrencyMax: 1,
  })

  const judge: RateLimits['judge'] = (name, { requests, resetSeconds }) => {
    const limit = limits[name]
    const headers = {
      'RateLimit-Policy': `"${name}";q=${limit};w=${windowSeconds}`,
      RateLimit: `"${name}";r=${Math.max(0, limit - requests)};t=${resetSeconds}`,
    }
    if (requests > limit)
      throw new Refusal('rate_limited', { headers: { ...headers, 'Retry-After': String(resetSeconds) } })
    return headers
  }

  return {
    judge,
    count: async (name, subject) => judge(name, await countOne(rateLimitKey(name, subject))),
    countGuess: async (name, subject, isRight) => {
      const { requests, ...window } = await charge({ key: rateLimitKey(name, subject), amount: isRight ? 0 : 1 })
      // A right guess is judged as the next one that would have counted.
      judge(name, { ...window, requests: isRight ? requests + 1 : requests })
    },
  }
}
