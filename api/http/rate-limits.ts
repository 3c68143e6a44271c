/** Rate limits, with the RateLimit header fields of the IETF draft in the response. */
import type { Database } from '../../db/connection.ts'
import { type Charge, chargeWindows, countRequests, type RateLimitWindow, windowSeconds } from '../../db/rate-limits.ts'
import { batch } from '../../platform/batch.ts'
import type { Config } from '../../platform/config/config.ts'
import type { RateLimitName } from '../../platform/config/values.ts'
import { Refusal } from './refusals.ts'

export type RateLimitHeaders = Readonly<Record<string, string>>

export interface RateLimits {
  /** Counts one request. @returns the header fields. Refuses with `rate_limited`. */
  count(name: RateLimitName, subject: string): Promise<RateLimitHeaders>
  /** The same for a window that was counted elsewhere, for example in a transaction. */
  check(name: RateLimitName, window: RateLimitWindow): RateLimitHeaders
  /**
   * Counts a guess at a secret, after it was compared and before the response is sent: a wrong guess adds to the
   * window, a right one does not. Both are refused with `rate_limited` if the window is used up.
   *
   * Each guess is one update of the window's row, which puts the guesses of all processes in one order. A right guess
   * passes only if fewer wrong ones than the limit precede it. So in a burst no more wrong guesses than the limit are
   * answered as wrong, and right guesses do not limit each other. Within one process the order is that of arrival.
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

  const check: RateLimits['check'] = (name, { requests, resetSeconds }) => {
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
    check,
    count: async (name, subject) => check(name, await countOne(rateLimitKey(name, subject))),
    countGuess: async (name, subject, isRight) => {
      const { requests, ...window } = await charge({ key: rateLimitKey(name, subject), amount: isRight ? 0 : 1 })
      // A right guess passes only if one more counted guess would.
      check(name, { ...window, requests: isRight ? requests + 1 : requests })
    },
  }
}
