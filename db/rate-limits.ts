/** Requests counted a minute, in Postgres, so that replicas and restarts share the count. */
import { first, type Sql } from './connection.ts'

export const windowSeconds = 60

export interface RateLimitWindow {
  /** Requests in this window, this one included. */
  readonly requests: number
  /** Seconds until the window ends; at least 1. */
  readonly resetSeconds: number
}

/** Counts one request for each key (a key may come several times) and answers each key's window, in the order asked. */
export async function countRequests(
  sql: Sql,
  keys: readonly string[],
  /** `soon`: a database that crashes may forget the last moments' counts, and nobody waits for its disk. */
  durable: 'now' | 'soon' = 'now',
): Promise<RateLimitWindow[]> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  // In one order everywhere, so that two rounds with the same keys wait for each other instead of deadlocking.
  const names = [...counts.keys()].sort()
  const rows = await sql<{ key: string; requests: number; reset_seconds: number }[]>`
    insert into rate_limit_windows as w (key, opened_at, requests)
    select key, now(), requests
    from unnest(${names}::text[], ${names.map((name) => counts.get(name) ?? 0)}::int[]) as asked (key, requests)
      ${durable === 'soon' ? sql`, set_config('synchronous_commit', 'off', true)` : sql``}
    on conflict (key) do update set
      requests = case when w.opened_at <= now() - make_interval(secs => ${windowSeconds}) then excluded.requests
                      else least(w.requests + excluded.requests, 1000000) end,
      opened_at = case when w.opened_at <= now() - make_interval(secs => ${windowSeconds}) then now() else w.opened_at end
    returning key, requests,
      greatest(1, ceil(${windowSeconds} - extract(epoch from now() - opened_at)))::int as reset_seconds`
  const windows = new Map(rows.map((row) => [row.key, row] as const))
  // Within a round each of a key's requests has its own place in line: the last one sees the whole count.
  const later = new Map<string, number>()
  return keys
    .toReversed()
    .map((key) => {
      const window = windows.get(key)
      if (!window) throw new Error('a counted key did not come back')
      const behind = later.get(key) ?? 0
      later.set(key, behind + 1)
      return { requests: window.requests - behind, resetSeconds: window.reset_seconds }
    })
    .toReversed()
}

/** Counts one request, within the caller's transaction. */
export async function countRequest(sql: Sql, key: string): Promise<RateLimitWindow> {
  const window = first(await countRequests(sql, [key]))
  if (!window) throw new Error('a counted key did not come back')
  return window
}

/** The key's window while it lasts, counting nothing. */
export const readWindow = async (sql: Sql, key: string): Promise<RateLimitWindow | undefined> =>
  first(
    await sql<RateLimitWindow[]>`
      select requests, greatest(1, ceil(${windowSeconds} - extract(epoch from now() - opened_at)))::int as "resetSeconds"
      from rate_limit_windows where key = ${key} and opened_at > now() - make_interval(secs => ${windowSeconds})`,
  )

/** Forgets the windows that ended. */
export const forgetEndedWindows = async (sql: Sql): Promise<number> =>
  (await sql`delete from rate_limit_windows where opened_at < now() - make_interval(secs => ${2 * windowSeconds})`)
    .count
