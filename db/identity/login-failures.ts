/** Which counter of wrong passwords a sign-in attempt belongs to: see `api/identity/login-failures.ts`. */
import { first, type Sql } from '../connection.ts'

/** A network is familiar to an account for this long after a sign-in from it. */
const familiarDays = 30

interface AttemptTarget {
  /**
   * SHA-256 of the email address in lower case, so that the counters contain no addresses of people without an account.
   */
  readonly emailHash: string
  /** The account was signed in to from this network (IPv4 address, IPv6 /64) in the last {@link familiarDays} days. */
  readonly isFamiliarNetwork: boolean
}

/** Postgres compares the case of addresses, as it does for accounts. */
export async function findAttemptTarget(sql: Sql, email: string, ip: string): Promise<AttemptTarget> {
  const target = await first(sql<AttemptTarget[]>`
    select encode(sha256(convert_to(lower(${email}), 'UTF8')), 'hex') as email_hash, exists (
      select from users u join auth_sessions s on s.user_id = u.id
        cross join lateral (select split_part(s.ip, '%', 1)::inet as ip) seen
      where lower(u.email) = lower(${email}) and s.created_at > now() - make_interval(days => ${familiarDays})
        and split_part(${ip}, '%', 1)::inet
          <<= network(set_masklen(seen.ip, case family(seen.ip) when 4 then 32 else 64 end))) as is_familiar_network`)
  if (!target) throw new Error('select returned no row')
  return target
}

/** Subtracts one attempt that was counted but did not fail. */
export const refundAttempt = async (sql: Sql, key: string): Promise<void> => {
  await sql`update rate_limit_windows set requests = greatest(0, requests - 1) where key = ${key}`
}
