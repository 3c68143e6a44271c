/** Fixed windows of one minute, counted in Postgres so that all replicas share them and they outlast a restart. */
import type { Fragment, Sql } from './connection.ts'

export const windowSeconds = 60

export interface RateLimitWindow {
  /** Requests in this window, this one included. */
  readonly requests: number
  /** Seconds until the window ends; at least 1. */
  readonly resetSeconds: number
}

export interface Charge {
  readonly key: string
  /** Added to the window: 1 for a request that counts, 0 to read the window without counting. */
  readonly amount: 0 | 1
}

/** Counts one request per key; a key may occur several times. @returns the window of each key, in the given order. */
export const countRequests = (
  sql: Sql,
  keys: readonly string[],
  durability: Durability = 'committed',
): Promise<RateLimitWindow[]> =>
  chargeWindows(
    sql,
    keys.map((key) => ({ key, amount: 1 })),
    durability,
  )

/** `deferred`: does not wait for the disk; a crash of the database may lose the counts of the last moments. */
type Durability = 'committed' | 'deferred'

/** Adds each charge to its window. @returns the window after each charge, in the given order. */
export async function chargeWindows(
  sql: Sql,
  charges: readonly Charge[],
  durability: Durability,
): Promise<RateLimitWindow[]> {
  const sums = new Map<string, number>()
  for (const { key, amount } of charges) sums.set(key, (sums.get(key) ?? 0) + amount)
  // Every statement locks its keys in the same order, so that concurrent statements do not deadlock.
  const names = [...sums.keys()].sort()
  const rows = await sql<{ key: string; requests: number; resetSeconds: number }[]>`
    insert into rate_limit_windows as w (key, opened_at, requests)
    select key, now(), requests
    from unnest(${names}::text[], ${names.map((name) => sums.get(name) ?? 0)}::int[]) as charge (key, requests)
      ${durability === 'deferred' ? sql`, set_config('synchronous_commit', 'off', true)` : sql``}
    ${addToWindow(sql)}`
  const totals = new Map(rows.map(({ key, ...window }) => [key, window] as const))
  return windowsInOrder(charges, totals).map((window) => {
    if (!window) throw new Error('insert into rate_limit_windows returned no row for a key')
    return window
  })
}

/** The end of an insert of charges as `w`, with one row for each key. Returns the windows with their keys. */
export const addToWindow = (sql: Sql): Fragment => sql`
    on conflict (key) do update set
      requests = case when w.opened_at <= now() - make_interval(secs => ${windowSeconds}) then excluded.requests
                      else least(w.requests + excluded.requests, 1000000) end,
      opened_at = case when w.opened_at <= now() - make_interval(secs => ${windowSeconds}) then now() else w.opened_at end
    returning key, requests,
      greatest(1, ceil(${windowSeconds} - extract(epoch from now() - opened_at)))::int as reset_seconds`

/**
 * The window after each charge, in the given order. The statement returns one total for each key, so each charge gets
 * the total without the charges after it. Undefined for a missing charge and for one without a total.
 */
export function windowsInOrder(
  charges: readonly (Charge | undefined)[],
  totals: ReadonlyMap<string, RateLimitWindow>,
): (RateLimitWindow | undefined)[] {
  const laterAmounts = new Map<string, number>()
  return charges
    .toReversed()
    .map((charge) => {
      const total = charge && totals.get(charge.key)
      if (!charge || !total) return undefined
      const later = laterAmounts.get(charge.key) ?? 0
      laterAmounts.set(charge.key, later + charge.amount)
      return { requests: total.requests - later, resetSeconds: total.resetSeconds }
    })
    .toReversed()
}

/** Counts one request in the caller's transaction. */
export async function countRequest(sql: Sql, key: string): Promise<RateLimitWindow> {
  const [window] = await countRequests(sql, [key])
  if (!window) throw new Error('insert into rate_limit_windows returned no row')
  return window
}

/** @returns the number of deleted windows. */
export const deleteEndedWindows = async (sql: Sql): Promise<number> =>
  (await sql`delete from rate_limit_windows where opened_at < now() - make_interval(secs => ${2 * windowSeconds})`)
    .count
