/** What the brake on password guessing must know besides the counted windows. */
import { first, type Sql } from './connection.ts'

/** How long an address counts as one that the account is used from. */
const familiarDays = 30

export interface Tried {
  /** Names the account that was tried, hashed: the counters hold no addresses of people who never signed up. */
  readonly account: string
  /** Someone signed in to it from this network (IPv4 address, IPv6 /64) lately. */
  readonly familiar: boolean
}

/** Which account is tried, and is it from a familiar place? Case is judged by the database, as it is for accounts. */
export async function whatIsTried(sql: Sql, email: string, ip: string): Promise<Tried> {
  const tried = first(
    await sql<Tried[]>`
      select encode(sha256(convert_to(lower(${email}), 'UTF8')), 'hex') as account, exists (
        select from users u join auth_sessions s on s.user_id = u.id
          cross join lateral (select split_part(s.ip, '%', 1)::inet as ip) seen
        where lower(u.email) = lower(${email}) and s.created_at > now() - make_interval(days => ${familiarDays})
          and split_part(${ip}, '%', 1)::inet
            <<= network(set_masklen(seen.ip, case family(seen.ip) when 4 then 32 else 64 end))) as familiar`,
  )
  if (!tried) throw new Error('a select without a table had no row')
  return tried
}

/** Takes back one counted attempt that turned out to be no failure. */
export const forgiveOne = async (sql: Sql, key: string): Promise<void> => {
  await sql`update rate_limit_windows set requests = greatest(0, requests - 1) where key = ${key}`
}
