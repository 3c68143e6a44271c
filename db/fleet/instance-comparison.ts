/** The differences between a provider's list and the rows, for operators. Reads only. */
import type { Sql } from '../connection.ts'
import { keptUntil } from './kept-instances.ts'
import { type CompleteList, checkedInstances, isGoneUnlisted } from './orphans.ts'

/**
 * `orphan`: no session uses it. `foreign`: the same, and this service did not create it, as far as the rows say.
 * `retired`: it is to be destroyed. `unbound`: a warm instance without a session, which is as it should be. `missing`:
 * it has a row, and the provider does not list it.
 */
type DifferenceKind = 'orphan' | 'foreign' | 'retired' | 'unbound' | 'missing'

export interface InstanceDifference {
  kind: DifferenceKind
  instanceId: string
  sessionId: string | null
  /**
   * Since the first observation without an owner, the retirement or the creation; null before the first observation.
   */
  since: Date | null
  /** Since the first observation without an owner; 0 before it. */
  unownedSeconds: number
  /** Of a missing instance: it counts as gone. Otherwise its provider may not list it yet. */
  isGone: boolean
  /** It may carry a stream of an earlier epoch until then; null when it cannot. */
  keptUntil: Date | null
}

export const compareInstances = async (
  sql: Sql,
  { region, listed, listLagSeconds }: CompleteList,
): Promise<InstanceDifference[]> =>
  sql<InstanceDifference[]>`
    with ${checkedInstances(sql, listed)}, found as (
      select c.instance_id, coalesce(i.session_id, c.tagged_session_id) as session_id, i.retired_at, i.unowned_since, i.created_at,
        ${keptUntil(sql, sql`i`)} as kept_until,
        case
          when c.owned then 'unbound'
          when i.retired_at is not null then 'retired'
          when i.provider is null and not exists (
            select from relay_sessions s where s.id = coalesce(i.session_id, c.tagged_session_id)) then 'foreign'
          else 'orphan'
        end as kind
      from checked c left join instances i on i.instance_id = c.instance_id
      where not c.owned or (i.is_warm and i.session_id is null)
    )
    select kind, instance_id, session_id,
      case kind when 'retired' then retired_at when 'unbound' then created_at else unowned_since end as since,
      coalesce(extract(epoch from now() - unowned_since), 0)::float8 as unowned_seconds, false as is_gone, kept_until
    from found
    union all
    select 'missing', instance_id, session_id, created_at, 0, ${isGoneUnlisted(sql, listLagSeconds)}, null
    from instances
    where region = ${region} and gone_at is null and instance_id not in (select instance_id from listed)
    order by kind, instance_id`

/** Existing instances in regions other than these, by region. */
export const countInstancesElsewhere = async (
  sql: Sql,
  regions: readonly string[],
): Promise<{ region: string; count: number }[]> =>
  sql<{ region: string; count: number }[]>`
    select region, count(*)::int as count from instances
    where gone_at is null and region <> all(${regions}::text[]) group by region order by region`
