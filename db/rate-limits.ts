/** Requests counted a minute, in Postgres, so that replicas and restarts share the count. */
import { first, type Sql } from './connection.ts'

export const windowSeconds = 60

export interface RateLimitWindow {
  /** Requests in this window, this one included. */
  readonly requests: number
  /** Seconds until the window ends; at least 1. */
  readonly resetSeconds: number
}

export interface Charge {
  readonly key: string
  /** What is added to the window: 1 for a request that counts, 0 for one that is only judged by it. */
  readonly amount: 0 | 1
}

/** Counts one request for each key (a key may come several times) and answers each key's window, in the order asked. */
export const countRequests = (
  sql: Sql,
  keys: readonly string[],
  durable: Durability = 'now',
): Promise<RateLimitWindow[]> =>
  chargeWindows(
    sql,
    keys.map((key) => ({ key, amount: 1 })),
    durable,
  )

/** `soon`: a database that crashes may forget the last moments' counts, and no request waits for its disk. */
type Durability = 'now' | 'soon'

/** Adds each charge to its window, and answers the windows as each charge left them, in the order asked. */
export async function chargeWindows(
  sql: Sql,
  charges: readonly Charge[],
  durable: Durability,
): Promise<RateLimitWindow[]> {
  const sums = new Map<string, number>()
  for (const { key, amount } of charges) sums.set(key, (sums.get(key) ?? 0) + amount)
  // In one order everywhere, so that two rounds with the same keys wait for each other instead of deadlocking.
  const names = [...sums.keys()].sort()
  const rows = await sql<{ key: string; requests: number; resetSeconds: number }[]>`
    insert into rate_limit_windows as w (key, opened_at, requests)
    select key, now(), requests
    from unnest(${names}::text[], ${names.map((name) => sums.get(name) ?? 0)}::int[]) as asked (key, requests)
      ${durable === 'soon' ? sql`, set_config('synchronous_commit', 'off', true)` : sql``}
    on conflict (key) do update set
      requests = case when w.opened_at <= now() - make_interval(secs => ${windowSeconds}) then excluded.requests
                      else least(w.requests + excluded.requests, 1000000) end,
      opened_at = case when w.opened_at <= now() - make_interval(secs => ${windowSeconds}) then now() else w.opened_at end
    returning key, requests,
      greatest(1, ceil(${windowSeconds} - extract(epoch from now() - opened_at)))::int as reset_seconds`
  const windows = new Map(rows.map((row) => [row.key, row] as const))
  // Within a round each of a key's charges has its own place in line: the last one sees the whole count.
  const later = new Map<string, number>()
  return charges
    .toReversed()
    .map(({ key, amount }) => {
      const window = windows.get(key)
      if (!window) throw new Error('a counted key did not come back')
      const behind = later.get(key) ?? 0
      later.set(key, behind + amount)
      return { requests: window.requests - behind, resetSeconds: window.resetSeconds }
    })
    .toReversed()
}

/** Counts one request, within the caller's transaction. */
export async function countRequest(sql: Sql, key: string): Promise<RateLimitWindow> {
  const window = first(await countRequests(sql, [key]))
  if (!window) throw new Error('a counted key did not come back')
  return window
}

/** Forgets the windows that ended. */
export const forgetEndedWindows = async (sql: Sql): Promise<number> =>
  (await sql`delete from rate_limit_windows where opened_at < now() - make_interval(secs => ${2 * windowSeconds})`)
    .count
