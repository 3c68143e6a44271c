/** The last check of each region's provider. */
import { first, type Sql } from '../connection.ts'

export interface ProviderCheck {
  region: string
  checkedAt: Date
  /** Since when all checks fail; null after a success. */
  failingSince: Date | null
  /** Contains no secret; null after a success. */
  error: string | null
}

/** @returns whether the check before this one failed. */
export async function recordProviderCheck(sql: Sql, region: string, error: string | null): Promise<boolean> {
  const row = await first(sql<{ hadFailed: boolean }[]>`
    with before as (select error from provider_checks where region = ${region}), stored as (
      insert into provider_checks as c (region, failing_since, error)
      values (${region}, case when ${error}::text is not null then now() end, ${error})
      on conflict (region) do update set checked_at = now(), error = excluded.error,
        failing_since = case when excluded.error is not null then coalesce(c.failing_since, now()) end
    )
    select exists (select from before where error is not null) as had_failed`)
  return row?.hadFailed ?? false
}

export const listProviderChecks = async (sql: Sql): Promise<ProviderCheck[]> =>
  sql<ProviderCheck[]>`select region, checked_at, failing_since, error from provider_checks order by region`
