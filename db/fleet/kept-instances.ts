/**
 * After a restore the database does not know which instances were created since its backup, and which warm ones got a
 * session. For a day of the new epoch these are kept, since they may carry streams.
 */
import { keptSecondsMax } from '../../domain/fleet/orphan-sweep.ts'
import type { Fragment, Sql } from '../connection.ts'

/**
 * Until when an instance is kept; null for one that cannot have got its session before the present epoch. It can when
 * the database lacks its creation, or has it as a warm one. A report without a session proves that it carries no
 * stream.
 * @param row the alias of its row, whose columns may all be null.
 */
export const keptUntil = (sql: Sql, row: Fragment) => sql`(
  select max(e.began_at) + make_interval(secs => ${keptSecondsMax}) from epochs e
  where e.began_at > now() - make_interval(secs => ${keptSecondsMax})
    and (${row}.provider is null or (${row}.session_id is null and ${row}.created_at < e.began_at))
    and coalesce(${row}.last_report_at < e.began_at, true))`

export interface KeptInstances {
  readonly region: string
  readonly instanceIds: readonly string[]
  readonly until: Date
}

/** Instances without an owner, and silent warm ones, that are kept. */
export const listKeptInstances = async (sql: Sql): Promise<KeptInstances[]> =>
  sql<KeptInstances[]>`
    select region, array_agg(instance_id order by instance_id) as instance_ids, max(until) as until
    from (
      select i.region, i.instance_id, ${keptUntil(sql, sql`i`)} as until from instances i
      where i.gone_at is null and i.retired_at is null
        and (i.unowned_since is not null or (i.is_warm and i.session_id is null))
    ) kept where until is not null group by region order by region`
