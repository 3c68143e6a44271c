/**
 * The limit on wrong passwords per account, in addition to the limit on sign-in attempts per client network.
 *
 * All networks that are not familiar to the account share one budget of wrong passwords per minute, so that guessing
 * from many addresses is not faster than from one. A network from which the account was signed in to recently has a
 * budget of its own: attackers elsewhere cannot lock the owner out. The counters use the email address that was
 * entered, whether or not it has an account, so that a refusal does not reveal which addresses have accounts.
 */
import { findAttemptTarget, refundAttempt } from '../../db/identity/login-failures.ts'
import { clientNetwork } from '../http/ip-networks.ts'
import { rateLimitKey } from '../http/rate-limits.ts'
import type { Services } from './services.ts'

/**
 * An attempt that was counted as failed before the password was compared, so that concurrent attempts are all counted.
 */
export interface CountedAttempt {
  /** Call it when the attempt did not fail. */
  refund(): Promise<void>
}

/** Refuses with `rate_limited` if the budget is used up, also for the right password. */
export async function countPasswordAttempt(
  { sql, rateLimits }: Services,
  email: string,
  ip: string,
): Promise<CountedAttempt> {
  const { emailHash, isFamiliarNetwork } = await findAttemptTarget(sql, email, ip)
  const subject = isFamiliarNetwork ? `${emailHash}@${clientNetwork(ip)}` : emailHash
  await rateLimits.count('login_failures', subject)
  return { refund: () => refundAttempt(sql, rateLimitKey('login_failures', subject)) }
}
