/**
 * The brake on guessing one account's password, besides the limit on how often one address may try at all.
 *
 * All addresses from which nobody signed in to the account lately share one budget of wrong passwords a minute, so that
 * guessing from many addresses at once is as slow as from one. An address from which someone did has a budget of its own:
 * strangers who use theirs up don't keep the owner out, and the block ends with the minute in any case.
 * Budgets go by the address as typed, whether it has an account or not, so that the brake tells nothing either.
 */
import { findAttemptTarget, refundAttempt } from '../../db/login-failures.ts'
import { addressSubject } from '../http/networks.ts'
import { rateLimitKey } from '../http/rate-limits.ts'
import type { Services } from '../services.ts'

/** One try, counted as a failure before it is known to be one: a hundred tries at once are a hundred tries. */
export interface CountedTry {
  /** It was no wrong password after all. */
  forgive(): Promise<void>
}

/** Counts the try; refuses with `rate_limited` when the budget is used up, the right password too. */
export async function countTry({ sql, rateLimits }: Services, email: string, ip: string): Promise<CountedTry> {
  const { emailHash, isFamiliarNetwork } = await findAttemptTarget(sql, email, ip)
  const subject = isFamiliarNetwork ? `${emailHash}@${addressSubject(ip)}` : emailHash
  await rateLimits.count('login_failures', subject)
  return { forgive: () => refundAttempt(sql, rateLimitKey('login_failures', subject)) }
}
